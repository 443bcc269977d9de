"""The views must say what the log says: each row and each column of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher.audit.verify import verify
from dispatcher.log.schema import deliveries, endpoints, lanes
from tests.forgery import connect, forge, make
from tests.ramdisk import ramdisk

LAST = "(SELECT max(position) FROM dispatcher_deliveries)"
FIRST = "(SELECT min(position) FROM dispatcher_deliveries)"
LAST_DEAD = "(SELECT max(position) FROM dispatcher_deliveries WHERE state = 'dead')"

# One row of each table, chosen so that it has a value in every column that can have one.
ROWS = {
    "dispatcher_endpoints": "endpoint_id = 'b'",
    "dispatcher_lanes": "endpoint_id = 'b' AND lane = 'key:k'",
    "dispatcher_deliveries": f"position = {LAST_DEAD}",
}
COLUMNS = [(table.name, column.name) for table in (endpoints, lanes, deliveries) for column in table.columns]


@pytest.fixture
def file() -> Iterator[Path]:
    with ramdisk() as folder:
        make("live", folder / "log.db")
        yield folder / "log.db"


def _born(file: Path, table: str) -> int | None:
    """The position of the entry that the row began with, where its table keeps one."""
    column = {"dispatcher_endpoints": "registered", "dispatcher_deliveries": "position"}.get(table)
    if column is None:
        return None
    with closing(connect(file)) as connection:
        position: int = connection.execute(f"SELECT {column} FROM {table} WHERE {ROWS[table]}").fetchone()[0]
        return position


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_changed_value_is_found_and_named(file: Path, table: str, column: str) -> None:
    born = _born(file, table)
    forge(
        file,
        f"UPDATE {table} SET {column} = CASE typeof({column}) WHEN 'null' THEN 7"
        f" WHEN 'integer' THEN {column} + 100000 ELSE {column} || 'x' END WHERE {ROWS[table]}",
    )
    found = [f for f in verify(file).findings if f.message.startswith(f"{table}: ")]
    assert found
    keys = {"dispatcher_endpoints": {"endpoint_id"}, "dispatcher_lanes": {"endpoint_id", "lane"}}
    if column in keys.get(table, {"position"}):
        assert len(found) == 2, "one row too many, and one too few"
    else:
        assert [f.position for f in found] == [born]
        assert found[0].message.endswith(f"differs from the log in {column}")


NULLABLE = [
    (table.name, c.name) for table in (endpoints, lanes, deliveries) for c in table.columns if c.nullable
]


@pytest.mark.parametrize(("table", "column"), NULLABLE)
def test_a_value_taken_away_is_found(file: Path, table: str, column: str) -> None:
    if column == "outcomes":
        make("simulated", file)  # only there are any
    forge(file, f"UPDATE {table} SET {column} = NULL WHERE {column} IS NOT NULL")
    messages = [f.message for f in verify(file).findings]
    assert any(message.endswith(f"differs from the log in {column}") for message in messages)


@pytest.mark.parametrize("table", ROWS)
def test_a_missing_row_is_found(file: Path, table: str) -> None:
    born = _born(file, table)
    forge(file, f"DELETE FROM {table} WHERE {ROWS[table]}")
    found = [f for f in verify(file).findings if f.message.startswith(f"{table}: ")]
    assert [f.position for f in found] == [born]
    assert found[0].message.endswith("is missing")


def test_the_row_is_named_by_what_it_is_of(file: Path) -> None:
    with closing(connect(file)) as connection:
        (delivery,) = connection.execute(
            f"SELECT delivery_id FROM dispatcher_deliveries WHERE position = {LAST_DEAD}"
        ).fetchone()
    for table, named in [("dispatcher_endpoints", "b"), ("dispatcher_lanes", "b")]:
        forge(file, f"DELETE FROM {table} WHERE {ROWS[table]}")
        assert any(f"{table}: the row of {named!r} is missing" in f.message for f in verify(file).findings)
    forge(file, f"DELETE FROM dispatcher_deliveries WHERE position = {LAST_DEAD}")
    assert any(f"the row of {delivery!r} is missing" in f.message for f in verify(file).findings)


@pytest.mark.parametrize("table", ROWS)
def test_missing_rows_are_all_found(file: Path, table: str) -> None:
    with closing(connect(file)) as connection:
        count = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    forge(file, f"DELETE FROM {table}")
    found = [f for f in verify(file).findings if f.message.startswith(f"{table}: ")]
    assert len(found) == count


ADDED = {
    "dispatcher_endpoints": "INSERT INTO dispatcher_endpoints SELECT 'new', 9999, url, url_digest, policy,"
    " ordering, concurrency, erase, disable_when_gone, disabled, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL"
    " FROM dispatcher_endpoints LIMIT 1",
    "dispatcher_lanes": "INSERT INTO dispatcher_lanes VALUES ('b', 'key:new', 5, 5, 0)",
    "dispatcher_deliveries": "INSERT INTO dispatcher_deliveries SELECT 9999, 'new', endpoint_id, lane, state,"
    " attempts, due_at, resumption, death, last_status, last_error, outcomes, seed, digest, erased,"
    " event_type FROM dispatcher_deliveries LIMIT 1",
}


@pytest.mark.parametrize("table", ADDED)
def test_a_row_too_many_is_found(file: Path, table: str) -> None:
    forge(file, ADDED[table])
    found = [f for f in verify(file).findings if f.message.startswith(f"{table}: ")]
    assert len(found) == 1
    assert found[0].message.endswith("is of nothing in the log")


def test_a_difference_in_one_row_is_not_blamed_on_those_after_it(file: Path) -> None:
    forge(
        file,
        f"DELETE FROM dispatcher_deliveries WHERE position = {FIRST}",
    )
    found = [f for f in verify(file).findings if f.message.startswith("dispatcher_deliveries: ")]
    assert len(found) == 1


STATES = ("pending", "delivered", "dead", "cancelled")


@pytest.mark.parametrize("state", STATES)
def test_a_wrong_counter_is_found_by_the_count_of_rows_as_well(file: Path, state: str) -> None:
    forge(file, f"UPDATE dispatcher_endpoints SET {state} = {state} + 1 WHERE endpoint_id = 'b'")
    assert any(f.message.startswith(f"{state}: ") for f in verify(file).findings)


def test_a_lost_event_is_found_by_the_count_of_entries_as_well(file: Path) -> None:
    forge(
        file,
        f"DELETE FROM dispatcher_deliveries WHERE position = {LAST}",
    )
    assert any("events were enqueued" in f.message for f in verify(file).findings)
