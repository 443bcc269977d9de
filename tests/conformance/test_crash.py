"""A process may die at any moment: all of a call is in the log or none of it, and the next one goes on."""

from __future__ import annotations

import random
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dispatcher import head, run
from dispatcher.audit.replay import check
from dispatcher.audit.verify import verify
from dispatcher.errors import DatabaseMissing
from tests.lives import CALLS, call, die_at_statement, live, rest_of, start
from tests.notation import P, Q, R
from tests.ramdisk import ramdisk

KILLS = 40


@pytest.fixture
def file() -> Iterator[Path]:
    with ramdisk() as folder:
        yield folder / "log.db"


@cache
def _heads() -> list[str]:
    """The head before each of the calls, and after the last: equal calls give equal heads anywhere."""
    with ramdisk() as folder:
        file = folder / "log.db"
        run([], file)
        heads = [head(file)]
        for number in range(CALLS):
            run(call(number), file)
            heads.append(head(file))
        return heads


def _calls_in(file: Path) -> int:
    """How many calls a file holds: never a part of one."""
    try:
        found = head(file)
    except DatabaseMissing:
        return 0
    assert found in _heads(), "a part of a call is in the log"
    return _heads().index(found)


def _assert_whole(file: Path) -> None:
    assert verify(file).findings == []
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_killed_at_random_moments_nothing_is_lost_or_half_done(file: Path) -> None:
    chance = random.Random(5)
    done, deaths_within_a_call = 0, 0
    for _ in range(KILLS):
        process, hear = start(live, str(file), done)
        said: list[Any] = []
        for _ in range(chance.choice([1, 2, 7, 40, 90])):
            try:
                said.append(hear.recv())
            except EOFError:
                break
        process.kill()
        process.join()
        said += rest_of(hear)
        assert process.exitcode == -signal.SIGKILL, "it got to its end, and not to be killed"
        finished = [number for what, number in said if what == "done"]
        at_least = finished[-1] + 1 if finished else done
        deaths_within_a_call += said[-1][0] != "done"
        done = _calls_in(file)
        assert at_least <= done <= at_least + 1, "what was answered is in the log, and at most what came next"
        if done:
            _assert_whole(file)
        if done > CALLS - 40:
            assert check(file) is None
            file.unlink()
            done = 0
    assert deaths_within_a_call > KILLS / 2
    for number in range(done, done + 3):
        run(call(number), file)
    assert head(file) == _heads()[done + 3]


def _kill_at_each_statement(prepare: Callable[[], None], file: Path, number: int) -> int:
    """Kill one call before each of its statements in turn; how many there were."""
    for statement in range(100):
        prepare()
        process, hear = start(die_at_statement, str(file), number, statement)
        said = rest_of(hear)
        process.join()
        if said == ["survived"]:
            assert _calls_in(file) == number + 1
            return statement
        assert said == ["killed"]
        assert process.exitcode == -signal.SIGKILL
        assert _calls_in(file) == number
        if number:
            _assert_whole(file)
        run(call(number), file)
        assert head(file) == _heads()[number + 1]
        _assert_whole(file)
    raise AssertionError("it never survived")


def test_killed_before_any_statement_of_its_first_call_a_new_database_is_made_as_if_nothing_had_been(
    file: Path,
) -> None:
    def prepare() -> None:
        for beside in file.parent.iterdir():
            beside.unlink()

    assert _kill_at_each_statement(prepare, file, 0) > 20, "the schema and the call"


def test_killed_before_any_statement_of_a_later_call_the_log_is_as_before(file: Path) -> None:
    run([], file)
    for number in range(30):
        run(call(number), file)
    before = file.read_bytes()

    def prepare() -> None:
        for beside in file.parent.iterdir():
            beside.unlink()
        file.write_bytes(before)

    assert _kill_at_each_statement(prepare, file, 30) > 5


class Interruption(Exception):
    """Comes in the middle of a call."""


@pytest.mark.parametrize("after", [0, 1, 2, 50, 5100, 12_000])
@pytest.mark.parametrize("kind", [Interruption, KeyboardInterrupt, SystemExit, MemoryError])
def test_an_exception_among_the_operations_leaves_nothing(
    file: Path, kind: type[BaseException], after: int
) -> None:
    """Whatever was written by then: entries go to the database some thousand at a time."""
    run(call(0), file)
    before = head(file)

    def operations() -> Iterator[Any]:
        for number in range(after):
            yield Q(1, "a", f"n-{number}", [200])
        raise kind

    with pytest.raises(kind):
        run(operations(), file)
    assert head(file) == before
    assert verify(file).findings == []
    run(call(1), file)
    assert head(file) == _heads()[2]


def test_an_exception_in_the_first_call_leaves_an_empty_log(file: Path) -> None:
    def operations() -> Iterator[Any]:
        yield R("a")
        raise Interruption

    with pytest.raises(Interruption):
        run(operations(), file)
    assert head(file) == _heads()[0]
    run(call(0), file)
    assert head(file) == _heads()[1]


def _enqueue_and_process(database: str, name: str, say: Any) -> None:
    for number in range(40):
        results = run([Q(5, "a", f"{name}-{number}", [200]), P(5)], database)
        say.send(results)


def test_two_processes_on_one_file_both_finish_and_lose_nothing(file: Path) -> None:
    run([R("a")], file)
    processes = [start(_enqueue_and_process, str(file), name) for name in ("left", "right")]
    results = [rest_of(hear) for _, hear in processes]
    for process, _ in processes:
        process.join()
        assert process.exitcode == 0
    for name, answers in zip(("left", "right"), results, strict=True):
        assert answers == [["queued", [f"{name}-{n} #1 200 delivered"]] for n in range(40)]
    _assert_whole(file)
    assert check(file) is None
    with closing(sqlite3.connect(file)) as connection:
        positions = [row[0] for row in connection.execute("SELECT position FROM dispatcher_log ORDER BY 1")]
    assert positions == list(range(1, 2 + 2 * 80 + 1))


def test_a_process_that_finds_another_killed_goes_on_at_once(file: Path) -> None:
    """A lock that a dead process held is nobody's."""
    run(call(0), file)
    process, hear = start(live, str(file), 1)
    while hear.recv() != ("operation", 0):
        pass
    process.kill()
    process.join()
    done = _calls_in(file)
    run(call(done), file)
    assert head(file) == _heads()[done + 1]
