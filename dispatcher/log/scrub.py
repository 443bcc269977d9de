"""Keys of erased payloads: they may stand in the write-ahead log until that was emptied."""

from __future__ import annotations

import json

from dispatcher.log.open import Connection, Database
from dispatcher.log.rows import driver

AT_ONCE = 10_000


def unscrubbed(connection: Connection) -> list[int]:
    """The payloads whose keys were overwritten and may still be found."""
    found = connection.exec_driver_sql("SELECT n FROM dispatcher_unscrubbed ORDER BY n")
    return list(found.scalars())


def scrub(database: Database, wait: float) -> bool:
    """Empty the write-ahead log, and note of what was erased before that it is gone.

    Whether it could within `wait` seconds, for whoever reads or writes holds it back. Stopped in between,
    it is done again.
    """
    with database.read() as connection:
        erased = unscrubbed(connection)
    if not database.empty_wal(wait):
        return False
    for n in range(0, len(erased), AT_ONCE):
        with database.write() as connection:
            driver(connection).execute(
                "DELETE FROM dispatcher_unscrubbed WHERE n IN (SELECT value FROM json_each(?))",
                (json.dumps(erased[n : n + AT_ONCE]),),
            )
    return True
