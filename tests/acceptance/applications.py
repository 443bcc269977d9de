"""Applications with a table of their own in the database, each with its own way to reach it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import create_engine, event, text
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from tests.acceptance.lively import rows

WAIT_SECONDS = 20


class Application(NamedTuple):
    """An application: what it hands over as its connection, and its own steps."""

    connection: Any
    order: Callable[[int], object]
    """Write a row of its own; that begins a transaction if there is none."""
    commit: Callable[[], object]
    rollback: Callable[[], object]


@contextmanager
def _sqlite3(database: Path, **options: Any) -> Iterator[Application]:
    with closing(sqlite3.connect(database, timeout=WAIT_SECONDS, **options)) as connection:

        def order(n: int) -> None:
            connection.execute("INSERT INTO orders VALUES (?)", (n,))

        yield Application(connection, order, connection.commit, connection.rollback)


@contextmanager
def _with_rows_as_dicts(database: Path) -> Iterator[Application]:
    with _sqlite3(database) as application:
        application.connection.row_factory = lambda cursor, row: {"only": row}
        application.connection.text_factory = bytes
        yield application


@contextmanager
def _begun_by_hand(database: Path) -> Iterator[Application]:
    with _sqlite3(database, isolation_level=None) as application:
        connection = application.connection

        def order(n: int) -> None:
            if not connection.in_transaction:
                connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO orders VALUES (?)", (n,))

        yield application._replace(order=order)


def _ordering(execute: Callable[..., object]) -> Callable[[int], object]:
    return lambda n: execute(text("INSERT INTO orders VALUES (:n)"), {"n": n})


@contextmanager
def _sqlalchemy(database: Path) -> Iterator[Application]:
    engine = create_engine(f"sqlite:///{database}", connect_args={"timeout": WAIT_SECONDS})
    with closing(engine.connect()) as connection:
        yield Application(connection, _ordering(connection.execute), connection.commit, connection.rollback)
    engine.dispose()


@contextmanager
def _sqlalchemy_immediate(database: Path) -> Iterator[Application]:
    """As SQLAlchemy's documentation has it for transactions that read first."""
    engine = create_engine(f"sqlite:///{database}", connect_args={"isolation_level": None})
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    with closing(engine.connect()) as connection:
        yield Application(connection, _ordering(connection.execute), connection.commit, connection.rollback)
    engine.dispose()


@contextmanager
def _session(database: Path) -> Iterator[Application]:
    engine = create_engine(f"sqlite:///{database}")
    with Session(engine) as session:
        yield Application(session, _ordering(session.execute), session.commit, session.rollback)
    engine.dispose()


@contextmanager
def _scoped_session(database: Path) -> Iterator[Application]:
    engine = create_engine(f"sqlite:///{database}")
    session = scoped_session(sessionmaker(engine))
    yield Application(session, _ordering(session.execute), session.commit, session.rollback)
    session.remove()
    engine.dispose()


KINDS: dict[str, Callable[[Path], AbstractContextManager[Application]]] = {
    "sqlite3": _sqlite3,
    "sqlite3 with rows as dicts": _with_rows_as_dicts,
    "sqlite3 begun by hand": _begun_by_hand,
    "SQLAlchemy": _sqlalchemy,
    "SQLAlchemy, immediate": _sqlalchemy_immediate,
    "Session": _session,
    "scoped_session": _scoped_session,
}


def orders(database: Path) -> list[int]:
    return [n for (n,) in rows(database, "SELECT n FROM orders ORDER BY n")]
