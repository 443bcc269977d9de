"""The log's head: what to keep in order to check the log later."""

from __future__ import annotations

from dispatcher.log import read
from dispatcher.log.open import Database, Target


def head(database: Target) -> str:
    """`POSITION:ROOT` of a database's log. Whoever keeps it can later check that the log still begins so.

    Raises DatabaseMissing when there is no database at that place.
    """
    with Database(database, "read") as opened, opened.read() as connection:
        return read.head(connection)
