"""Many callers, one thread that writes: what shares a transaction, in which order, at what time."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from pathlib import Path

import pytest

from dispatcher.core.operations import Disable
from dispatcher.log.commit import LARGEST_BATCH, Commit
from tests.unit.log.committing import PATIENCE, enqueue, ids, running, times, together
from tests.unit.log.live_log import LiveLog, SetClock, queued, registered


@pytest.fixture
def log(memory_folder: Path) -> LiveLog:
    log = LiveLog(memory_folder / "live.db")
    log.do(registered("t/shop"))
    return log


def test_callers_of_many_threads_are_all_answered_with_what_is_theirs(log: LiveLog) -> None:
    threads, each = 16, 25
    start = threading.Barrier(threads)
    answers: dict[int, int] = {}

    with running(log) as committer:

        def call(caller: int) -> None:
            start.wait(PATIENCE)
            for n in range(each):
                position = committer.submit(enqueue(f"{caller}-{n}")).result(PATIENCE)
                assert isinstance(position, int)
                answers[position] = caller

        callers = [threading.Thread(target=call, args=(n,)) for n in range(threads)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(PATIENCE)
    written = ids(log)
    assert len(written) == len(set(written)) == threads * each
    assert [int(name.partition("-")[0]) for name in written] == [answers[p] for p in sorted(answers)]
    for caller_number in range(threads):
        own = [name for name in written if name.startswith(f"{caller_number}-")]
        assert own == [f"{caller_number}-{n}" for n in range(each)]


def test_what_waits_shares_one_transaction_in_the_order_it_came(log: LiveLog) -> None:
    seen: list[int] = []

    def work(commit: Commit) -> None:
        seen.append(id(commit))
        enqueue(f"e{len(seen)}")(commit)

    with running(log) as committer:
        together(committer, *[work] * LARGEST_BATCH)
        assert len(set(seen)) == 1
        assert ids(log) == [f"e{n + 1}" for n in range(LARGEST_BATCH)]


def test_a_transaction_takes_no_more_than_the_largest_batch(log: LiveLog) -> None:
    seen: list[Commit] = []
    with running(log) as committer:
        together(committer, *[seen.append] * (LARGEST_BATCH + 1))
    assert [seen.index(commit) for commit in seen] == [0] * LARGEST_BATCH + [LARGEST_BATCH]


def test_a_future_is_done_once_its_entries_are_there_for_others(log: LiveLog) -> None:
    with running(log) as committer:
        committer.submit(enqueue("a")).result(PATIENCE)
        assert ids(log) == ["a"]


def test_memory_is_kept_from_one_transaction_to_the_next_while_nobody_else_appends(log: LiveLog) -> None:
    states: list[int] = []
    with running(log) as committer:
        for name in "abc":
            committer.submit(enqueue(name)).result(PATIENCE)
            committer.submit(lambda commit: states.append(id(commit.state))).result(PATIENCE)
    assert len(set(states)) == 1


def test_memory_is_dropped_once_another_process_has_appended(log: LiveLog) -> None:
    with running(log) as committer:
        before = committer.submit(lambda commit: commit.state).result(PATIENCE)
        committer.submit(enqueue("a")).result(PATIENCE)
        log.do(Disable("t/shop"), *queued("t/shop", "b"))
        after = committer.submit(lambda commit: commit.state).result(PATIENCE)
        assert after is not before
        assert after.position == 5
        twice = [committer.submit(work) for work in (enqueue("b"), lambda c: c.apply(Disable("t/shop")))]
        codes = [getattr(future.exception(PATIENCE), "code", None) for future in twice]
        assert codes == ["duplicate_event", "already_disabled"]
        assert committer.submit(enqueue("c")).result(PATIENCE) == 6


def test_work_that_reads_tables_sees_what_was_done_before_in_its_transaction(log: LiveLog) -> None:
    def count(commit: Commit) -> object:
        commit.flush()
        return commit.connection.exec_driver_sql("SELECT count(*) FROM dispatcher_deliveries").scalar()

    with running(log) as committer:
        works = (enqueue("a"), count, enqueue("b"), enqueue("c"), count)
        assert [future.result() for future in together(committer, *works)] == [3, 1, 4, 5, 3]


def test_time_never_goes_back_whatever_the_clock_says(log: LiveLog) -> None:
    with running(log, SetClock(10, 5, 20, -3, 21)) as committer:
        nows = [committer.submit(lambda commit: commit.now).result(PATIENCE)]
        for name in "abcd":
            committer.submit(enqueue(name)).result(PATIENCE)
    assert nows == [10]
    assert times(log) == [0, 0, 5, 20, 20, 21]


def test_everything_of_one_transaction_has_one_time(log: LiveLog) -> None:
    with running(log, SetClock(1, 2, 3)) as committer:
        together(committer, enqueue("a"), enqueue("b"))
        committer.submit(enqueue("c")).result(PATIENCE)
    assert times(log) == [0, 0, 2, 2, 3]


def test_who_waits_for_entries_is_told_of_each_transaction_with_some(log: LiveLog) -> None:
    told: list[list[str]] = []
    with running(log) as committer:
        committer.listeners.append(lambda position: told.append(ids(log)))
        together(committer, enqueue("a"), enqueue("b"))
        committer.submit(lambda commit: commit.now).result(PATIENCE)
        committer.submit(enqueue("c")).result(PATIENCE)
    assert told == [["a", "b"], ["a", "b", "c"]]


def test_callers_that_were_answered_together_are_given_a_moment_to_come_back_together(
    log: LiveLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    with running(log) as committer:
        committer.listeners.append(told.append)
        together(committer, enqueue("a"), enqueue("b"))
        monkeypatch.setattr("dispatcher.log.commit.GATHERING", 3600)
        first = committer.submit(enqueue("c"))
        assert not first.done()
        wait([first, committer.submit(enqueue("d"))], PATIENCE)
        last = committer.submit(enqueue("e"))
        assert not last.done()
    assert last.done(), "whoever stops is not kept waiting"
    assert told == [4, 6, 7]


def test_a_caller_that_comes_later_waits_for_nobody(log: LiveLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dispatcher.log.commit.GATHERING", 0)
    with running(log) as committer:
        together(committer, enqueue("a"), enqueue("b"))
        assert committer.submit(enqueue("c")).result(PATIENCE) == 5
