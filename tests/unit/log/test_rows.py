"""Rows in steps: however many, each is written once and as it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, create_engine

from dispatcher.log.rows import delete_rows, driver, fetch_at_once, insert_rows, replace_rows, update_rows

TABLE = Table(
    "t", MetaData(), Column("a", Integer, primary_key=True), Column("b", Text), Column("c", Integer)
)
COUNTS = [0, 1, 3, 4, 5, 15, 16, 21, 63, 64, 65, 85, 200]


@pytest.fixture
def connection() -> Iterator[Connection]:
    with create_engine("sqlite://").connect() as connection:
        TABLE.create(connection)
        yield connection


def _rows(connection: Connection) -> list[tuple[int, str, int]]:
    return driver(connection).execute("SELECT a, b, c FROM t ORDER BY a").fetchall()


def _made(count: int, text: str = "x") -> list[tuple[int, str, int]]:
    return [(n, f"{text}{n}", n * n) for n in range(1, count + 1)]


@pytest.mark.parametrize("count", COUNTS)
def test_every_row_is_inserted(count: int, connection: Connection) -> None:
    insert_rows(connection, TABLE, _made(count))
    assert _rows(connection) == _made(count)


@pytest.mark.parametrize("count", COUNTS)
def test_every_row_is_updated_in_the_columns_named(count: int, connection: Connection) -> None:
    insert_rows(connection, TABLE, _made(201))
    update_rows(connection, TABLE, ("b",), [(n, f"y{n}") for n, _, _ in _made(count)])
    assert _rows(connection) == [(n, f"{'y' if n <= count else 'x'}{n}", n * n) for n, _, _ in _made(201)]


@pytest.mark.parametrize("count", COUNTS)
def test_every_row_takes_the_place_of_the_one_with_its_key(count: int, connection: Connection) -> None:
    insert_rows(connection, TABLE, _made(20))
    replace_rows(connection, TABLE, _made(count, "y"))
    assert _rows(connection) == _made(count, "y") + _made(20)[count:]


@pytest.mark.parametrize("count", COUNTS)
def test_rows_are_deleted_by_their_first_columns(count: int, connection: Connection) -> None:
    insert_rows(connection, TABLE, _made(201))
    delete_rows(connection, TABLE, [(n, text) for n, text, _ in _made(count)] + [(201, "another")])
    assert _rows(connection) == _made(201)[count:]


def test_what_is_fetched_at_once_is_what_lies_there(connection: Connection) -> None:
    rows = [(-(2**63), None, 2**63 - 1), (0, "", 0), (1, "é 😱 \x00 \"'\\\n", None)]
    insert_rows(connection, TABLE, rows)
    found = fetch_at_once(connection, "a, b, c, hex(b)", "t WHERE a < ?", (2,))
    assert [tuple(row[:3]) for row in found] == rows
    assert bytes.fromhex(found[2][3]).decode() == rows[2][1]
    assert fetch_at_once(connection, "a", "t WHERE a = ?", (9,)) == []
