"""How fast events are accepted durably, against bare sqlite3 writing the very same rows.

enqueue: 32 threads that each call `Dispatcher.enqueue` for one event after the other, 1 KiB each: encrypting,
  deciding, hashing, and the commits that threads share; every call has returned.
one_by_one: the rows that those events left in the log, the deliveries, the payloads and their keys, with the
  new row of the lane and the new count of the endpoint, in one transaction for each event.
enqueue_many: the same events in calls of `Dispatcher.enqueue_many`, 1,000 in each.
executemany: the rows that those left, with sqlite3's executemany, in one transaction for each 1,000.

All sides begin with copies of one file: the schema with its indexes and triggers, and 100 endpoints. All
write with synchronous=FULL. The bare sides leave out the tiles of the log's tree. Opening and closing are not
timed; the garbage collector is off.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from dispatcher import Dispatcher
from dispatcher.log.open import CACHE_KIB
from tests.bench.live import AT_ONCE, PAYLOAD, build, fresh, opened
from tests.bench.measure import Took, arguments, in_turns, middle, print_line, rounded, sides, timed

ENDPOINTS = 100
# Each with the column that names an event, by its position.
TABLES = {
    "dispatcher_log": "position",
    "dispatcher_deliveries": "position",
    "dispatcher_payload_keys": "n",
    "dispatcher_payloads": "n",
}
Rows = list[tuple[Any, ...]]


class Written:
    """The rows that events left, from the first of them on."""

    def __init__(self, database: Path) -> None:
        with closing(sqlite3.connect(database)) as connection:
            begun = connection.execute("SELECT min(position) FROM dispatcher_deliveries").fetchone()[0]
            self._rows: dict[str, Rows] = {
                table: connection.execute(
                    f"SELECT * FROM {table} WHERE {n} >= ? ORDER BY {n}", (begun,)
                ).fetchall()
                for table, n in TABLES.items()
            }
            lanes = connection.execute("SELECT * FROM dispatcher_lanes").fetchall()
            due = connection.execute("SELECT endpoint_id, next_due_at FROM dispatcher_endpoints").fetchall()
        assert {len(rows) for rows in self._rows.values()} == {len(self._rows["dispatcher_log"])}
        self._lanes = {lane[0]: lane for lane in lanes}
        self._due = dict(due)
        self._marks = {table: ", ".join("?" * len(rows[0])) for table, rows in self._rows.items()}

    def write(self, connection: sqlite3.Connection, at_once: int) -> None:
        """Insert the rows anew, so many events in each transaction."""
        for n in range(0, len(self._rows["dispatcher_log"]), at_once):
            connection.execute("BEGIN IMMEDIATE")
            for table, marks in self._marks.items():
                some = self._rows[table][n : n + at_once]
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", some)
            touched = Counter(row[4] for row in self._rows["dispatcher_log"][n : n + at_once])
            connection.executemany(
                "INSERT OR REPLACE INTO dispatcher_lanes VALUES (?, ?, ?, ?, ?)",
                [self._lanes[endpoint_id] for endpoint_id in touched],
            )
            connection.executemany(
                "UPDATE dispatcher_endpoints SET pending = pending + ?, next_due_at = ?"
                " WHERE endpoint_id = ?",
                [(count, self._due[endpoint_id], endpoint_id) for endpoint_id, count in touched.items()],
            )
            connection.execute("COMMIT")


class Enqueuing:
    """All sides, each on a new copy of the file every time."""

    def __init__(self, folder: Path, size: int, threads: int) -> None:
        self._built, self._copy = folder / "built.db", folder / "measured.db"
        self._threads = threads
        names = [f"endpoint-{n}" for n in range(min(ENDPOINTS, size))]
        build(self._built, {name: f"http://127.0.0.1/{name}" for name in names}, [])
        self._events = [(names[n % len(names)], PAYLOAD) for n in range(size)]
        self._written: dict[str, Written] = {}

    def enqueue(self) -> Took:
        return self._dispatched("enqueue", self._one_each)

    def one_by_one(self) -> Took:
        return self._bare("enqueue", 1)

    def enqueue_many(self) -> Took:
        return self._dispatched("enqueue_many", self._many_each)

    def executemany(self) -> Took:
        return self._bare("enqueue_many", AT_ONCE)

    def _one_each(self, live: Dispatcher) -> None:
        # Each thread takes its share, so that handing out work costs nothing.
        def enqueue(events: Sequence[tuple[str, bytes]]) -> None:
            for name, payload in events:
                live.enqueue(name, payload)

        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(enqueue, (self._events[n :: self._threads] for n in range(self._threads))))

    def _many_each(self, live: Dispatcher) -> None:
        for n in range(0, len(self._events), AT_ONCE):
            live.enqueue_many(self._events[n : n + AT_ONCE])

    def _dispatched(self, side: str, accept: Callable[[Dispatcher], None]) -> Took:
        with opened(fresh(self._built, self._copy)) as live:
            took = timed(lambda: accept(live))
        if side not in self._written:
            self._written[side] = Written(self._copy)
        return took

    def _bare(self, side: str, at_once: int) -> Took:
        with bare(fresh(self._built, self._copy)) as connection:
            return timed(lambda: self._written[side].write(connection, at_once))


@contextmanager
def bare(database: Path) -> Iterator[sqlite3.Connection]:
    """A connection as the library's are."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_spill = OFF")
        yield connection


def main() -> None:
    given = arguments(__doc__, 10_000, threads=32)
    with tempfile.TemporaryDirectory() as folder:
        enqueuing = Enqueuing(Path(folder), given.size, given.others["threads"])
        measured = in_turns(
            {
                "enqueue": enqueuing.enqueue,
                "one_by_one": enqueuing.one_by_one,
                "enqueue_many": enqueuing.enqueue_many,
                "executemany": enqueuing.executemany,
            },
            given.rounds,
        )
    seconds = {side: middle(rounds) for side, rounds in measured.items()}
    line = {
        "ratio": rounded(seconds["one_by_one"] / seconds["enqueue"]),
        "many_ratio": rounded(seconds["executemany"] / seconds["enqueue_many"]),
        **{f"{side}_per_second": round(given.size / seconds[side]) for side in measured},
        **sides(**measured),
        "events": given.size,
        "threads": given.others["threads"],
        "garbage_collector": "off on all sides",
    }
    target = (
        "one_by_one_seconds / enqueue_seconds >= 2.5 and executemany_seconds / enqueue_many_seconds >= 0.5"
    )
    print_line("enqueue_rate", target, line)


if __name__ == "__main__":
    main()
