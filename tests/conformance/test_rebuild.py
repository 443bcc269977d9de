"""Views and tiles made again from the log: whatever was done to them, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dispatcher import head, run
from dispatcher.audit.verify import verify
from dispatcher.core.entries import Kind
from dispatcher.errors import DatabaseMissing, LogCorrupt
from dispatcher.log.rebuild import rebuild
from tests.forgery import connect, forge, make
from tests.ramdisk import ramdisk

TABLES = ("dispatcher_endpoints", "dispatcher_lanes", "dispatcher_deliveries", "dispatcher_tiles")
KINDS: tuple[Kind, ...] = ("simulated", "live")


@pytest.fixture(params=KINDS)
def file(request: pytest.FixtureRequest) -> Iterator[Path]:
    with ramdisk() as folder:
        make(request.param, folder / "log.db")
        yield folder / "log.db"


def _contents(file: Path) -> dict[str, list[Any]]:
    with closing(connect(file)) as connection:
        return {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in ("dispatcher_log", *TABLES)
        }


def _counts(file: Path) -> dict[str, int]:
    contents = _contents(file)
    return {table: len(contents[table]) for table in TABLES}


def test_what_is_right_is_written_again_and_none_of_it_was_wrong(file: Path) -> None:
    before, kept = _contents(file), head(file)
    assert rebuild(file) == {table: (count, 0) for table, count in _counts(file).items()}
    assert _contents(file) == before
    assert head(file) == kept


LAST_TWO = "SELECT position FROM dispatcher_deliveries ORDER BY position DESC LIMIT 2"

DAMAGES: dict[str, tuple[dict[str, int], list[str]]] = {
    "changed values": (
        {"dispatcher_endpoints": 4, "dispatcher_deliveries": 2, "dispatcher_tiles": 1},
        [
            "UPDATE dispatcher_endpoints SET pending = pending + 1",
            f"UPDATE dispatcher_deliveries SET attempts = 9 WHERE position IN ({LAST_TWO})",
            "UPDATE dispatcher_tiles SET hash = zeroblob(32) WHERE number = 1",
        ],
    ),
    "missing rows": (
        {"dispatcher_endpoints": 1, "dispatcher_tiles": 1},
        [
            "DELETE FROM dispatcher_endpoints WHERE endpoint_id = 'a'",
            "DELETE FROM dispatcher_tiles WHERE number = 0",
        ],
    ),
    "rows too many": (
        {"dispatcher_lanes": 1, "dispatcher_tiles": 1},
        [
            "INSERT INTO dispatcher_lanes VALUES ('b', 'key:new', 5, 5, 0)",
            "INSERT INTO dispatcher_tiles VALUES (8, 9, zeroblob(32))",
        ],
    ),
    "values of the wrong type": (
        {"dispatcher_endpoints": 1},
        ["UPDATE dispatcher_endpoints SET url = x'ff', resumed_at = 'word' WHERE endpoint_id = 'a'"],
    ),
    "bytes that are no text in a view": (
        {"dispatcher_endpoints": 1},
        ["UPDATE dispatcher_endpoints SET url = CAST(x'ff' AS TEXT) WHERE endpoint_id = 'a'"],
    ),
    "bytes that are no text in a tile": (
        {"dispatcher_tiles": 1},
        ["UPDATE dispatcher_tiles SET hash = CAST(x'ff' AS TEXT) WHERE number = 1"],
    ),
    "an odd level of a tile": (
        {"dispatcher_tiles": 2},
        ["UPDATE dispatcher_tiles SET level = 'word' WHERE number = 1"],
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_wrong_is_counted_and_repaired_and_nothing_is_appended(file: Path, damage: str) -> None:
    before, kept = _contents(file), head(file)
    wrong, statements = DAMAGES[damage]
    forge(file, *statements)
    assert verify(file).findings != []
    repaired = rebuild(file)
    assert {table: found for table, (_, found) in repaired.items() if found} == wrong
    assert {table: count for table, (count, _) in repaired.items()} == _counts(file)
    assert _contents(file) == before
    assert head(file) == kept
    assert verify(file, kept_head=kept).findings == []


@pytest.mark.parametrize("table", TABLES)
def test_an_emptied_table_is_filled_again(file: Path, table: str) -> None:
    before = _contents(file)
    forge(file, f"DELETE FROM {table}")
    written, wrong = rebuild(file)[table]
    assert written == wrong == len(before[table])
    assert _contents(file) == before


def test_work_goes_on_after_a_rebuild() -> None:
    with ramdisk() as folder:
        file, whole = folder / "damaged.db", folder / "whole.db"
        make("simulated", file)
        make("simulated", whole)
        forge(file, "DELETE FROM dispatcher_lanes", "UPDATE dispatcher_endpoints SET next_due_at = NULL")
        rebuild(file)
        later = [["process", 10**6], ["enable", 10**6, "d", True], ["process", 10**6], ["process", 2 * 10**6]]
        assert run(later, file) == run(later, whole)
        assert head(file) == head(whole)


def test_a_log_that_cannot_be_folded_is_left_alone(file: Path) -> None:
    forge(
        file,
        "UPDATE dispatcher_log SET type = 'Unknown' WHERE position = 300",
        "DELETE FROM dispatcher_lanes",
    )
    before = _contents(file)
    with pytest.raises(LogCorrupt) as caught:
        rebuild(file)
    assert caught.value.position == 300
    assert _contents(file) == before


def test_a_log_with_a_gap_is_left_alone(file: Path) -> None:
    """What follows a gap would be folded to other positions than it has."""
    forge(file, "DELETE FROM dispatcher_log WHERE position = 590", "DELETE FROM dispatcher_lanes")
    before = _contents(file)
    with pytest.raises(LogCorrupt) as caught:
        rebuild(file)
    assert caught.value.position == 590
    assert _contents(file) == before


def test_where_there_is_no_database_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(DatabaseMissing):
        rebuild(tmp_path / "log.db")
    assert list(tmp_path.iterdir()) == []
