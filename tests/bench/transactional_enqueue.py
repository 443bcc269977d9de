"""What accepting an event adds to an application's own transaction.

insert: an application inserts a row of its own, 1 KiB, and commits; one such transaction after the other.
enqueue: the same, and in each transaction it accepts an event of 1 KiB on its connection, too.
insert_alone, enqueue_alone: what of that its INSERT takes, and the call of `Dispatcher.enqueue`, without the
  commit: encryption, and the rows of the inbox.

Both sides begin with copies of one file, use the same connection settings (WAL, synchronous=FULL), and commit
to disk. Opening and closing are not timed; the garbage collector is off. Nobody takes the events out of the
inbox meanwhile.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from time import perf_counter

from dispatcher import Dispatcher
from tests.bench.enqueue_rate import bare
from tests.bench.live import PAYLOAD, build, fresh, opened
from tests.bench.measure import Took, arguments, in_turns, middle, print_line, rounded, sides, timed

INSERT = "INSERT INTO orders (body) VALUES (?)"


class Application:
    """Both sides, each on a new copy of the file every time."""

    def __init__(self, folder: Path, size: int) -> None:
        self._built, self._copy = folder / "built.db", folder / "measured.db"
        self._size = size
        self.alone: dict[str, list[float]] = {"insert": [], "enqueue": []}
        """Seconds that the statements of each transaction took, by round."""
        build(self._built, {"shop": "http://127.0.0.1/shop"}, [])
        with bare(self._built) as connection:
            connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, body BLOB)")

    def insert(self) -> Took:
        with bare(fresh(self._built, self._copy)) as connection:
            return timed(lambda: self._run(connection, None))

    def enqueue(self) -> Took:
        with opened(fresh(self._built, self._copy)) as live, bare(self._copy) as connection:
            return timed(lambda: self._run(connection, live))

    def _run(self, connection: sqlite3.Connection, live: Dispatcher | None) -> None:
        inserting = enqueuing = 0.0
        for _ in range(self._size):
            connection.execute("BEGIN IMMEDIATE")
            begun = perf_counter()
            connection.execute(INSERT, (PAYLOAD,))
            inserted = perf_counter()
            if live is not None:
                live.enqueue("shop", PAYLOAD, connection=connection)
                enqueuing += perf_counter() - inserted
            inserting += inserted - begun
            connection.execute("COMMIT")
        if live is None:
            self.alone["insert"].append(inserting)
        else:
            self.alone["enqueue"].append(enqueuing)


def main() -> None:
    given = arguments(__doc__, 5_000)
    with tempfile.TemporaryDirectory() as folder:
        application = Application(Path(folder), given.size)
        measured = in_turns({"insert": application.insert, "enqueue": application.enqueue}, given.rounds)
    seconds = {side: middle(rounds) for side, rounds in measured.items()}
    # The first round is thrown away here, too.
    alone = {side: sorted(rounds[1:])[len(rounds[1:]) // 2] for side, rounds in application.alone.items()}
    line = {
        "ratio": rounded((seconds["enqueue"] - seconds["insert"]) / seconds["insert"]),
        "alone_ratio": rounded(alone["enqueue"] / alone["insert"]),
        "insert_alone_seconds": rounded(alone["insert"]),
        "enqueue_alone_seconds": rounded(alone["enqueue"]),
        **sides(**measured),
        "transactions": given.size,
        "garbage_collector": "off on all sides",
    }
    print_line("transactional_enqueue", "(enqueue_seconds - insert_seconds) / insert_seconds <= 1.5", line)


if __name__ == "__main__":
    main()
