"""The database behind `run`: where it may be, how a log is continued, and that a call is all or nothing."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dispatcher import head, run
from tests.notation import DL, D, E, P, Q, R, S, exact, state

HISTORY = [
    R("a"),
    R("b"),
    Q(0, "a", "m", [503, 503, 200]),
    Q(0, "a", "n", [404]),
    Q(0, "b", "o", [410]),
    P(0),
    ["nonsense"],
    P(30),
    D(31, "b"),
    Q(40, "b", "p", [200]),
    S(40, "m"),
    P(90),
    E(100, "b", True),
    DL(100),
    P(100),
    DL(100),
]


def _url(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.mark.parametrize("form", [str, Path, _url], ids=["path as text", "path", "SQLAlchemy URL"])
def test_a_database_is_a_path_or_a_url(form: Any, tmp_path: Path) -> None:
    file = tmp_path / "log.db"
    assert run(HISTORY[:6], form(file)) + run(HISTORY[6:], form(file)) == run(HISTORY)
    assert file.is_file()
    assert head(form(file)) == head(str(file))


def test_an_existing_log_is_continued_the_state_is_what_the_log_says(tmp_path: Path) -> None:
    database = str(tmp_path / "log.db")
    together = run(HISTORY, str(tmp_path / "together.db"))
    assert exact([run([operation], database)[0] for operation in HISTORY]) == exact(together)


@pytest.mark.parametrize("calls", [1, 2, 5, len(HISTORY)])
def test_equal_operations_give_equal_heads_in_one_call_or_several(calls: int, tmp_path: Path) -> None:
    whole, split = str(tmp_path / "whole.db"), str(tmp_path / "split.db")
    run(HISTORY, whole)
    for start in range(0, len(HISTORY), -(-len(HISTORY) // calls)):
        run(HISTORY[start : start + -(-len(HISTORY) // calls)], split)
    assert head(split) == head(whole)


def test_refused_operations_and_reads_leave_no_difference_in_the_head(tmp_path: Path) -> None:
    bare, wordy = str(tmp_path / "bare.db"), str(tmp_path / "wordy.db")
    run(
        [operation for operation in HISTORY if operation[0] not in ("nonsense", "status", "dead_letters")],
        bare,
    )
    run(HISTORY, wordy)
    assert head(bare) == head(wordy)


def test_different_operations_give_different_heads(tmp_path: Path) -> None:
    heads = set()
    for number, ts in enumerate((0, 1)):
        database = str(tmp_path / f"{number}.db")
        run([R("a"), Q(ts, "a", "m", [200])], database)
        heads.add(head(database))
    assert len(heads) == 2


def test_a_head_is_the_position_and_the_root_in_hex(tmp_path: Path) -> None:
    database = str(tmp_path / "log.db")
    run([R("a"), Q(0, "a", "m", [404]), P(0), D(1, "a"), E(2, "a", True)], database)
    position, root = head(database).split(":")
    assert position == "7", "opened, registered, enqueued, attempted, disabled, revived, enabled"
    assert len(bytes.fromhex(root)) == 32


def test_the_log_has_one_entry_or_more_for_each_accepted_operation_in_positions_without_gaps(
    tmp_path: Path,
) -> None:
    file = tmp_path / "log.db"
    run([R("a"), Q(0, "a", "m", [404]), Q(0, "a", "n", [503]), P(0), D(1, "a"), E(2, "a", True)], str(file))
    with closing(sqlite3.connect(file)) as connection:
        entries = connection.execute(
            "SELECT position, ts, type FROM dispatcher_log ORDER BY position"
        ).fetchall()
    types = (
        "LogOpened EndpointRegistered Enqueued Enqueued AttemptRecorded AttemptRecorded "
        "EndpointDisabled Revived EndpointEnabled"
    )
    times = [0, 0, 0, 0, 0, 0, 1, 2, 2]
    assert entries == list(zip(range(1, 10), times, types.split(), strict=True))


def test_every_revived_event_has_an_entry_in_enqueue_order(tmp_path: Path) -> None:
    file = tmp_path / "log.db"
    queued = [R("a"), R("b"), Q(0, "a", "z", [404]), Q(0, "b", "other", [404]), Q(0, "a", "p", [503, 404])]
    run(
        [*queued, Q(0, "a", "k", [200]), Q(0, "a", "e", [404]), P(0), P(30), D(31, "a"), E(50, "a", True)],
        str(file),
    )
    with closing(sqlite3.connect(file)) as connection:
        revivals = "SELECT ts, delivery_id FROM dispatcher_log WHERE type = 'Revived' ORDER BY position"
        assert connection.execute(revivals).fetchall() == [(50, "z"), (50, "p"), (50, "e")]


class Interruption(Exception):
    """Comes in the middle of a call."""


def _interrupted(end: Callable[[], None]) -> Iterator[list[Any]]:
    """More accepted operations than anyone would hold back, and then the end."""
    for number in range(2000):
        yield Q(1, "a", f"n-{number}", [200])
        yield P(1)
    end()


def _interrupt() -> None:
    raise Interruption


def test_after_an_exception_none_of_the_call_is_in_the_log(tmp_path: Path) -> None:
    database = str(tmp_path / "log.db")
    run([R("a"), Q(0, "a", "m", [200])], database)
    before = head(database)
    with pytest.raises(Interruption):
        run(_interrupted(_interrupt), database)
    assert head(database) == before
    assert run([S(1, "m"), S(1, "n-0")], database) == [state("pending", 0, 0), "error: unknown event"]


def _run_and_die(database: str) -> None:
    run(_interrupted(lambda: os.kill(os.getpid(), signal.SIGKILL)), database)


def test_after_a_crash_none_of_the_call_is_in_the_log(tmp_path: Path) -> None:
    database = str(tmp_path / "log.db")
    run([R("a"), Q(0, "a", "m", [200])], database)
    before = head(database)
    process = multiprocessing.get_context("spawn").Process(target=_run_and_die, args=(database,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert head(database) == before
    assert run([S(1, "m"), S(1, "n-0")], database) == [state("pending", 0, 0), "error: unknown event"]


def test_results_are_plain_values_even_on_a_file(tmp_path: Path) -> None:
    assert exact(run(HISTORY, str(tmp_path / "log.db"))) == exact(run(HISTORY))


def test_odd_ids_survive_the_database(tmp_path: Path) -> None:
    database = str(tmp_path / "log.db")
    ids = [
        "é",
        "e\u0301",
        "\U0001f631",
        " ",
        "\n",
        "\ufeff",
        "\uffff",
        '"',
        "'",
        "\\",
        "%",
        "0",
        "null",
        "x" * 256,
    ]
    run([operation for odd in ids for operation in (R(odd), Q(0, odd, odd, [404]))], database)
    assert run([P(0)], database) == [[f"{odd} #1 404 dead" for odd in ids]]
    assert run([DL(0), *(S(0, odd) for odd in ids)], database) == [ids, *[state("dead", 1)] * len(ids)]


def test_times_at_the_edges_survive_the_database(tmp_path: Path) -> None:
    database = str(tmp_path / "log.db")
    run([["register", -(2**53), "a", "u"], Q(2**53, "a", "m", [503]), P(2**53)], database)
    assert run([S(2**53, "m")], database) == [state("pending", 1, 2**53 + 30)]
