"""Up, down and up again, from every revision: nothing is lost, and the log stays protected."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from dispatcher import run
from dispatcher.audit.verify import verify
from dispatcher.log import migrate
from tests.migration import databases
from tests.migration.conftest import NEXT, NEXT_SCRIPT
from tests.migration.databases import APPLICATION, CONTINUED, HELD, HISTORY, USED, Contents

every_revision = pytest.mark.parametrize("revision", sorted(migrate.known_revisions()))
first_revision = "0001"


@every_revision
def test_a_populated_database_survives_up_down_up(revision: str, tmp_path: Path) -> None:
    _up_down_up(tmp_path / "app.db", revision)


@every_revision
def test_a_log_written_since_survives_down_and_up(revision: str, tmp_path: Path) -> None:
    _down_up(tmp_path / "app.db", revision)


def test_these_tests_reach_the_revisions_to_come(release: Callable[[str], None], tmp_path: Path) -> None:
    release(NEXT_SCRIPT)
    _up_down_up(tmp_path / "app.db", NEXT)
    _down_up(tmp_path / "other.db", NEXT)


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM customers WHERE id = 2",
        "DELETE FROM dispatcher_endpoints WHERE endpoint_id = 'mail'",
        "DROP TRIGGER dispatcher_log_no_delete",
        "DELETE FROM sqlite_sequence",
    ],
)
def test_these_tests_would_notice_a_loss(harm: str, release: Callable[[str], None], tmp_path: Path) -> None:
    release(NEXT_SCRIPT.replace("\n\n\ndef downgrade", f'\n    op.execute("{harm}")\n\n\ndef downgrade'))
    with pytest.raises(AssertionError):
        _up_down_up(tmp_path / "app.db", NEXT)


def test_a_log_with_entries_is_not_taken_away(tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    databases.make(database, APPLICATION)
    databases.upgrade(database, first_revision)
    databases.populate(database, first_revision)
    before = databases.contents(database)
    with pytest.raises(CommandError, match="dispatcher_log holds entries"):
        databases.downgrade(database, "base")
    assert databases.contents(database) == before


def test_a_vault_with_endpoints_is_not_taken_away(tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    databases.upgrade(database, "0002")
    databases.populate(database, "0002")
    before = databases.contents(database)
    with pytest.raises(CommandError, match="the vault holds endpoints"):
        databases.downgrade(database, "0001")
    assert databases.contents(database) == before


def test_an_inbox_with_events_is_not_taken_away(tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    databases.upgrade(database, "0003")
    databases.populate(database, "0003")
    before = databases.contents(database)
    with pytest.raises(CommandError, match="the inbox holds events"):
        databases.downgrade(database, "0002")
    assert databases.contents(database) == before


@pytest.mark.parametrize(
    "used",
    ["endpoints SET types = '[]'", "endpoints SET keep_payloads = 5", "deliveries SET event_type = 'a'"],
)
def test_what_an_older_release_would_not_know_of_is_not_taken_away(used: str, tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    databases.upgrade(database, "0003")
    databases.populate(database, "0003")
    databases.make(database, "DELETE FROM dispatcher_inbox")
    databases.make(database, f"UPDATE dispatcher_{used}")
    before = databases.contents(database)
    with pytest.raises(CommandError, match="the log names event types, formats or times of keeping"):
        databases.downgrade(database, "0002")
    assert databases.contents(database) == before


def test_what_was_erased_before_is_not_taken_for_scrubbed(tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    databases.upgrade(database, "0002")
    databases.populate(database, "0002")
    databases.make(database, "UPDATE dispatcher_deliveries SET erased = 1 WHERE delivery_id = 'sent'")
    databases.upgrade(database, "0003")
    assert databases.contents(database).rows["dispatcher_unscrubbed"] == [(5,)]


def test_what_is_sealed_and_claimed_survives_the_revisions_to_come(
    release: Callable[[str], None], tmp_path: Path
) -> None:
    database = tmp_path / "app.db"
    current = databases.newest_revision()
    databases.upgrade(database, current)
    databases.populate(database, current)
    before = databases.contents(database)
    assert all(before.rows[line.split()[2]] for line in HELD.splitlines() if line.startswith("INSERT"))
    release(NEXT_SCRIPT)
    databases.upgrade(database, NEXT)
    after = databases.contents(database)
    for table in {line.split()[2] for line in HELD.splitlines() if line.startswith("INSERT")}:
        assert after.rows[table] == before.rows[table]
    sequences = [("dispatcher_claims", 7), ("dispatcher_inbox_keys", 3)]
    assert after.rows["sqlite_sequence"] == sequences, "neither a fence nor a number is ever used again"


def test_without_entries_the_dispatchers_own_objects_go_and_nothing_else(tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    databases.make(database, APPLICATION)
    before = databases.contents(database)
    databases.upgrade(database, first_revision)
    databases.downgrade(database, "base")
    assert databases.contents(database) == before
    assert run(HISTORY, database)[0] is True, "and a log can be made there again"


@every_revision
def test_the_rows_kept_for_a_revision_are_a_log_that_this_release_continues(
    revision: str, tmp_path: Path
) -> None:
    database = tmp_path / "kept.db"
    databases.upgrade(database, revision)
    databases.make(database, databases.rows_kept(revision).read_text(encoding="utf-8"))
    migrate.upgrade(database)
    assert verify(database).findings == [], "before its release: python -m tests.migration.databases"
    assert run(CONTINUED, database) == run([*HISTORY, *CONTINUED])[len(HISTORY) :]


def _up_down_up(database: Path, revision: str) -> None:
    """From the revision before, with data, to this one, back, and here again."""
    before = _before(revision)
    databases.make(database, APPLICATION)
    if before is not None:
        databases.upgrade(database, before)
        databases.make(database, databases.rows_kept(before).read_text(encoding="utf-8"))
        databases.make(database, USED)
    old = databases.contents(database)
    databases.upgrade(database, revision)
    new = databases.contents(database)
    _assert_nothing_lost(old, new)
    databases.downgrade(database, before or "base")
    assert databases.contents(database) == old
    databases.upgrade(database, revision)
    assert databases.contents(database) == new
    if before is not None:
        _assert_positions_are_never_reused(database)


def _down_up(database: Path, revision: str) -> None:
    """From this revision, with data that was written in it, to the one before, and here again."""
    databases.make(database, APPLICATION)
    databases.upgrade(database, revision)
    databases.populate(database, revision)
    databases.make(database, USED)
    before = _before(revision)
    if before is not None:
        _empty_what_is_not_in(before, database)
    new = databases.contents(database)
    if before is not None:
        databases.downgrade(database, before)
        _assert_nothing_lost(databases.contents(database), new)
        databases.upgrade(database, revision)
        assert databases.contents(database) == new
    _assert_positions_are_never_reused(database)
    if revision == databases.newest_revision():
        assert run(CONTINUED, database) == run([*HISTORY, *CONTINUED])[len(HISTORY) :]


def _empty_what_is_not_in(before: str, database: Path) -> None:
    """A table that the older schema lacks has nowhere to leave its rows."""
    older = database.with_name("older.db")
    databases.upgrade(older, before)
    kept = databases.contents(older).rows
    for table in databases.contents(database).rows:
        if table.startswith("dispatcher_") and table not in kept:
            databases.make(database, f"DELETE FROM {table}")
            databases.make(database, f"DELETE FROM sqlite_sequence WHERE name = '{table}'")


def _before(revision: str) -> str | None:
    found = ScriptDirectory(str(migrate.SCRIPTS)).get_revision(revision).down_revision
    assert found is None or isinstance(found, str), "revisions are one line, without branches"
    return found


def _assert_nothing_lost(old: Contents, new: Contents) -> None:
    """The newer schema holds what the older one did: the log and the application's rows to the letter."""
    assert old.broken_references == new.broken_references == []
    for table, rows in old.rows.items():
        assert len(new.rows[table]) == len(rows), table
        if table == "dispatcher_log" or not table.startswith("dispatcher_"):
            assert new.rows[table] == rows, table
    kept = [row for row in old.master if row[0] == "trigger" or not row[1].startswith("dispatcher_")]
    assert set(kept) <= set(new.master)


def _assert_positions_are_never_reused(database: Path) -> None:
    columns = "ts, type, version, endpoint_id, delivery_id, data, hash"
    copy = f"SELECT {{}}, {columns} FROM dispatcher_log ORDER BY position DESC LIMIT 1"
    before = databases.contents(database)
    with closing(sqlite3.connect(database)) as connection:
        (top,) = connection.execute("SELECT max(position) FROM dispatcher_log").fetchone()
        for forbidden in (
            f"DELETE FROM dispatcher_log WHERE position = {top}",
            f"UPDATE dispatcher_log SET ts = ts + 1 WHERE position = {top}",
            f"INSERT INTO dispatcher_log (position, {columns}) {copy.format('position')}",
            f"INSERT OR REPLACE INTO dispatcher_log (position, {columns}) {copy.format('position')}",
            f"INSERT INTO dispatcher_log (position, {columns}) {copy.format('position + 2')}",
            f"INSERT INTO dispatcher_log (position, {columns}) {copy.format('NULL')}",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="dispatcher_log: "):
                connection.execute(forbidden)
    assert databases.contents(database) == before
