"""Noticing what other processes do to a database, without a transaction."""

from __future__ import annotations

import sqlite3


class Watch:
    """Of one SQLite file, over a connection of its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._seen = self._version()

    def changed(self) -> bool:
        """Whether anybody committed anything since this was last asked. True when that cannot be told."""
        before, self._seen = self._seen, self._version()
        return self._seen is None or self._seen != before

    def close(self) -> None:
        self._connection.close()

    def _version(self) -> int | None:
        try:
            version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error:
            return None  # Whoever looks closer will be told why.
        return version
