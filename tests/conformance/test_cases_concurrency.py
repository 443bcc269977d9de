"""Faults that others had to report, where threads, processes and strangers meet on one file."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from dispatcher import head, run
from tests.examples import WORKED_EXAMPLES
from tests.notation import DL, P, Q, R, S, exact, state

THREADS = 16
PROCESSES = 4
ENQUEUES = 25
RACERS = 20


def _at_once(callers: int, call: Callable[[int], Any]) -> list[Any]:
    """What each of several threads got that all started at the same moment."""
    start = Barrier(callers)

    def started(number: int) -> Any:
        start.wait()
        return call(number)

    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(started, range(callers)))


def _positions(file: Path) -> list[int]:
    with closing(sqlite3.connect(file)) as connection:
        return [
            position
            for (position,) in connection.execute("SELECT position FROM dispatcher_log ORDER BY position")
        ]


def test_c26_threads_calling_run_in_memory_are_isolated_from_each_other() -> None:
    """One `:memory:` connection shared by threads returned wrong rows."""
    operations, results = WORKED_EXAMPLES["retries"]
    answers = _at_once(THREADS, lambda number: [run(operations) for _ in range(5)])
    assert exact(answers) == exact([[results] * 5] * THREADS)


def test_c26_threads_calling_run_on_one_file_lose_and_double_nothing(tmp_path: Path) -> None:
    """Read-then-write transactions failed at once with "database is locked", whatever the busy timeout."""
    file = tmp_path / "log.db"
    run([R("shared")], str(file))

    def call(number: int) -> list[Any]:
        own = f"own-{number}"
        operations = [R(own), Q(0, own, f"{own}-m", [200]), Q(0, "shared", f"s-{number}", [404])]
        return [*run(operations, str(file)), *run([S(0, f"{own}-m"), S(0, f"s-{number}")], str(file))]

    answers = _at_once(THREADS, call)
    pending = state("pending", 0, 0)
    assert answers == [[True, "queued", "queued", pending, pending]] * THREADS
    assert _positions(file) == list(range(1, 2 + 3 * THREADS + 1))
    (records, dead) = run([P(0), DL(0)], str(file))
    assert isinstance(records, list)
    assert Counter(record.split()[0] for record in records) == Counter(
        [*(f"own-{number}-m" for number in range(THREADS)), *(f"s-{number}" for number in range(THREADS))]
    )
    assert sorted(dead) == sorted(f"s-{number}" for number in range(THREADS))


def test_c26_threads_may_create_the_same_new_file(tmp_path: Path) -> None:
    """The first callers of a fresh database raced to create its tables."""
    file = tmp_path / "log.db"
    answers = _at_once(8, lambda number: run([R(f"e-{number}")], str(file)))
    assert answers == [[True]] * 8
    assert _positions(file) == list(range(1, 10))


def _enqueue_many(database: str, worker: int) -> list[Any]:
    """A process of its own: every call is a transaction of its own."""
    return [run([Q(0, "a", f"m-{worker}-{number}", [200])], database)[0] for number in range(ENQUEUES)]


def test_c26_processes_enqueueing_on_one_file_lose_and_double_nothing(tmp_path: Path) -> None:
    """Several writing processes met "database is locked", or lost and doubled each other's rows."""
    file = tmp_path / "log.db"
    run([R("a")], str(file))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        answers = list(pool.map(_enqueue_many, [str(file)] * PROCESSES, range(PROCESSES)))
    assert answers == [["queued"] * ENQUEUES] * PROCESSES
    assert _positions(file) == list(range(1, 2 + PROCESSES * ENQUEUES + 1))
    (records,) = run([P(0)], str(file))
    assert isinstance(records, list)
    by_worker = [
        [record for record in records if record.startswith(f"m-{worker}-")] for worker in range(PROCESSES)
    ]
    assert by_worker == [
        [f"m-{worker}-{number} #1 200 delivered" for number in range(ENQUEUES)] for worker in range(PROCESSES)
    ]


def test_c26_run_waits_for_a_stranger_that_holds_the_write_lock(tmp_path: Path) -> None:
    """A shell holding BEGIN IMMEDIATE made every writer fail instead of wait."""
    file = tmp_path / "log.db"
    run([R("a")], str(file))
    with closing(sqlite3.connect(file, isolation_level=None)) as stranger, ThreadPoolExecutor(2) as pool:
        stranger.execute("BEGIN IMMEDIATE")
        try:
            waiting = [pool.submit(run, [Q(0, "a", f"m-{number}", [200])], str(file)) for number in range(2)]
            with pytest.raises(TimeoutError):
                waiting[0].result(timeout=2)
            assert not waiting[1].done()
        finally:
            stranger.execute("COMMIT")
        assert [call.result(timeout=30) for call in waiting] == [["queued"], ["queued"]]
    assert _positions(file) == [1, 2, 3, 4]


def test_c26_a_stranger_that_reads_stops_nobody(tmp_path: Path) -> None:
    """A dashboard's open snapshot made writers time out."""
    file = tmp_path / "log.db"
    run([R("a")], str(file))
    with closing(sqlite3.connect(file, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        count = "SELECT count(*) FROM dispatcher_log"
        before = reader.execute(count).fetchone()
        assert run([Q(0, "a", "m", [200]), P(0)], str(file)) == ["queued", ["m #1 200 delivered"]]
        assert reader.execute(count).fetchone() == before
        reader.execute("COMMIT")
        assert reader.execute(count).fetchone() == (4,)


def test_c39_of_racing_enqueues_of_one_id_exactly_one_is_queued(tmp_path: Path) -> None:
    """Racing requests with one key surfaced a unique violation as a server error."""
    file = tmp_path / "log.db"
    run([R("a")], str(file))
    answers = _at_once(RACERS, lambda number: run([Q(0, "a", "m", [200])], str(file))[0])
    assert Counter(answers) == {"queued": 1, "error: duplicate event": RACERS - 1}
    assert head(str(file)).startswith("3:")
    assert run([P(0), P(0)], str(file)) == [["m #1 200 delivered"], []]


def test_c39_of_racing_registrations_of_one_id_exactly_one_is_accepted(tmp_path: Path) -> None:
    """Registering twice at once left two endpoints, or an error nobody had a name for."""
    file = tmp_path / "log.db"
    answers = _at_once(
        RACERS, lambda number: run([["register", 0, "a", f"https://{number}.example/"]], str(file))[0]
    )
    assert Counter(map(str, answers)) == {"True": 1, "error: duplicate endpoint": RACERS - 1}
    assert head(str(file)).startswith("2:")
