"""`unknown operation` and `invalid arguments`: what `run` refuses for its shape, before time and state."""

from __future__ import annotations

from typing import Any

import pytest

from dispatcher import run
from tests import hostile
from tests.notation import DL, URL, D, E, P, Q, R, S, exact

FAR = 2**53
BAD_IDS: list[Any] = [
    "",
    "\0",
    "a\0b",
    "\ud800",
    "a\udfff",
    "\ud83d\ude00",
    "x" * 257,
    "é" * 257,
    "x" * 10_000_000,
    None,
    0,
    1.5,
    True,
    b"a",
    ["a"],
    ("a",),
    {"a": 1},
    {},
]
BAD_STAMPS: list[Any] = [True, False, None, 0.0, 1.5, float("nan"), float("inf"), "5", "", [0], {}, b"0", 0j]
FAR_STAMPS = [FAR + 1, -FAR - 1, 2**63, -(2**63) - 1, 2**64, 10**5000, -(10**5000)]
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


INVALID = exact("error: invalid arguments")
UNKNOWN = exact("error: unknown operation")


def _last(operation: Any) -> Any:
    return exact(run([*KNOWN, operation])[-1])


def _short(value: Any) -> str:
    return (
        f"{type(value).__name__}-{repr(value).partition(' at 0x')[0][:24]}"
        if type(value) is not int
        else f"int-{value.bit_length()}-bits"
    )


# Unknown operation

ODD_NAMES: list[Any] = [
    "",
    "Process",
    "process ",
    "processes",
    "run",
    "__init__",
    "_append",
    "x" * 10_000_000,
    "\ud800",
]
NO_NAMES: list[Any] = [
    None,
    0,
    True,
    1.5,
    b"process",
    ["process"],
    ("process",),
    {"process": 1},
    hostile.nested(100_000),
]


@pytest.mark.parametrize("name", [*ODD_NAMES, *NO_NAMES[:-1]], ids=_short)
@pytest.mark.parametrize("rest", [[], [0], [True], [0, "a", "b", "c", "d"]], ids=len)
def test_a_name_that_is_none_of_the_seven_is_an_unknown_operation_whatever_follows(
    name: Any, rest: list[Any]
) -> None:
    assert _last([name, *rest]) == UNKNOWN


def test_a_name_may_be_anything_however_deep() -> None:
    assert _last([NO_NAMES[-1], 0]) == UNKNOWN


def test_unknown_operation_is_checked_before_time() -> None:
    assert _last(["nonsense", -5]) == UNKNOWN


# Invalid arguments


@pytest.mark.parametrize(
    "operation",
    [
        None,
        0,
        True,
        1.5,
        "process",
        "",
        b"process",
        {},
        {"process": 0},
        {"process"},
        set(),
        object(),
        P,
        [],
        (),
        range(2),
    ],
    ids=_short,
)
def test_an_operation_is_a_list_or_a_tuple_that_is_not_empty(operation: Any) -> None:
    assert _last(operation) == INVALID


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_number_of_arguments_is_invalid(name: str) -> None:
    right = RIGHT[name]
    allowed = {len(right), 2} if name == "dead_letters" else {len(right)}
    for length in set(range(1, 9)) - allowed:
        wrong = [*right, *["x"] * 8][:length]
        assert _last(wrong) == INVALID, wrong


def test_dead_letters_takes_no_null_for_an_endpoint() -> None:
    assert _last(["dead_letters", 0, None]) == INVALID


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ts", [*BAD_STAMPS, *FAR_STAMPS], ids=_short)
def test_a_ts_is_an_integer_within_2_to_the_53(name: str, ts: Any) -> None:
    assert _last([name, ts, *RIGHT[name][2:]]) == INVALID


def test_a_ts_of_2_to_the_53_either_way_is_accepted() -> None:
    results = run([["register", -FAR, "a", URL], Q(FAR, "a", "m", [503]), P(FAR), S(FAR, "m"), P(-FAR)])
    assert results[:3] == [True, "queued", [f"m #1 503 retry at {FAR + 30}"]]
    assert results[3] == {"state": "pending", "attempts": 1, "next_attempt_at": FAR + 30}
    assert results[4] == "error: time went backwards"


ID_PLACES = [
    ("register", 2),
    ("enqueue", 2),
    ("enqueue", 3),
    ("status", 2),
    ("dead_letters", 2),
    ("disable", 2),
    ("enable", 2),
]


@pytest.mark.parametrize(("name", "place"), ID_PLACES)
@pytest.mark.parametrize("bad", BAD_IDS, ids=_short)
def test_an_id_is_a_string_of_1_to_256_characters_without_nul_or_lone_surrogate(
    name: str, place: int, bad: Any
) -> None:
    operation = list(RIGHT[name])
    operation[place] = bad
    assert _last(operation) == INVALID


@pytest.mark.parametrize(
    "bad", [bad for bad in BAD_IDS if bad not in ("x" * 257, "é" * 257)] + ["x" * 2049], ids=_short
)
def test_a_url_is_a_string_of_1_to_2048_characters_without_nul_or_lone_surrogate(bad: Any) -> None:
    assert _last(["register", 0, "b", bad]) == INVALID


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f631"])
def test_lengths_are_counted_in_characters(letter: str) -> None:
    longest = letter * 256
    operations = [["register", 0, longest, letter * 2048], Q(0, longest, longest, [200]), P(0)]
    assert run(operations) == [True, "queued", [f"{longest} #1 200 delivered"]]


def test_a_url_is_kept_as_given_and_never_judged() -> None:
    urls = ["x", "not a url", "javascript:alert(1)", "http://169.254.169.254/", "\n"]
    assert run([["register", 0, url, url] for url in urls]) == [True] * len(urls)


@pytest.mark.parametrize("replay_dead", [None, 0, 1, "true", "", [], [True], 1.0], ids=_short)
def test_a_replay_dead_is_a_bool(replay_dead: Any) -> None:
    assert _last(["enable", 0, "paused", replay_dead]) == INVALID


def test_invalid_arguments_are_checked_before_time() -> None:
    assert exact(
        run([["register", 9, "a", URL], ["status", 5], S(5, ""), Q(5, "a", "", [200])])[1:]
    ) == exact(["error: invalid arguments"] * 3)


@pytest.mark.parametrize(
    "operation", [Q(0, "z", "", []), Q(0, "", "known", []), E(0, "z", None), D(0, "\0")], ids=repr
)
def test_invalid_arguments_are_checked_before_the_operations_own(operation: list[Any]) -> None:
    assert _last(operation) == INVALID
