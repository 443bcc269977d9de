"""Faults that others had to report, as scenarios of `run`.

Attempts that always fail fall at 0, 30, 90, 210, 450 and 750.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dispatcher import run
from tests.notation import DL, URL, D, E, P, Q, R, S, exact, state

FAILING_TIMES = [0, 30, 90, 210, 450, 750]


def _attempted(operations: list[Any], results: list[Any]) -> dict[int, list[str]]:
    """Ts -> the records of what was attempted then."""
    answered = zip(operations, results, strict=True)
    return {operation[1]: result for operation, result in answered if operation[0] == "process" and result}


def test_c01_six_attempts_at_exact_times_and_no_seventh() -> None:
    """Delay lists were indexed one off; "max attempts" left open whether the first try counts."""
    times = [0, 29, 30, 89, 90, 209, 210, 449, 450, 749, 750, 9999]
    operations = [R("a"), Q(0, "a", "m", [500] * 6 + [200]), *(P(ts) for ts in times), S(9999, "m"), DL(9999)]
    results = run(operations)
    assert _attempted(operations, results) == {
        0: ["m #1 500 retry at 30"],
        30: ["m #2 500 retry at 90"],
        90: ["m #3 500 retry at 210"],
        210: ["m #4 500 retry at 450"],
        450: ["m #5 500 retry at 750"],
        750: ["m #6 500 dead"],
    }
    assert results[-2:] == [state("dead", 6), ["m"]]


def test_c01_a_script_too_short_repeats_its_last_outcome() -> None:
    """A script shorter than the attempts ended in an IndexError."""
    operations = [R("a"), Q(0, "a", "m2", [500]), *(P(ts) for ts in FAILING_TIMES)]
    assert list(_attempted(operations, run(operations))) == FAILING_TIMES


@pytest.mark.parametrize("code", [200, 204, 299])
def test_c03_success_is_delivered(code: int) -> None:
    """204 passed as a failure."""
    assert run([R("a"), Q(0, "a", "m", [code]), P(0)])[-1] == [f"m #1 {code} delivered"]


@pytest.mark.parametrize("code", [301, 304, 307, 400, 404, 409, 410, 425, 100, 199])
def test_c03_redirects_refusals_and_informational_answers_are_dead_after_one_attempt(code: int) -> None:
    """Redirects passed as a success."""
    assert run([R("a"), Q(0, "a", "m", [code]), P(0), P(30), S(30, "m")])[2:] == [
        [f"m #1 {code} dead"],
        [],
        state("dead", 1),
    ]


@pytest.mark.parametrize("code", [408, 429, 500, 501, 599, 0])
def test_c03_outages_are_due_again_at_30(code: int) -> None:
    """DNS failures, refused connections and the like skipped retrying."""
    assert run([R("a"), Q(0, "a", "m", [code]), P(0), S(0, "m")])[2:] == [
        [f"m #1 {code} retry at 30"],
        state("pending", 1, 30),
    ]


@pytest.mark.parametrize("code", [600, -1, "200", None])
def test_c03_what_is_no_status_is_rejected_and_never_delivered(code: Any) -> None:
    """Codes that aren't HTTP statuses counted as one class or another by accident."""
    assert run([R("a"), Q(0, "a", "m", [code]), P(0), S(0, "m")])[1:] == [
        "error: invalid outcomes",
        [],
        "error: unknown event",
    ]


def test_c04_waiting_for_ones_turn_costs_nothing() -> None:
    """A follower that waited its turn backed off like a failed send: waiting inflated delays and tries."""
    queued = [R("a"), Q(0, "a", "A", [500, 500, 500, 200]), Q(0, "a", "B", [500, 200])]
    operations = [*queued, *(P(ts) for ts in range(401)), S(400, "B")]
    results = run(operations)
    assert _attempted(operations, results) == {
        0: ["A #1 500 retry at 30"],
        30: ["A #2 500 retry at 90"],
        90: ["A #3 500 retry at 210"],
        210: ["A #4 200 delivered", "B #1 500 retry at 240"],
        240: ["B #2 200 delivered"],
    }
    assert results[-1] == state("delivered", 2)


def test_c05_a_failed_event_keeps_its_place_and_blocks_its_endpoint_only() -> None:
    """A failed group member moved behind its followers; one blocked key emptied the fetch for all keys."""
    queued = [Q(0, "a", "A", [500, 200]), Q(0, "a", "B", [400]), Q(0, "a", "C", [200]), Q(0, "b", "X", [200])]
    results = run([R("a"), R("b"), *queued, P(0), S(0, "B"), S(0, "C"), P(30)])
    assert results[6:] == [
        ["A #1 500 retry at 30", "X #1 200 delivered"],
        state("pending", 0, 0),
        state("pending", 0, 0),
        ["A #2 200 delivered", "B #1 400 dead", "C #1 200 delivered"],
    ]


def test_c07_a_retry_respects_the_pause_and_a_pause_consumes_no_budget() -> None:
    """Retrying a job ignored that its queue was paused."""
    paused = [Q(0, "a", "m", [500, 200]), P(0), D(10, "a"), P(30), P(500), S(500, "m")]
    assert run([R("a"), *paused, E(600, "a", False), P(600), S(600, "m")])[4:] == [
        [],
        [],
        state("held", 1),
        True,
        ["m #2 200 delivered"],
        state("delivered", 2),
    ]


def test_c09_a_revived_event_gets_a_fresh_budget_and_loses_no_history(tmp_path: Path) -> None:
    """Reviving an exhausted job kept its count: instant death, or the longest delay."""
    file = tmp_path / "log.db"
    exhausted = [R("a"), Q(0, "a", "m", [500] * 7 + [200]), *(P(ts) for ts in FAILING_TIMES)]
    revived = [D(800, "a"), E(900, "a", True), P(900), P(929), P(930), DL(930), S(930, "m")]
    assert run([*exhausted, *revived], str(file))[-5:] == [
        ["m #1 500 retry at 930"],
        [],
        ["m #2 500 retry at 990"],
        [],
        state("pending", 2, 990),
    ]
    with closing(sqlite3.connect(file)) as connection:
        attempts = "SELECT count(*) FROM dispatcher_log WHERE type = 'AttemptRecorded' AND delivery_id = 'm'"
        assert connection.execute(attempts).fetchone() == (8,)


def test_c10_reviving_nothing_changes_nothing_and_a_second_death_is_listed_once() -> None:
    """An empty replay left a flag that disabled later ones; a second death kept the first one's mark."""
    first = [
        R("a"),
        E(0, "a", True),
        Q(1, "a", "m", [400, 404, 200]),
        P(1),
        D(2, "a"),
        E(3, "a", True),
        P(3),
        DL(3, "a"),
    ]
    again = [D(4, "a"), E(5, "a", True), DL(5), P(5), DL(5, "a"), S(5, "m")]
    assert run([*first, *again]) == [
        True,
        "error: not disabled",
        "queued",
        ["m #1 400 dead"],
        True,
        True,
        ["m #1 400 dead"],
        ["m"],
        True,
        True,
        [],
        ["m #1 400 dead"],
        ["m"],
        state("dead", 1),
    ]


def test_c10_enabling_an_endpoint_without_dead_events_leaves_later_replays_working() -> None:
    """Replaying an empty list left a flag that disabled later replays."""
    empty = [R("a"), D(0, "a"), E(0, "a", True), Q(1, "a", "m", [400]), P(1), DL(1)]
    assert run([*empty, D(2, "a"), E(2, "a", True), DL(2), P(2)])[-5:] == [
        ["m"],
        True,
        True,
        [],
        ["m #1 400 dead"],
    ]


@pytest.mark.parametrize("ts", [0, -1])
def test_c13_zero_and_negative_times_are_times(ts: int) -> None:
    """Time helpers mixed up 0 and "unset"."""
    operations = [["register", ts, "a", URL], Q(ts, "a", "m", [500, 200]), P(ts), S(ts, "m"), P(ts + 30)]
    assert exact(run(operations)) == exact(
        [
            True,
            "queued",
            [f"m #1 500 retry at {ts + 30}"],
            state("pending", 1, ts + 30),
            ["m #2 200 delivered"],
        ]
    )


@pytest.mark.parametrize("ts", [True, 1.5, "5", 2**63])
def test_c13_what_is_no_time_is_refused(ts: Any, tmp_path: Path) -> None:
    """True became 1; sqlite3 raises a bare OverflowError at 2**63."""
    for database in (None, str(tmp_path / "log.db")):
        assert run([["register", ts, "a", URL], R("a"), Q(ts, "a", "m", [200]), P(ts)], database) == [
            "error: invalid arguments",
            True,
            "error: invalid arguments",
            "error: invalid arguments",
        ]


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/St_Johns", "UTC"])
def test_c13_a_retry_comes_30_seconds_later_in_any_zone(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Non-UTC zone settings broke retry countdowns."""
    shortly_before_a_clock_change = 1_743_256_795
    with monkeypatch.context() as environment:
        environment.setenv("TZ", zone)
        time.tzset()
        ts = shortly_before_a_clock_change
        results = run([R("a"), Q(ts, "a", "m", [500, 200]), P(ts), P(ts + 29), P(ts + 30)])
    time.tzset()
    assert results[2:] == [[f"m #1 500 retry at {ts + 30}"], [], ["m #2 200 delivered"]]


def test_c39_a_known_endpoint_or_event_is_refused_and_what_is_pending_is_kept() -> None:
    """Registering again replaced the endpoint; a repeated key replaced or doubled the message."""
    again = [
        ["register", 1, "a", URL + "/2"],
        Q(1, "a", "m", [200]),
        Q(1, "a", "m", [404]),
        S(1, "m"),
        P(30),
        Q(31, "a", "m", [200]),
    ]
    assert run([R("a"), Q(0, "a", "m", [503, 200]), P(0), *again])[3:] == [
        "error: duplicate endpoint",
        "error: duplicate event",
        "error: duplicate event",
        state("pending", 1, 30),
        ["m #2 200 delivered"],
        "error: duplicate event",
    ]


def test_c39_a_dead_event_is_a_known_event() -> None:
    """After its death a key was free again, so that its history mixed two messages."""
    assert run([R("a"), Q(0, "a", "m", [404]), P(0), Q(0, "a", "m", [200]), DL(0)])[3:] == [
        "error: duplicate event",
        ["m"],
    ]
