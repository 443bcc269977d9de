"""Noticing what others commit."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from dispatcher.log.open import Database


def _write(file: Path) -> None:
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE IF NOT EXISTS theirs (a)")
        other.execute("INSERT INTO theirs VALUES (1)")
        other.commit()


def test_a_commit_of_another_connection_is_noticed_once(memory_folder: Path) -> None:
    file = memory_folder / "live.db"
    with Database(file) as database, closing(database.watch()) as watch:
        assert not watch.changed()
        _write(file)
        assert watch.changed()
        assert not watch.changed()


def test_what_is_undone_or_writes_nothing_is_no_change(memory_folder: Path) -> None:
    file = memory_folder / "live.db"
    with Database(file) as database, closing(database.watch()) as watch:
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("CREATE TABLE theirs (a)")
            other.execute("ROLLBACK")
        with database.write():
            """A turn with nothing to do."""
        assert not watch.changed()


def test_when_it_cannot_be_told_it_may_have_changed(memory_folder: Path) -> None:
    with Database(memory_folder / "live.db") as database:
        watch = database.watch()
        watch.close()
        assert watch.changed()
        assert watch.changed()
