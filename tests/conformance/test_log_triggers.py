"""The database itself refuses to change what was logged, and verify notices when it no longer would."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher import head, run
from dispatcher.audit.verify import verify
from dispatcher.log.schema import TRIGGERS
from tests.forgery import connect, make
from tests.ramdisk import ramdisk

LAST = 600
COLUMNS = "ts, type, version, endpoint_id, delivery_id, data, hash"


@pytest.fixture
def file() -> Iterator[Path]:
    with ramdisk() as folder:
        make("live", folder / "log.db")
        yield folder / "log.db"


def _insert(position: str, how: str = "INSERT") -> str:
    return f"{how} INTO dispatcher_log SELECT {position}, {COLUMNS} FROM dispatcher_log WHERE position = 300"


REFUSED = {
    "an update": "UPDATE dispatcher_log SET data = '{}' WHERE position = 300",
    "an update to the same": "UPDATE dispatcher_log SET ts = ts WHERE position = 300",
    "an update of the position": "UPDATE dispatcher_log SET position = 601 WHERE position = 600",
    "an update of the rowid": "UPDATE dispatcher_log SET rowid = 601 WHERE position = 600",
    "an update that replaces": "UPDATE OR REPLACE dispatcher_log SET position = 299 WHERE position = 300",
    "an update that ignores": "UPDATE OR IGNORE dispatcher_log SET data = '{}' WHERE position = 300",
    "a deletion": "DELETE FROM dispatcher_log WHERE position = 300",
    "a deletion of the last": "DELETE FROM dispatcher_log WHERE position = 600",
    "a deletion of all": "DELETE FROM dispatcher_log",
    "a position that is taken": _insert("300"),
    "the last position again": _insert("600"),
    "a replacement": _insert("300", "INSERT OR REPLACE"),
    "a replacement of the last": _insert("600", "REPLACE"),
    "an insertion that ignores": _insert("300", "INSERT OR IGNORE"),
    "an insertion that ignores the last": _insert("600", "INSERT OR IGNORE"),
    "an insertion that fails": _insert("300", "INSERT OR FAIL"),
    "an insertion that rolls back": _insert("300", "INSERT OR ROLLBACK"),
    "an insertion that updates": _insert("300") + " ON CONFLICT (position) DO UPDATE SET data = '{}'",
    "an insertion that does nothing": _insert("300") + " ON CONFLICT DO NOTHING",
    "a gap": _insert("602"),
    "a gap that ignores": _insert("602", "INSERT OR IGNORE"),
    "a gap that replaces": _insert("602", "INSERT OR REPLACE"),
    "a position below all": _insert("0"),
    "a negative position": _insert("-1"),
    "no position": _insert("NULL"),
    "a position as text": _insert("'601x'"),
}


@pytest.mark.parametrize("recursive", ["ON", "OFF"])
@pytest.mark.parametrize("attempt", REFUSED)
def test_the_log_refuses(file: Path, attempt: str, recursive: str) -> None:
    before = head(file)
    with closing(connect(file)) as connection:
        connection.execute(f"PRAGMA recursive_triggers = {recursive}")
        with pytest.raises(sqlite3.DatabaseError):
            connection.execute(REFUSED[attempt])
        assert connection.execute("SELECT count(*) FROM dispatcher_log").fetchone() == (LAST,)
    assert head(file) == before
    assert verify(file, kept_head=before).findings == []


def test_the_log_accepts_the_next_position(file: Path) -> None:
    with closing(connect(file)) as connection:
        connection.execute(_insert("601"))
        assert connection.execute("SELECT count(*) FROM dispatcher_log").fetchone() == (LAST + 1,)


def test_several_rows_in_one_statement_must_follow_each_other(file: Path) -> None:
    with closing(connect(file)) as connection:
        rows = f"SELECT {{}}, {COLUMNS} FROM dispatcher_log WHERE position <= 3"
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute("INSERT INTO dispatcher_log " + rows.format("600 + 2 * position"))
        assert connection.execute("SELECT count(*) FROM dispatcher_log").fetchone() == (LAST,)
        connection.execute("INSERT INTO dispatcher_log " + rows.format("600 + position"))
        assert connection.execute("SELECT max(position) FROM dispatcher_log").fetchone() == (LAST + 3,)


NAMES = [trigger.split()[2] for trigger in TRIGGERS]


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_trigger_is_found(file: Path, name: str) -> None:
    with closing(connect(file)) as connection:
        connection.execute(f"DROP TRIGGER {name}")
    (found,) = verify(file).findings
    assert found.position is None
    assert name in found.message


@pytest.mark.parametrize("trigger", TRIGGERS, ids=NAMES)
def test_a_trigger_that_was_made_harmless_is_found(file: Path, trigger: str) -> None:
    with closing(connect(file)) as connection:
        connection.execute(f"DROP TRIGGER {trigger.split()[2]}")
        connection.execute(
            trigger.replace("RAISE(ABORT", "RAISE(IGNORE) --", 1).replace("'); END", "\n; END")
        )
    assert len(verify(file).findings) == 1


def test_all_missing_triggers_are_found_in_an_empty_log_as_well(tmp_path: Path) -> None:
    place = tmp_path / "log.db"
    run([], place)
    assert verify(place).findings == []
    with closing(connect(place)) as connection:
        for name in NAMES:
            connection.execute(f"DROP TRIGGER {name}")
    assert len(verify(place).findings) == len(NAMES)
