"""The view tables and tiles, made again from the log."""

from __future__ import annotations

from sqlalchemy import Connection, Table

from dispatcher.core.merkle import Frontier, Tile
from dispatcher.log.compare import differences, view_rows
from dispatcher.log.fold import Progress, fold
from dispatcher.log.open import Database, Target
from dispatcher.log.read import last_entry, rows, stored_tiles
from dispatcher.log.rows import Row, insert_rows
from dispatcher.log.schema import VIEW_TABLES, tiles


def rebuild(target: Target, progress: Progress | None = None) -> dict[str, tuple[int, int]]:
    """Make the views and tiles say what the log says, in one transaction; it appends nothing.

    Returns for each table (rows written, rows that were wrong before). Raises LogCorrupt when the log itself
    can't be folded; then nothing was changed.
    """
    with Database(target, "write", tolerant=True) as database, database.write() as connection:
        state = fold(connection, progress=progress)
        wrong = dict.fromkeys((table.name for table in VIEW_TABLES), 0)
        for difference in differences(connection, state):
            wrong[difference.table] += 1
        result = {}
        for table, _, expected in view_rows(state):
            result[table.name] = (_replace(connection, table, list(expected)), wrong[table.name])
        kept = set(stored_tiles(connection))
        completed: list[Tile] = []
        frontier = Frontier()
        for batch in rows(connection, 0, last_entry(connection)[0], "hash"):
            completed += frontier.extend(leaf for (leaf,) in batch)
        wanted = set(completed)
        result[tiles.name] = (
            _replace(connection, tiles, sorted(wanted)),
            len({tile[:2] for tile in kept ^ wanted}),
        )
        return result


def _replace(connection: Connection, table: Table, expected: list[Row]) -> int:
    connection.exec_driver_sql(f"DELETE FROM {table.name}")
    insert_rows(connection, table, expected)
    return len(expected)
