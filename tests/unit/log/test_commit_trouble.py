"""What becomes of each piece of work when one of them fails, is given up, or comes too late."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from dispatcher.core.operations import Disable
from dispatcher.errors import DatabaseBusy, Refused, StorageError
from dispatcher.log.commit import LARGEST_BATCH, Commit, Committer
from dispatcher.log.open import Database
from tests.unit.log.committing import PATIENCE, enqueue, held, ids, running, together
from tests.unit.log.live_log import LiveLog, SetClock, registered


@pytest.fixture
def log(memory_folder: Path) -> LiveLog:
    log = LiveLog(memory_folder / "live.db")
    log.do(registered("t/shop"))
    return log


def _fails(commit: Commit) -> None:
    enqueue("undone")(commit)
    raise ArithmeticError


def test_a_refusal_fails_its_caller_only(log: LiveLog) -> None:
    with running(log) as committer:
        first, second, third = together(committer, enqueue("a"), enqueue("a"), enqueue("b"))
        assert (first.result(), third.result()) == (3, 4)
        with pytest.raises(Refused) as refused:
            second.result()
    assert refused.value.code == "duplicate_event"
    assert ids(log) == ["a", "b"]


def test_a_refusal_after_a_change_undoes_that_change_and_nothing_else(log: LiveLog) -> None:
    def entries(commit: Commit) -> None:
        enqueue("undone")(commit)
        commit.apply(Disable("t/unknown"))

    def rows_of_its_own(commit: Commit) -> None:
        commit.connection.exec_driver_sql("INSERT INTO dispatcher_vault_keys VALUES ('undone', x'00')")
        commit.apply(Disable("t/unknown"))

    with running(log) as committer:
        futures = together(committer, enqueue("a"), entries, enqueue("b"), rows_of_its_own, enqueue("c"))
        alone = committer.submit(entries)
        for refused in (futures[1], futures[3], alone):
            assert isinstance(refused.exception(PATIENCE), Refused)
        assert [future.result() for future in futures[::2]] == [3, 4, 5]
    assert ids(log) == ["a", "b", "c"]
    with log.transaction() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM dispatcher_vault_keys").scalar() == 0


@pytest.mark.parametrize("error", [ArithmeticError, KeyboardInterrupt])
def test_an_unexpected_exception_undoes_the_transaction_and_fails_its_own_piece(
    error: type[BaseException], log: LiveLog
) -> None:
    def fails(commit: Commit) -> None:
        enqueue("undone")(commit)
        raise error

    with running(log) as committer:
        before, guilty, after = together(committer, enqueue("a"), fails, enqueue("b"))
        assert (before.result(), after.result()) == (3, 4)
        assert type(guilty.exception()) is error
        assert committer.submit(enqueue("c")).result(PATIENCE) == 5
    assert ids(log) == ["a", "b", "c"]


def test_what_the_database_refuses_fails_its_own_piece(log: LiveLog) -> None:
    def twice(commit: Commit) -> None:
        for _ in range(2):
            commit.connection.exec_driver_sql("INSERT INTO dispatcher_vault_keys VALUES ('n', x'00')")

    with running(log) as committer:
        before, guilty, after = together(committer, enqueue("a"), twice, enqueue("b"))
        assert (before.result(), after.result()) == (3, 4)
        with pytest.raises(StorageError) as raised:
            guilty.result()
    assert isinstance(raised.value.__cause__, IntegrityError)


def test_memory_of_what_was_undone_is_dropped(log: LiveLog) -> None:
    with running(log) as committer:
        assert isinstance(committer.submit(_fails).exception(PATIENCE), ArithmeticError)
        assert committer.submit(enqueue("undone")).result(PATIENCE) == 3, "it is not taken for a duplicate"


def test_stopping_finishes_what_waits_and_takes_no_more(log: LiveLog) -> None:
    with running(log) as committer:
        stopping = threading.Thread(target=committer.stop)
        with held(committer):
            futures = [committer.submit(enqueue(f"e{n}")) for n in range(LARGEST_BATCH + 1)]
            stopping.start()
        stopping.join(PATIENCE)
        assert all(future.done() for future in futures)
        with pytest.raises(StorageError, match="closed"):
            committer.submit(enqueue("late"))
    assert ids(log) == [f"e{n}" for n in range(LARGEST_BATCH + 1)]


def test_a_caller_may_give_up_until_its_turn_comes(log: LiveLog) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work(commit: Commit) -> None:
        begun.set()
        assert go_on.wait(PATIENCE)

    with running(log) as committer:
        with held(committer):
            given_up, kept = committer.submit(enqueue("a")), committer.submit(enqueue("b"))
            assert given_up.cancel()
        with pytest.raises(CancelledError):
            given_up.result()
        assert kept.result(PATIENCE) == 3
        under_way = committer.submit(work)
        assert begun.wait(PATIENCE)
        assert not under_way.cancel()
        go_on.set()
        under_way.result(PATIENCE)
        with held(committer):
            assert committer.submit(enqueue("c")).cancel()
        assert committer.submit(enqueue("d")).result(PATIENCE) == 4, "a turn with nothing left is no end"
    assert ids(log) == ["b", "d"]


def test_a_storage_error_reaches_its_callers_and_the_committer_goes_on(
    log: LiveLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(log) as committer:
        with log.transaction(), monkeypatch.context() as patched:
            patched.setattr("dispatcher.log.open.BUSY_WAIT_SECONDS", 0)
            waiting = [committer.submit(enqueue(name)) for name in "ab"]
            for future in waiting:
                assert isinstance(future.exception(PATIENCE), DatabaseBusy)
        assert [committer.submit(enqueue(name)).result(PATIENCE) for name in "ab"] == [3, 4]


def test_a_database_that_stays_locked_is_waited_for_once_for_all(
    log: LiveLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Database(log.file)) as database:
        tries: list[str] = []

        def locked() -> None:
            tries.append("tried")
            raise DatabaseBusy("locked")

        monkeypatch.setattr(database, "write", locked)
        committer = Committer(database, SetClock(0))
        futures = [committer.submit(enqueue(name)) for name in "abc"]
        committer.start()
        assert all(isinstance(future.exception(PATIENCE), DatabaseBusy) for future in futures)
        committer.stop()
        assert tries == ["tried"]


def test_whoever_is_told_of_entries_may_fail_and_the_committer_goes_on(
    log: LiveLog, caplog: pytest.LogCaptureFixture
) -> None:
    def closed(position: int) -> None:
        raise RuntimeError("Event loop is closed")

    with running(log) as committer:
        committer.listeners.append(closed)
        assert [committer.submit(enqueue(name)).result(PATIENCE) for name in "ab"] == [3, 4]
    assert len(caplog.records) == 2
