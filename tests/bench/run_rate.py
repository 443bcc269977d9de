"""How fast `run` is on a file, against the bare insertion of the rows that it leaves there.

run: one call, from opening a new file to having closed it: 100,000 events over 1,000 endpoints, a quarter
  failing once, processed until nothing is pending. It decides, folds, encodes, hashes, writes the log, the
  tiles and the views.
bare: from opening a new file to having closed it: the same schema with all its indexes and triggers, the same
  pragmas, and sqlite3's executemany of the very rows that `run` left in each table, in one transaction, its
  commit included.

Both write to the same folder, durably, with the garbage collector off. The rows and the operations are made
before.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dispatcher import head, run
from dispatcher.log.open import CACHE_KIB
from dispatcher.log.schema import endpoints, metadata, sqlite_script
from tests.bench.measure import Took, arguments, in_turns, middle, print_line, rounded, sides, timed
from tests.bench.workload import Operations, delivered

Tables = dict[str, list[tuple[Any, ...]]]


def rows_of(path: Path) -> Tables:
    """Every row of every table, in the order in which the tables keep them."""
    connection = sqlite3.connect(path)
    try:
        names = [table.name for table in metadata.sorted_tables]
        pending = connection.execute(f"SELECT sum(pending) FROM {endpoints.name}").fetchone()[0]
        assert pending == 0, f"{pending} events are still pending"
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}
    finally:
        connection.close()


def insert_bare(path: Path, tables: Tables) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_spill = OFF")
        connection.execute("BEGIN IMMEDIATE")
        for statement in sqlite_script():
            connection.execute(statement)
        connection.execute("COMMIT")
        connection.execute("BEGIN IMMEDIATE")
        for name, rows in tables.items():
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        connection.execute("COMMIT")
    finally:
        connection.close()


class Comparison:
    """Both sides, each on a new file every time."""

    def __init__(self, folder: Path, operations: Operations) -> None:
        self._operations = operations
        self._path = folder / "measured.db"
        self._run()
        self.entries = int(head(self._path).partition(":")[0])
        self._tables = rows_of(self._path)
        self.rows = {name: len(rows) for name, rows in self._tables.items()}

    def measure(self, rounds: int) -> dict[str, list[Took]]:
        return in_turns(
            {"run": lambda: self._timed(self._run), "bare": lambda: self._timed(self._bare)}, rounds
        )

    def _timed(self, side: Callable[[], object]) -> Took:
        self._path.unlink()
        return timed(side)

    def _run(self) -> list[Any]:
        return run(self._operations, self._path)

    def _bare(self) -> None:
        insert_bare(self._path, self._tables)


def main() -> None:
    given = arguments(__doc__, 100_000)
    operations = delivered(given.size)
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(Path(folder), operations)
        measured = comparison.measure(given.rounds)
    run_seconds, bare_seconds = middle(measured["run"]), middle(measured["bare"])
    line = {
        "ratio": rounded(bare_seconds / run_seconds),
        **sides(**measured),
        "operations": len(operations),
        "entries": comparison.entries,
        "rows": comparison.rows,
        "run_entries_per_second": round(comparison.entries / run_seconds),
        "bare_entries_per_second": round(comparison.entries / bare_seconds),
        "garbage_collector": "off on both sides",
    }
    print_line("run_rate", "bare_seconds / run_seconds >= 0.5", line)


if __name__ == "__main__":
    main()
