"""Two valid databases, and what somebody with write access to the file might do to them."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

from dispatcher import run
from dispatcher.audit.finding import Finding
from dispatcher.core.entries import Kind
from dispatcher.core.merkle import leaf_hash
from dispatcher.core.operations import (
    AnyOperation,
    Cancel,
    Disable,
    Enable,
    Enqueue,
    Erase,
    Record,
    Register,
    Release,
    Revive,
    Update,
)
from dispatcher.core.policy import PROMISED, STANDARD
from dispatcher.errors import LogCorrupt
from dispatcher.log.append import appending
from dispatcher.log.open import Database
from dispatcher.log.read import LogRow
from dispatcher.log.rebuild import rebuild
from dispatcher.log.schema import TRIGGERS
from tests.notation import D, E, P, Q, R
from tests.ramdisk import ramdisk

ENTRIES = 600
ENDPOINTS = ("a", "b", "c", "d")


def make(kind: Kind, file: Path) -> None:
    """Put a valid log of that kind, of ENTRIES entries or a few more, at a place."""
    file.write_bytes(_contents(kind))


@cache
def _contents(kind: Kind) -> bytes:
    with ramdisk() as folder:
        file = folder / "log.db"
        if kind == "simulated":
            run(_simulated(), file)
        else:
            _write_live(file)
        return file.read_bytes()


def _simulated() -> list[Any]:
    chance = random.Random(1)
    operations: list[Any] = [R(endpoint) for endpoint in ENDPOINTS]
    ts = 0
    for number in range(210):
        codes = chance.choices([200, 204, 500, 503, 404, 410, 0], k=chance.randint(1, 5))
        operations.append(Q(ts, chance.choice(ENDPOINTS), f"évt-{number}", codes))
        if number % 4 == 3:
            ts += chance.choice([0, 10, 30, 60, 400])
            operations.append(P(ts))
        if number % 30 == 29:
            operations += [D(ts, "b"), Q(ts, "b", f"held-{number}", [503]), P(ts), E(ts + 5, "b", True)]
            ts += 5
    operations += [P(ts + 600), D(ts + 600, "d")]
    operations += [Q(ts + 600, chance.choice(ENDPOINTS), f"last-{n}", [503, 200]) for n in range(180)]
    return [*operations, P(ts + 600)]


def _write_live(file: Path) -> None:
    chance = random.Random(2)
    policies = PROMISED.scaled(1000), STANDARD.scaled(1000)
    with Database(file) as database, appending(database, "live") as log:
        for number, endpoint in enumerate(ENDPOINTS):
            log.apply(
                Register(
                    endpoint_id=endpoint,
                    url="https://a.example",
                    policy=policies[number % 2],
                    url_digest="d" * 8,
                    erase=("never", "on_final")[number // 3],
                    types=("order.*",),
                    body_format="standard",
                    keep_payloads=86_400_000,
                ),
                0,
            )
        ts, number = 0, 0
        while log.state.position < ENTRIES - 4:
            ts += chance.randint(0, 2000)
            some, endpoint = f"e{chance.randint(0, number)}", chance.choice(ENDPOINTS)
            status = chance.choice([200, 200, 404, 503, 503, 0])
            operations: list[AnyOperation] = [
                Enqueue(
                    endpoint,
                    f"e{number}",
                    None,
                    chance.choice([None, "k", "l"]),
                    number,
                    "d" * 8,
                    "app",
                    "order.paid",
                ),
                Enqueue(endpoint, f"e{number}", None, None, number),
                Record(some, status, ts, 5, None, "lost" if status == 0 else None, None, "host/1"),
                Record(some, 503, ts, 5, None, None, 90_000, "host/1"),
                Release(some, ts, "host/1"),
                Cancel(some, actor="operator"),
                Erase(some),
                Revive(endpoint, limit=1),
                Disable(endpoint, "broken"),
                Enable(endpoint, chance.random() < 0.3),
                Update(endpoint_id=endpoint, concurrency=chance.randint(1, 8)),
            ]
            log.apply(chance.choices(operations, [9, 4, 9, 3, 1, 1, 1, 1, 1, 2, 1])[0], ts)
            number += log.state.delivery(f"e{number}") is not None
        log.apply(Disable("c", "broken"), ts)
        log.apply(Enqueue("a", "pending", None, "k"), ts)
        log.apply(Enqueue("c", "held"), ts)
        while log.state.position < ENTRIES:
            log.apply(Enqueue("b", f"e{number}", None, "k"), ts)
            number += 1


def connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, isolation_level=None)


def forge(file: Path, *statements: str, parameters: tuple[Any, ...] = ()) -> None:
    """Execute statements with the triggers and checks out of the way; afterwards the triggers are back."""
    with closing(connect(file)) as connection:
        _drop_triggers(connection)
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            done = connection.execute(statement, parameters)
            assert done.rowcount != 0, f"nothing was changed: {statement}"
        for trigger in TRIGGERS:
            connection.execute(trigger)


def rewrite(file: Path, change: Callable[[list[LogRow]], list[LogRow]]) -> None:
    """Write the log anew as changed, with fresh positions and hashes, and views and tiles to match.

    A log that nothing can be folded from keeps the views it had.
    """
    with closing(connect(file)) as connection:
        rows = [LogRow(*row) for row in connection.execute("SELECT * FROM dispatcher_log ORDER BY position")]
        _drop_triggers(connection)
        connection.execute("DELETE FROM dispatcher_log")
        for position, row in enumerate(change(rows), start=1):
            content = position, *row[1:7]
            leaf = leaf_hash(*content[:6], row.data.encode())
            connection.execute("INSERT INTO dispatcher_log VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*content, leaf))
        for trigger in TRIGGERS:
            connection.execute(trigger)
    with suppress(LogCorrupt):
        rebuild(file)


def _drop_triggers(connection: sqlite3.Connection) -> None:
    for trigger in TRIGGERS:
        connection.execute(f"DROP TRIGGER {trigger.split()[2]}")


def rows_of_log(file: Path) -> list[LogRow]:
    with closing(connect(file)) as connection:
        return [LogRow(*row) for row in connection.execute("SELECT * FROM dispatcher_log ORDER BY position")]


def of_the_log(findings: list[Finding]) -> list[Finding]:
    """Findings about entries, without those about what was derived from them."""
    derived = ("dispatcher_", "tile ", *(f"{state}: " for state in STATES))
    return [f for f in findings if f.position is not None and not f.message.startswith(derived)]


STATES = ("pending", "delivered", "dead", "cancelled", "total")
