"""Every key of the vault under the newest master key, so that an older one can be given up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import Connection

from dispatcher.errors import WrongKind
from dispatcher.log.open import Database, Target
from dispatcher.log.read import log_kind
from dispatcher.log.seal import Keyring
from dispatcher.log.vault import ERASED

KEYS_AT_ONCE = 500
TABLES = (
    ("dispatcher_vault_keys", "name"),
    ("dispatcher_vault_endpoints", "endpoint_id"),
    # Before the table that its keys are moved to meanwhile.
    ("dispatcher_inbox_keys", "n"),
    ("dispatcher_payload_keys", "n"),
)


class Rewrapped(NamedTuple):
    """Of one table."""

    keys: int
    """That stand in it; erased ones are none."""
    changed: int
    """That were under another master key, or under none."""


def rewrap(
    database: Target, keyring: Keyring, progress: Callable[[int, int], None] | None = None
) -> dict[str, Rewrapped]:
    """Wrap every key anew that is not under the newest master key, in place; what came of each table.

    In transactions of bounded size, beside workers that have the old and the new key. Stopped at any time,
    another run does the rest. Raises MasterKeyMissing for a key that is under none of the ring.
    """
    with Database(database, "write", lasting=True) as opened:
        with opened.read() as connection:
            kind = log_kind(connection)
            if kind == "simulated":
                raise WrongKind(f"{opened.place} holds a simulated log, which has no secrets")
            total = sum(_count(connection, table) for table, _ in TABLES)
        done = 0
        told = {}
        for table, column in TABLES:
            keys = changed = 0
            last: Any = None
            while True:
                with opened.write() as connection:
                    rows = _page(connection, table, column, last)
                    stale = [
                        (keyring.wrap(keyring.unwrap(key)), name)
                        for name, key in rows
                        if key != ERASED and not keyring.is_current(key)
                    ]
                    if stale:
                        connection.exec_driver_sql(f"UPDATE {table} SET key = ? WHERE {column} = ?", stale)
                keys += sum(1 for _, key in rows if key != ERASED)
                changed += len(stale)
                done += len(rows)
                if progress is not None:
                    progress(done, max(done, total))
                if len(rows) < KEYS_AT_ONCE:
                    break
                last = rows[-1][0]
            told[table] = Rewrapped(keys, changed)
        return told


def _count(connection: Connection, table: str) -> int:
    return int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())


def _page(connection: Connection, table: str, column: str, last: Any) -> list[tuple[Any, bytes]]:
    beyond = "" if last is None else f"WHERE {column} > ?"
    rows = connection.exec_driver_sql(
        f"SELECT {column}, key FROM {table} {beyond} ORDER BY {column} LIMIT {KEYS_AT_ONCE}",
        () if last is None else (last,),
    )
    return [(name, key) for name, key in rows]
