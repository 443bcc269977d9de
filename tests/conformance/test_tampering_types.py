"""Values of the wrong type and bytes that are no text are findings like any other, and never a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Table

from dispatcher.audit.verify import verify
from dispatcher.log.schema import deliveries, endpoints, lanes
from tests.forgery import forge, make, of_the_log
from tests.ramdisk import ramdisk

FIRST, MIDDLE, LAST = 1, 300, 600

ODD_VALUES = {
    "bytes": "x'ff00'",
    "text in bytes": "CAST('a' AS BLOB)",
    "no UTF-8": "CAST(x'ff' AS TEXT)",
    "a word": "'word'",
    "a fraction": "1.5",
    "a long number": "9223372036854775807",
    "text with a NUL": "CAST(x'6100' AS TEXT)",
}
LOG_COLUMNS = ("ts", "type", "version", "endpoint_id", "delivery_id", "data", "hash")


@pytest.fixture
def file() -> Iterator[Path]:
    """The live log: it has several lanes at each endpoint, and most columns filled."""
    with ramdisk() as folder:
        make("live", folder / "log.db")
        yield folder / "log.db"


@pytest.mark.parametrize("position", [FIRST, MIDDLE, LAST])
@pytest.mark.parametrize("column", LOG_COLUMNS)
@pytest.mark.parametrize("value", ODD_VALUES)
def test_an_odd_value_in_the_log_is_found_where_it_is(
    file: Path, value: str, column: str, position: int
) -> None:
    forge(file, f"UPDATE dispatcher_log SET {column} = {ODD_VALUES[value]} WHERE position = {position}")
    found = of_the_log(verify(file).findings)
    assert found
    assert found[0].position == position


@pytest.mark.parametrize("column", ["endpoint_id", "delivery_id"])
def test_null_where_an_id_belongs_is_found(file: Path, column: str) -> None:
    forge(file, f"UPDATE dispatcher_log SET {column} = NULL WHERE position = {MIDDLE}")
    found = of_the_log(verify(file).findings)
    assert found
    assert found[0].position == MIDDLE


def test_a_ts_of_the_wrong_type_at_the_head_of_each_lane_is_found(file: Path) -> None:
    """Such a time cannot even be compared with those of the other lanes."""
    forge(
        file,
        "UPDATE dispatcher_log SET ts = 'word' WHERE position IN (SELECT head FROM dispatcher_lanes)",
        "UPDATE dispatcher_log SET ts = x'00' WHERE position IN (SELECT max(head) FROM dispatcher_lanes)",
    )
    assert of_the_log(verify(file).findings)


@pytest.mark.parametrize("column", ["level", "number", "hash"])
def test_odd_values_in_a_tile_are_found(file: Path, column: str) -> None:
    before = file.read_bytes()
    for odd in (*ODD_VALUES.values(), "-1"):
        file.write_bytes(before)
        forge(file, f"UPDATE dispatcher_tiles SET {column} = {odd} WHERE level = 8 AND number = 1")
        assert verify(file).findings, odd


ROWS = {
    endpoints: "endpoint_id = 'b'",
    lanes: "endpoint_id = 'b' AND lane = 'key:k'",
    deliveries: "position = (SELECT max(position) FROM dispatcher_deliveries)",
}


@pytest.mark.parametrize("table", ROWS, ids=str)
@pytest.mark.parametrize("value", ["bytes", "no UTF-8", "a word", "a long number"])
def test_odd_values_in_any_column_of_a_view_are_found(file: Path, value: str, table: Table) -> None:
    before = file.read_bytes()
    for column in [column.name for column in table.columns]:
        if column == "position" and value != "a long number":
            continue  # SQLite itself allows nothing but whole numbers there
        file.write_bytes(before)
        forge(file, f"UPDATE {table} SET {column} = {ODD_VALUES[value]} WHERE {ROWS[table]}")
        assert verify(file).findings, column


def test_counters_too_large_to_be_added_up_are_found(file: Path) -> None:
    forge(file, "UPDATE dispatcher_endpoints SET pending = 9223372036854775807")
    assert verify(file).findings
