"""Databases to migrate: an application's own, with or without a log beside its tables."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from alembic import command
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.pool import NullPool

from dispatcher import run
from dispatcher.log import migrate
from dispatcher.log.schema import VERSION_TABLE
from tests.notation import D, E, P, Q, R

HISTORY = [
    *(R(endpoint) for endpoint in ("shop", "mail", "quiet")),
    Q(0, "shop", "sent", [503, 200]),
    Q(0, "shop", "refused", [404]),
    Q(0, "mail", "gone", [410]),
    P(0),
    P(30),
    D(40, "mail"),
    Q(40, "mail", "held", [200]),
    E(50, "mail", True),
    Q(50, "quiet", "failing", [500]),
    P(50),
    D(60, "quiet"),
    Q(60, "shop", "waiting", [200]),
]

CONTINUED = [Q(70, "shop", "another", [200]), P(70), E(80, "quiet", False), P(100)]

# With what a rebuilt table would lose: children that a cascade deletes, a counter, a trigger, a view.
APPLICATION = """
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
INSERT INTO alembic_version VALUES ('app0007');
CREATE TABLE customers (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customers (id) ON DELETE CASCADE
);
CREATE INDEX orders_by_customer ON orders (customer);
CREATE TRIGGER customers_stay BEFORE DELETE ON customers WHEN OLD.id = 1
BEGIN SELECT RAISE(ABORT, 'the first customer stays'); END;
CREATE VIEW customer_names AS SELECT name FROM customers;
INSERT INTO customers (name) VALUES ('Ada'), ('Grace'), ('nobody');
INSERT INTO orders (customer) VALUES (1), (1), (2);
DELETE FROM customers WHERE name = 'nobody';
"""

# What an application may hang on the dispatcher's tables, and a tile, as a longer log has them.
USED = """
CREATE TABLE notes (
    endpoint_id TEXT NOT NULL REFERENCES dispatcher_endpoints (endpoint_id) ON DELETE CASCADE
);
INSERT INTO notes SELECT endpoint_id FROM dispatcher_endpoints;
INSERT INTO dispatcher_tiles (level, number, hash) VALUES (8, 0, zeroblob(32));
"""

# What a live log has beside it: a claim, and sealed things. Whatever the bytes mean, they have to stay.
HELD = """
INSERT INTO dispatcher_claims
SELECT 7, endpoint_id, lane, delivery_id, position, 1, 'host/1', 60, 100 FROM dispatcher_deliveries
WHERE delivery_id = 'waiting';
INSERT INTO dispatcher_vault_keys VALUES ('digest', zeroblob(69));
INSERT INTO dispatcher_vault_endpoints SELECT endpoint_id, zeroblob(69), x'5EA1' FROM dispatcher_endpoints;
INSERT INTO dispatcher_payload_keys SELECT position, zeroblob(69) FROM dispatcher_deliveries;
INSERT INTO dispatcher_payloads SELECT position, x'5EA1' FROM dispatcher_deliveries;
INSERT INTO dispatcher_responses
SELECT max(position), max(position), x'5EA1' FROM dispatcher_deliveries WHERE attempts > 0;
INSERT INTO dispatcher_unscrubbed SELECT position FROM dispatcher_deliveries;
INSERT INTO dispatcher_retention SELECT endpoint_id, 9 FROM dispatcher_endpoints;
INSERT INTO dispatcher_inbox_keys VALUES (3, zeroblob(69));
INSERT INTO dispatcher_inbox
VALUES (3, 60, 'default', 'default/shop', 'm', NULL, NULL, '', NULL, NULL, x'5EA1');
"""

MasterRow = tuple[str, str, str, str | None]


class Contents(NamedTuple):
    """All that is in a database."""

    master: list[MasterRow]
    rows: dict[str, list[Any]]
    broken_references: list[Any]


def make(path: Path, script: str) -> None:
    with closing(_connect(path)) as connection:
        connection.executescript(script)


def newest_revision() -> str:
    return max(migrate.known_revisions())


def populate(path: Path, revision: str) -> None:
    """HISTORY and HELD: as written in the newest schema, else as kept while this one was the newest."""
    if revision == newest_revision():
        run(HISTORY, path)
        make(path, HELD)
    else:
        make(path, rows_kept(revision).read_text(encoding="utf-8"))


def rows_kept(revision: str) -> Path:
    return Path(__file__).parent / "rows" / f"{revision}.sql"


def keep_rows() -> None:
    """Write the rows file of the newest schema: `python -m tests.migration.databases`, before its release."""
    with tempfile.TemporaryDirectory() as folder:
        populate(Path(folder, "log.db"), newest_revision())
        with closing(_connect(Path(folder, "log.db"))) as connection:
            dump = [line for line in connection.iterdump() if line.startswith('INSERT INTO "dispatcher_')]
    rows = [line for line in dump if VERSION_TABLE not in line]
    note = "-- HISTORY and HELD, as written in this schema. Once released it stays: it tests later schemas."
    rows_kept(newest_revision()).write_text("\n".join([note, *rows, ""]), encoding="utf-8")


def upgrade(path: Path, revision: str) -> None:
    with _migrating(path) as connection:
        command.upgrade(migrate.alembic_config(connection), revision)


def downgrade(path: Path, revision: str) -> None:
    with _migrating(path) as connection:
        command.downgrade(migrate.alembic_config(connection), revision)


def contents(path: Path) -> Contents:
    with closing(_connect(path)) as connection:
        tables = [name for kind, name, *_ in master(connection) if kind == "table"]
        return Contents(
            master=master(connection),
            rows={name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for name in tables},
            broken_references=connection.execute("PRAGMA foreign_key_check").fetchall(),
        )


def master(connection: sqlite3.Connection) -> list[MasterRow]:
    """sqlite_master, without the whitespace and the quotes that mean nothing."""
    found = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name")
    return [(kind, name, table, None if sql is None else _plain(sql)) for kind, name, table, sql in found]


def _plain(sql: str) -> str:
    return re.sub(r" ?([(),]) ?", r"\1", " ".join(sql.replace('"', "").split()))


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


@contextmanager
def _migrating(path: Path) -> Iterator[Connection]:
    """A write transaction as an application would open it that has SQLite check its references."""
    engine = create_engine("sqlite://", creator=lambda: _connect(path), poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    with engine.begin() as connection:
        yield connection


if __name__ == "__main__":
    keep_rows()
