"""Whatever is done to a log behind the program's back is found, at its position."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher import head
from dispatcher.audit.verify import verify
from dispatcher.core.entries import Kind
from dispatcher.errors import LogCorrupt
from tests.forgery import ENTRIES, forge, make, of_the_log, rows_of_log
from tests.ramdisk import ramdisk

KINDS: tuple[Kind, ...] = ("simulated", "live")
REST = "ts, type, version, endpoint_id, delivery_id, data, hash"
FIRST, MIDDLE, AFTER_THE_TILES = 1, 300, 590


@pytest.fixture(params=KINDS)
def file(request: pytest.FixtureRequest) -> Iterator[Path]:
    with ramdisk() as folder:
        make(request.param, folder / "log.db")
        yield folder / "log.db"


def _first_found(file: Path) -> int | None:
    """The first position at which something is said to be wrong with the log itself."""
    found = of_the_log(verify(file).findings)
    return found[0].position if found else None


def test_a_valid_log_is_found_valid(file: Path) -> None:
    verified = verify(file)
    assert verified.findings == []
    assert verified.entries >= ENTRIES
    assert verified.head.startswith(f"{verified.entries}:")


CHANGES = {
    "a later ts": "ts = ts + 1",
    "an earlier ts": "ts = ts - 1",
    "the ts as text": "ts = 'now'",
    "another type": "type = 'Cancelled'",
    "a type that does not exist": "type = 'Enqueue'",
    "no type": "type = ''",
    "another version": "version = 2",
    "a version beyond all": "version = 9223372036854775807",
    "another endpoint": "endpoint_id = 'd2'",
    "no endpoint": "endpoint_id = CASE WHEN endpoint_id IS NULL THEN 'a' END",
    "an empty endpoint": "endpoint_id = ''",
    "another delivery": "delivery_id = 'e0-2'",
    "no delivery, or one": "delivery_id = CASE WHEN delivery_id IS NULL THEN 'a' END",
    "a space in the data": "data = replace(data, '{', '{ ')",
    "data cut short": "data = substr(data, 1, length(data) - 1)",
    "no data": "data = ''",
    "data that is no object": "data = '[]'",
    "another hash": "hash = zeroblob(32)",
    "a shorter hash": "hash = substr(hash, 1, 31)",
    "no hash": "hash = x''",
}


@pytest.mark.parametrize("position", [FIRST, MIDDLE, AFTER_THE_TILES])
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_value_is_found_where_it_is(file: Path, change: str, position: int) -> None:
    forge(file, f"UPDATE dispatcher_log SET {CHANGES[change]} WHERE position = {position}")
    assert _first_found(file) == position


@pytest.mark.parametrize("column", ["ts", "type", "version", "endpoint_id", "delivery_id", "data", "hash"])
def test_a_value_exchanged_with_that_of_another_entry_is_found(file: Path, column: str) -> None:
    rows = rows_of_log(file)
    mine = getattr(rows[MIDDLE - 1], column)
    other = next((getattr(row, column) for row in rows if getattr(row, column) != mine), None)
    if other is None:
        other = 2  # only the version is the same everywhere
    forge(file, f"UPDATE dispatcher_log SET {column} = ? WHERE position = {MIDDLE}", parameters=(other,))
    assert _first_found(file) == MIDDLE


@pytest.mark.parametrize("position", [FIRST, 2, MIDDLE, AFTER_THE_TILES])
def test_a_missing_entry_is_found_where_it_was(file: Path, position: int) -> None:
    forge(file, f"DELETE FROM dispatcher_log WHERE position = {position}")
    assert _first_found(file) == position


def test_a_missing_run_of_entries_is_found_where_it_began(file: Path) -> None:
    forge(file, "DELETE FROM dispatcher_log WHERE position BETWEEN 257 AND 512")
    assert _first_found(file) == 257


@pytest.mark.parametrize("position", [FIRST, MIDDLE])
def test_a_missing_entry_is_found_though_those_after_it_moved_up(file: Path, position: int) -> None:
    forge(
        file,
        f"DELETE FROM dispatcher_log WHERE position = {position}",
        f"UPDATE dispatcher_log SET position = -position WHERE position > {position}",
        "UPDATE dispatcher_log SET position = -position - 1 WHERE position < 0",
    )
    assert _first_found(file) == position


@pytest.mark.parametrize("position", [FIRST, MIDDLE])
def test_an_inserted_entry_is_found_though_those_after_it_made_room(file: Path, position: int) -> None:
    forge(
        file,
        f"UPDATE dispatcher_log SET position = -position WHERE position >= {position}",
        "UPDATE dispatcher_log SET position = -position + 1 WHERE position < 0",
        f"INSERT INTO dispatcher_log SELECT {position}, {REST} FROM dispatcher_log"
        f" WHERE position = {position + 5}",
    )
    assert _first_found(file) == position


@pytest.mark.parametrize("gap", [0, 1, 5])
def test_an_entry_put_at_the_end_without_its_hash_is_found(file: Path, gap: int) -> None:
    last = len(rows_of_log(file))
    forge(
        file,
        f"INSERT INTO dispatcher_log SELECT {last + 1 + gap}, {REST} FROM dispatcher_log"
        f" WHERE position = {last}",
    )
    assert _first_found(file) == last + 1


@pytest.mark.parametrize("position", [0, -1, -(2**63)])
def test_an_entry_put_before_the_first_is_found(file: Path, position: int) -> None:
    forge(
        file,
        f"INSERT INTO dispatcher_log SELECT {position}, ts, 'Cancelled', 1, 'a', 'e0', '{{}}', hash"
        " FROM dispatcher_log WHERE position = 3",
    )
    assert verify(file).findings != []


def test_an_entry_moved_before_the_first_is_found(file: Path) -> None:
    forge(file, f"UPDATE dispatcher_log SET position = 0 WHERE position = {MIDDLE}")
    assert _first_found(file) == 0


def test_a_replaced_entry_is_found(file: Path) -> None:
    forge(
        file,
        f"INSERT OR REPLACE INTO dispatcher_log SELECT {MIDDLE}, {REST} FROM dispatcher_log"
        f" WHERE position = {MIDDLE + 7}",
    )
    assert _first_found(file) == MIDDLE


@pytest.mark.parametrize("position", [2, MIDDLE, AFTER_THE_TILES])
def test_two_swapped_entries_are_found_at_the_earlier_one(file: Path, position: int) -> None:
    forge(
        file,
        f"UPDATE dispatcher_log SET position = -1 WHERE position = {position}",
        f"UPDATE dispatcher_log SET position = {position} WHERE position = {position + 3}",
        f"UPDATE dispatcher_log SET position = {position + 3} WHERE position = -1",
    )
    assert _first_found(file) == position


def test_a_log_emptied_altogether_is_found(file: Path) -> None:
    forge(file, "DELETE FROM dispatcher_log")
    assert verify(file).findings != []


FIRST_TILE = "(SELECT hash FROM dispatcher_tiles WHERE number = 0)"
TILES: dict[str, tuple[str, int]] = {
    "another hash": ("UPDATE dispatcher_tiles SET hash = zeroblob(32) WHERE number = 1", 257),
    "the hash of another": (f"UPDATE dispatcher_tiles SET hash = {FIRST_TILE} WHERE number = 1", 257),
    "a shorter hash": ("UPDATE dispatcher_tiles SET hash = x'00' WHERE number = 0", 1),
    "the first missing": ("DELETE FROM dispatcher_tiles WHERE number = 0", 1),
    "the last missing": ("DELETE FROM dispatcher_tiles WHERE number = 1", 257),
    "another number": ("UPDATE dispatcher_tiles SET number = 7 WHERE number = 1", 257),
    "another level": ("UPDATE dispatcher_tiles SET level = 16 WHERE number = 1", 257),
}


@pytest.mark.parametrize("change", TILES)
def test_a_changed_tile_is_found_at_the_first_of_its_entries(file: Path, change: str) -> None:
    statement, position = TILES[change]
    forge(file, statement)
    findings = verify(file).findings
    assert next(f.position for f in findings if f.message.startswith("tile ")) == position
    assert of_the_log(findings) == [], "the entries themselves are as they were"


@pytest.mark.parametrize(("level", "number"), [(8, 2), (8, -1), (16, 0), (9, 0), (0, 5), (64, 0)])
def test_a_tile_too_many_is_found(file: Path, level: int, number: int) -> None:
    forge(file, f"INSERT INTO dispatcher_tiles VALUES ({level}, {number}, zeroblob(32))")
    (found,) = verify(file).findings
    assert f"tile {number} of level {level} " in found.message


@pytest.mark.parametrize("number", [0, 1])
def test_without_one_of_its_tiles_a_log_has_the_same_head(file: Path, number: int) -> None:
    """A wrong one, kept by somebody, would accuse a log that is whole."""
    kept = head(file)
    forge(file, f"DELETE FROM dispatcher_tiles WHERE number = {number}")
    assert head(file) == kept


def test_a_log_with_a_gap_has_no_head(file: Path) -> None:
    forge(file, f"DELETE FROM dispatcher_log WHERE position = {AFTER_THE_TILES}")
    with pytest.raises(LogCorrupt):
        head(file)


def test_findings_come_in_the_order_of_their_positions(file: Path) -> None:
    forge(
        file,
        "UPDATE dispatcher_log SET hash = zeroblob(32) WHERE position = 590",
        "UPDATE dispatcher_deliveries SET attempts = attempts + 1 WHERE position < 590",
        "DELETE FROM dispatcher_lanes",
    )
    positions = [f.position for f in verify(file).findings]
    known = [position for position in positions if position is not None]
    assert known == sorted(known)
    assert positions == [*known, *[None] * (len(positions) - len(known))]
    assert 590 in known
    assert len(set(known)) > 100


def test_a_finding_reads_as_a_line_with_its_position(file: Path) -> None:
    forge(file, f"UPDATE dispatcher_log SET data = '{{}}' WHERE position = {MIDDLE}")
    said: list[Any] = [str(finding) for finding in of_the_log(verify(file).findings)]
    assert said
    assert all(line.startswith(f"position {MIDDLE}: ") for line in said)
