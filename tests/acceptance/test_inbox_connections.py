"""Whose connection an event can be accepted on, and whose not."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from dispatcher.errors import DatabaseBusy, Refused
from dispatcher.live import Dispatcher
from tests.acceptance.elsewhere import Elsewhere
from tests.acceptance.lively import rows, state
from tests.acceptance.receiver import Receiver


@pytest.fixture
def shop(live: Dispatcher, receiver: Receiver, database: Path) -> Dispatcher:
    live.register("shop", receiver.url)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE orders (n INTEGER PRIMARY KEY)")
    return live


def refusal(live: Dispatcher, connection: Any) -> str:
    with pytest.raises(Refused) as refused:
        live.enqueue("shop", 1, connection=connection)
    assert refused.value.remedy
    return refused.value.code


def waiting(live: Dispatcher) -> list[str]:
    return [event["event_id"] for event in live.inbox()]


def test_one_to_another_file_is_refused(shop: Dispatcher, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        assert refusal(shop, other) == "other_database"
        assert not other.in_transaction
    with closing(sqlite3.connect(":memory:")) as memory:
        assert refusal(shop, memory) == "other_database"
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        assert refusal(shop, connection) == "other_database"
    engine.dispose()


def test_one_to_which_the_file_is_only_attached_is_refused(shop: Dispatcher, database: Path) -> None:
    """SQLite does not commit several files of this kind at once."""
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.execute("ATTACH ? AS shop", (str(database),))
        assert refusal(shop, memory) == "other_database"


def test_the_file_may_go_by_another_name(shop: Dispatcher, database: Path, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(database)
    with closing(sqlite3.connect(os.path.relpath(tmp_path / "link.db"))) as connection:
        shop.enqueue("shop", 1, event_id="one", connection=connection)
        connection.commit()
    assert waiting(shop) == ["one"]


def test_the_dispatcher_may_have_been_opened_from_another_folder(
    database: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(database.parent)
    with Dispatcher(database.name, open_networks=["127.0.0.0/8"]) as live:
        live.register("shop", receiver.url)
        with closing(sqlite3.connect(database.name)) as connection:
            monkeypatch.chdir("/")
            live.enqueue("shop", 1, event_id="one", connection=connection)
            connection.commit()


def test_one_that_commits_each_statement_is_refused(shop: Dispatcher, database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        assert refusal(shop, connection) == "no_transaction"
        connection.execute("BEGIN")
        shop.enqueue("shop", 1, event_id="one", connection=connection)
        connection.execute("COMMIT")
    engine = create_engine(f"sqlite:///{database}", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        assert refusal(shop, connection) == "no_transaction"
    engine.dispose()
    assert waiting(shop) == ["one"]


@pytest.mark.parametrize("wrong", ["shop.db", 7, object(), create_engine("sqlite://")], ids=repr)
def test_what_is_no_connection_is_refused(shop: Dispatcher, wrong: object) -> None:
    assert refusal(shop, wrong) == "invalid_argument"


def test_a_savepoint_that_is_rolled_back_takes_it_along(shop: Dispatcher, database: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        shop.enqueue("shop", 1, event_id="one", connection=connection)
        connection.execute("SAVEPOINT inner")
        shop.enqueue("shop", 1, event_id="two", connection=connection)
        connection.execute("ROLLBACK TO inner")
        connection.execute("COMMIT")
    assert waiting(shop) == ["one"]


def test_in_a_transaction_that_read_before_others_wrote_it_says_how_to_begin_one(
    shop: Dispatcher, database: Path
) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM orders").fetchall()
        shop.enqueue("shop", 1, event_id="meanwhile")
        with pytest.raises(DatabaseBusy) as busy:
            shop.enqueue("shop", 1, event_id="one", connection=connection)
        assert "written" in str(busy.value)
        assert "BEGIN IMMEDIATE" in busy.value.remedy
        connection.rollback()
    assert waiting(shop) == []


def test_its_key_is_in_no_log_of_sqlalchemys(
    shop: Dispatcher, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "sqlalchemy")
    engine = create_engine(f"sqlite:///{database}", echo="debug")
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO orders VALUES (1)"))
        shop.enqueue("shop", 1, connection=connection)
    engine.dispose()
    assert "INSERT INTO orders" in caplog.text
    assert "dispatcher_inbox" not in caplog.text


async def _with_a_session(live: Dispatcher, engine: Any, commit: bool) -> None:
    async with AsyncSession(engine) as session:
        await session.execute(text("INSERT INTO orders VALUES (1)"))
        await live.aenqueue("shop", 1, event_id="one", connection=session)
        await (session.commit() if commit else session.rollback())


async def _with_a_connection(live: Dispatcher, engine: Any, commit: bool) -> None:
    async with engine.connect() as connection:
        await connection.execute(text("INSERT INTO orders VALUES (1)"))
        await live.aenqueue("shop", 1, event_id="one", connection=connection)
        await (connection.commit() if commit else connection.rollback())


async def _with_what_a_session_lends(live: Dispatcher, engine: Any, commit: bool) -> None:
    async with AsyncSession(engine) as session:
        await session.execute(text("INSERT INTO orders VALUES (1)"))
        await session.run_sync(lambda lent: live.enqueue("shop", 1, event_id="one", connection=lent))
        await (session.commit() if commit else session.rollback())


@pytest.mark.parametrize("commit", [True, False], ids=["commits", "rolls back"])
@pytest.mark.parametrize("use", [_with_a_session, _with_a_connection, _with_what_a_session_lends])
def test_asyncio_it_is_accepted_if_the_transaction_commits(
    shop: Dispatcher, database: Path, use: Callable[[Dispatcher, Any, bool], Any], commit: bool
) -> None:
    async def use_it() -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///{database}")
        await use(shop, engine, commit)
        await engine.dispose()

    asyncio.run(use_it())
    assert waiting(shop) == (["one"] if commit else [])
    assert rows(database, "SELECT n FROM orders") == ([(1,)] if commit else [])


def test_a_coroutine_may_hand_over_a_connection_that_is_none_of_asyncio(
    shop: Dispatcher, database: Path
) -> None:
    async def enqueue() -> None:
        with closing(sqlite3.connect(database)) as connection:
            await shop.aenqueue("shop", 1, event_id="one", connection=connection)
            connection.commit()

    asyncio.run(enqueue())
    assert waiting(shop) == ["one"]


def test_outside_a_coroutine_one_of_asyncio_is_refused(shop: Dispatcher, database: Path) -> None:
    async def enqueue() -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///{database}")
        async with AsyncSession(engine) as session, engine.connect() as connection:
            assert refusal(shop, session) == "async_connection"
            assert refusal(shop, connection) == "async_connection"
        await engine.dispose()

    asyncio.run(enqueue())


def _accept_and_wait(database: Path, line: Any) -> None:
    """Accept one event that is committed and one that never is, and wait to be killed."""
    with Dispatcher(database, open_networks=["127.0.0.0/8"]) as live:
        connection = sqlite3.connect(database)
        for event_id in ("committed", "lost"):
            connection.execute("INSERT INTO orders DEFAULT VALUES")
            line.send(live.enqueue("shop", 1, event_id=event_id, connection=connection))
            if event_id == "committed":
                connection.commit()
        line.recv()


def test_an_application_that_is_killed_leaves_what_it_committed_and_nothing_else(
    shop: Dispatcher, receiver: Receiver, database: Path
) -> None:
    application = Elsewhere(_accept_and_wait, database)
    assert [application.hear(), application.hear()] == ["committed", "lost"]
    application.kill()
    assert waiting(shop) == ["committed"]
    assert rows(database, "SELECT count(*) FROM orders") == [(1,)]
    with shop.worker():
        assert receiver.next().event == "committed"
    receiver.assert_quiet()
    assert state(shop, "committed") == "delivered"
