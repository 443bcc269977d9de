"""How fast an event fans out durably, against bare sqlite3 writing the very same rows.

publish: calls of `Dispatcher.publish`, each of an event of 1 KiB for 1,000 endpoints, a third of them in each
  format: matching, enveloping, encrypting, deciding, hashing; every call has returned.
executemany: the rows that those events left in the log, the deliveries, the payloads and their keys, the new
  rows of the lanes and the new counts of the endpoints, with sqlite3's executemany, in one transaction for
  each event.

Both sides begin with copies of one file: the schema with its indexes and triggers, and the endpoints. Both
write with synchronous=FULL. The bare side leaves out the tiles of the log's tree. Opening and closing are not
timed; the garbage collector is off.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from dispatcher import Dispatcher
from tests.bench.enqueue_rate import TABLES, bare
from tests.bench.live import PAYLOAD, SECRET, fresh, opened
from tests.bench.measure import Took, arguments, durable, in_turns, middle, print_line, rounded, sides, timed

FORMATS = ("given", "standard", "cloudevents")
TYPE = "invoice.paid"
Rows = list[tuple[Any, ...]]


def build(database: Path, endpoints: int) -> None:
    """Endpoints that want all kinds of types, among them the one that is published."""
    with opened(database) as live:
        for n in range(endpoints):
            live.register(
                f"endpoint-{n}",
                f"http://127.0.0.1/{n}",
                secret=SECRET,
                types=["invoice.*", f"user.{n % 20}"],
                body_format=FORMATS[n % 3],  # type: ignore[arg-type]
            )
    durable(database)


class Written:
    """The rows that events left, one list of each table for each event."""

    def __init__(self, database: Path, endpoints: int) -> None:
        with closing(sqlite3.connect(database)) as connection:
            begun = connection.execute("SELECT min(position) FROM dispatcher_deliveries").fetchone()[0]
            found = {
                table: connection.execute(
                    f"SELECT * FROM {table} WHERE {n} >= ? ORDER BY {n}", (begun,)
                ).fetchall()
                for table, n in TABLES.items()
            }
            self._lanes = connection.execute("SELECT * FROM dispatcher_lanes").fetchall()
            due = connection.execute("SELECT next_due_at, endpoint_id FROM dispatcher_endpoints").fetchall()
        assert {len(rows) % endpoints for rows in found.values()} == {0}
        self._events = [
            {
                f"INSERT INTO {table} VALUES ({marks(rows)})": rows[n : n + endpoints]
                for table, rows in found.items()
            }
            for n in range(0, len(found["dispatcher_log"]), endpoints)
        ]
        self._counts: Rows = due

    def write(self, connection: sqlite3.Connection) -> None:
        for event in self._events:
            connection.execute("BEGIN IMMEDIATE")
            for statement, rows in event.items():
                connection.executemany(statement, rows)
            if event is self._events[0]:  # Later events change no lane: its head stays.
                connection.executemany(
                    f"INSERT INTO dispatcher_lanes VALUES ({marks(self._lanes)})", self._lanes
                )
            connection.executemany(
                "UPDATE dispatcher_endpoints SET pending = pending + 1, next_due_at = ?"
                " WHERE endpoint_id = ?",
                self._counts,
            )
            connection.execute("COMMIT")


def marks(rows: Rows) -> str:
    return ", ".join("?" * len(rows[0]))


class Publishing:
    """Both sides, each on a new copy of the file every time."""

    def __init__(self, folder: Path, endpoints: int, events: int) -> None:
        self._built, self._copy = folder / "built.db", folder / "measured.db"
        self._endpoints, self._events = endpoints, events
        build(self._built, endpoints)
        self._written: Written | None = None

    def publish(self) -> Took:
        with opened(fresh(self._built, self._copy)) as live:
            took = timed(lambda: self._publish(live))
        if self._written is None:
            self._written = Written(self._copy, self._endpoints)
        return took

    def executemany(self) -> Took:
        written = self._written
        assert written is not None
        with bare(fresh(self._built, self._copy)) as connection:
            return timed(lambda: written.write(connection))

    def _publish(self, live: Dispatcher) -> None:
        for _ in range(self._events):
            assert len(live.publish(TYPE, PAYLOAD).endpoints or ()) == self._endpoints


def main() -> None:
    given = arguments(__doc__, 1000, events=10)
    events = given.others["events"]
    with tempfile.TemporaryDirectory() as folder:
        publishing = Publishing(Path(folder), given.size, events)
        measured = in_turns(
            {"publish": publishing.publish, "executemany": publishing.executemany}, given.rounds
        )
    seconds = {side: middle(rounds) for side, rounds in measured.items()}
    line = {
        "ratio": rounded(seconds["executemany"] / seconds["publish"]),
        **{f"{side}_deliveries_per_second": round(given.size * events / seconds[side]) for side in measured},
        **sides(**measured),
        "endpoints": given.size,
        "events": events,
        "garbage_collector": "off on both sides",
    }
    print_line("publish_rate", "executemany_seconds / publish_seconds >= 0.4", line)


if __name__ == "__main__":
    main()
