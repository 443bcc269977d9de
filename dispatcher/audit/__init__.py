"""Questions to the log: what happened, is it still what was written, what would it come to again."""
