"""`time went backwards`, and that a refusal, a read and an idle `process` leave no trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher import head, run
from tests.notation import DL, URL, D, E, P, Q, R, S, exact

EMPTY_HEAD = "0:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
NAMES = ["register", "enqueue", "process", "status", "dead_letters", "disable", "enable"]
RIGHT: dict[str, list[Any]] = {
    "register": ["register", 0, "b", URL],
    "enqueue": Q(0, "a", "m", [200]),
    "process": P(0),
    "status": S(0, "known"),
    "dead_letters": DL(0, "a"),
    "disable": D(0, "a"),
    "enable": E(0, "paused", True),
}
KNOWN = [R("a"), R("paused"), D(0, "paused"), Q(0, "a", "known", [200])]


@pytest.mark.parametrize("name", NAMES)
def test_a_ts_below_the_last_entrys_goes_backwards_for_every_operation_reads_too(name: str) -> None:
    known = [
        ["register", 10, "a", URL],
        ["register", 10, "paused", URL],
        D(10, "paused"),
        Q(10, "a", "known", [200]),
    ]
    results = run([*known, [name, 9, *RIGHT[name][2:]]])
    assert exact(results[-1]) == exact("error: time went backwards")


def test_time_is_checked_before_the_operations_own() -> None:
    late = [
        ["register", 10, "a", URL],
        ["register", 9, "a", URL],
        Q(9, "z", "m", []),
        Q(9, "a", "m", []),
        D(9, "z"),
    ]
    assert run(late)[1:] == ["error: time went backwards"] * 4


def test_an_equal_ts_does_not_go_backwards() -> None:
    assert run([["register", 10, "a", URL], Q(10, "a", "m", [200]), P(10), S(10, "m")])[2] == [
        "m #1 200 delivered"
    ]


@pytest.mark.parametrize(
    "idle",
    [
        P(100),
        S(100, "m"),
        S(100, "none"),
        DL(100),
        DL(100, "a"),
        DL(100, "none"),
        ["register", 100, "a", URL],
        Q(100, "a", "m", [200]),
        Q(100, "none", "n", [200]),
        Q(100, "a", "n", []),
        Q(100, "a", "", [200]),
        D(100, "none"),
        E(100, "a", True),
        ["nonsense", 100],
        ["process", 100, "x"],
    ],
    ids=repr,
)
def test_reads_refusals_and_an_empty_process_do_not_move_time(idle: list[Any]) -> None:
    opening = [R("a"), Q(0, "a", "m", [200]), P(0)]
    assert run([*opening, idle, Q(1, "a", "later", [200])])[-1] == "queued"


@pytest.mark.parametrize(
    "writing",
    [["register", 100, "b", URL], Q(100, "a", "n", [200]), P(100), D(100, "a"), E(100, "paused", False)],
    ids=repr,
)
def test_every_accepted_write_moves_time(writing: list[Any]) -> None:
    opening = [R("a"), R("paused"), D(0, "paused"), Q(0, "a", "m", [503]), P(0)]
    assert run([*opening, writing, P(99)])[-1] == "error: time went backwards"


def test_an_empty_log_has_no_time_to_go_back_from() -> None:
    assert run([P(100), S(100, "m"), DL(100), D(100, "a"), ["register", -5, "a", URL], P(-6)]) == [
        [],
        "error: unknown event",
        [],
        "error: unknown endpoint",
        True,
        "error: time went backwards",
    ]


# No trace

TRACELESS: list[Any] = [
    ["nonsense", 5],
    [],
    None,
    ["process"],
    ["register", True, "b", URL],
    ["register", 5, "", URL],
    ["register", 5, "\ud800", URL],
    ["register", 4, "b", URL],
    ["register", 5, "a", URL + "2"],
    Q(5, "z", "n", [200]),
    Q(5, "a", "m", [200]),
    Q(5, "a", "n", []),
    Q(5, "a", "n", [200, 600]),
    P(5),
    P(29),
    P(4),
    S(5, "m"),
    S(5, "z"),
    DL(5),
    DL(5, "a"),
    DL(5, "z"),
    D(5, "z"),
    D(5, "paused"),
    E(5, "z", True),
    E(5, "a", True),
    E(5, "paused", None),
]


@pytest.mark.parametrize("operation", TRACELESS, ids=lambda operation: repr(operation)[:24])
def test_a_refusal_a_read_and_an_empty_process_append_nothing_and_change_nothing(
    operation: Any, tmp_path: Path
) -> None:
    database = str(tmp_path / "log.db")
    opening = [R("a"), R("paused"), Q(0, "a", "m", [503]), Q(0, "a", "d", [404]), P(0), D(5, "paused")]
    questions = [S(5, "m"), S(5, "d"), S(5, "n"), DL(5), P(5)]
    run(opening, database)
    before = head(database), run(questions, database)
    run([operation], database)
    assert (head(database), run(questions, database)) == before


def test_a_log_is_empty_until_the_first_accepted_operation(tmp_path: Path) -> None:
    database = str(tmp_path / "log.db")
    run([], database)
    assert head(database) == EMPTY_HEAD
    run(
        [
            P(5),
            S(5, "m"),
            DL(5),
            D(5, "a"),
            [],
            ["nonsense"],
            Q(5, "a", "m", [200]),
            ["register", 5, "", URL],
        ],
        database,
    )
    assert head(database) == EMPTY_HEAD
    run([["register", 1, "a", URL]], database)
    assert head(database).startswith("2:"), "the entry that opens the log, and the registration"
