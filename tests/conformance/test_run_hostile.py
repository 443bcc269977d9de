"""Nothing that an operation can contain makes `run` raise, and no override makes it see something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dispatcher import run
from tests import hostile
from tests.notation import DL, URL, D, E, P, Q, R, S, exact

# Made on demand: pytest itself must not meet them.
VALUES: dict[str, Callable[[], Any]] = {
    "huge integer": lambda: 10**5000,
    "not a number": lambda: float("nan"),
    "lists nested 100,000 deep": lambda: hostile.nested(100_000),
    "a list inside itself": hostile.endless,
    "no class": hostile.classless,
    "hostile object": hostile.HostileObject,
    "hostile dict": hostile.HostileDict,
    "hostile empty tuple": hostile.HostileTuple,
    "hostile empty list": hostile.HostileList,
    "hostile empty string": hostile.HostileStr,
    "hostile huge integer": lambda: hostile.HostileInt(2**64),
    "claims to be a string": lambda: hostile.impostor(str),
    "claims to be an integer": lambda: hostile.impostor(int),
    "claims to be a bool": lambda: hostile.impostor(bool),
    "claims to be a list": lambda: hostile.impostor(list),
    "claims to be a tuple": lambda: hostile.impostor(tuple),
    "lone surrogate": lambda: "\ud800",
    "long string": lambda: "x" * 10_000_000,
    "memory": lambda: memoryview(b"a"),
    "function": lambda: len,
}


@pytest.mark.parametrize("kind", VALUES)
def test_nothing_that_an_operation_can_contain_makes_run_raise(kind: str) -> None:
    value = VALUES[kind]()
    writes = [
        ["register", 0, "b", URL],
        Q(0, "a", "m", [200]),
        P(0),
        S(0, "m"),
        DL(0, "a"),
        D(0, "a"),
        E(0, "a", True),
    ]
    operations = [
        [*write[:place], value, *write[place + 1 :]] for write in writes for place in range(len(write))
    ]
    results = run(
        [R("a"), *operations, value, [value], [value] * 4, Q(0, "a", "n", [value]), Q(0, "a", "n", [200])]
    )
    assert results[1:-1] == [answer for answer in results[1:-1] if str(answer).startswith("error: ")]
    assert results[-1] == "queued"


def test_a_value_counts_as_what_its_type_really_is_with_its_plain_content() -> None:
    """An override in a subclass must not make a check see one thing and the log store another."""
    operations = [
        hostile.HostileList(["register", 0, hostile.HostileStr("a"), hostile.HostileStr(URL)]),
        hostile.HostileTuple(
            ["enqueue", hostile.HostileInt(0), "a", hostile.LyingStr("m"), hostile.HostileList([503])]
        ),
        [hostile.LyingStr("process"), hostile.LyingInt(7)],
        ["status", 7, hostile.HostileStr("m")],
        hostile.LyingList(["enqueue", 7, hostile.LyingStr("z"), "n", [200]]),
        ["enqueue", 7, "a", "n", hostile.LyingList([hostile.LyingInt(503), hostile.HostileInt(600)])],
    ]
    assert exact(run(operations)) == exact(
        [
            True,
            "queued",
            ["m #1 503 retry at 37"],
            {"state": "pending", "attempts": 1, "next_attempt_at": 37},
            "error: unknown endpoint",
            "error: invalid outcomes",
        ]
    )
