"""The log on disk, and the views folded from it. The only package that speaks to a database."""
