"""What one attempt becomes: its record, its class, its wait, and when there are no more."""

from __future__ import annotations

import pytest

from dispatcher import run
from tests.notation import P, Q, R, S, state

RETRYABLE = [0, 408, 429, *range(500, 600)]
DELIVERED = [*range(200, 300)]
PERMANENT = [status for status in range(100, 600) if status not in RETRYABLE and status not in DELIVERED]
FAILING_TIMES = [0, 30, 90, 210, 450, 750]


def _first_attempts(statuses: list[int]) -> list[str]:
    """The records of one attempt each, every status at an endpoint of its own."""
    opening = [
        operation
        for status in statuses
        for operation in (R(f"at-{status}"), Q(0, f"at-{status}", f"m{status}", [status]))
    ]
    records = run([*opening, P(0)])[-1]
    assert isinstance(records, list)
    return records


def test_every_status_is_of_exactly_one_class() -> None:
    assert sorted(RETRYABLE + DELIVERED + PERMANENT) == [0, *range(100, 600)]


def test_200_to_299_is_delivered() -> None:
    assert _first_attempts(DELIVERED) == [f"m{status} #1 {status} delivered" for status in DELIVERED]


def test_500_to_599_and_408_and_429_and_0_are_retryable() -> None:
    assert _first_attempts(RETRYABLE) == [f"m{status} #1 {status} retry at 30" for status in RETRYABLE]


def test_anything_else_is_permanent() -> None:
    assert _first_attempts(PERMANENT) == [f"m{status} #1 {status} dead" for status in PERMANENT]


def test_a_permanent_failure_after_retries_is_dead_too() -> None:
    assert run([R("a"), Q(0, "a", "m", [503, 404, 200]), P(0), P(30), P(60), S(60, "m")])[2:] == [
        ["m #1 503 retry at 30"],
        ["m #2 404 dead"],
        [],
        state("dead", 2),
    ]


@pytest.mark.parametrize("status", RETRYABLE)
def test_a_retryable_failure_on_the_last_allowed_attempt_is_dead(status: int) -> None:
    results = run([R("a"), Q(0, "a", "m", [status]), *(P(ts) for ts in FAILING_TIMES), P(9999), S(9999, "m")])
    assert results[-3:] == [[f"m #6 {status} dead"], [], state("dead", 6)]


@pytest.mark.parametrize("successful", range(1, 7))
def test_each_of_six_attempts_may_succeed(successful: int) -> None:
    script = [503] * (successful - 1) + [200]
    results = run([R("a"), Q(0, "a", "m", script), *(P(ts) for ts in FAILING_TIMES), S(9999, "m")])
    assert results[2 + successful - 1] == [f"m #{successful} 200 delivered"]
    assert results[-1] == state("delivered", successful)


def test_waits_are_30_60_120_240_300_after_attempts_1_to_5() -> None:
    """Read off the records when every process comes late, so that waits are seen to run from the attempt."""
    late = [7, 107, 1007, 2007, 3007, 4007]
    assert run([R("a"), Q(0, "a", "m", [503]), *(P(ts) for ts in late)])[2:] == [
        ["m #1 503 retry at 37"],
        ["m #2 503 retry at 167"],
        ["m #3 503 retry at 1127"],
        ["m #4 503 retry at 2247"],
        ["m #5 503 retry at 3307"],
        ["m #6 503 dead"],
    ]


def test_a_retry_comes_neither_early_nor_twice() -> None:
    times = sorted({time + shift for time in FAILING_TIMES for shift in (-1, 0, 0, 1)} - {-1})
    results = run(
        [R("a"), Q(0, "a", "m", [503]), *(operation for ts in times for operation in (P(ts), P(ts)))]
    )[2:]
    attempted = [ts for ts, first in zip(times, results[::2], strict=True) if first]
    assert attempted == FAILING_TIMES
    assert results[1::2] == [[]] * len(times), "an event is attempted at most once at one time"


def test_there_is_no_seventh_attempt() -> None:
    results = run([R("a"), Q(0, "a", "m", [503] * 6 + [200]), *(P(ts) for ts in range(0, 20_000, 50))])
    records = [record for result in results[2:] if isinstance(result, list) for record in result]
    assert len(records) == 6
    assert records[-1] == "m #6 503 dead"


def test_an_event_is_attempted_at_most_once_per_process_however_late() -> None:
    assert run([R("a"), Q(0, "a", "m", [503]), P(1_000_000), P(1_000_029), P(1_000_030)])[2:] == [
        ["m #1 503 retry at 1000030"],
        [],
        ["m #2 503 retry at 1000090"],
    ]


def test_attempt_n_gets_outcome_n_and_the_last_one_repeats() -> None:
    script = [500, 502, 0, 429]
    results = run([R("a"), Q(0, "a", "m", script), *(P(ts) for ts in FAILING_TIMES)])
    assert results[2:] == [
        ["m #1 500 retry at 30"],
        ["m #2 502 retry at 90"],
        ["m #3 0 retry at 210"],
        ["m #4 429 retry at 450"],
        ["m #5 429 retry at 750"],
        ["m #6 429 dead"],
    ]


def test_times_before_zero_are_times_like_others() -> None:
    operations = [
        ["register", -100, "a", "u"],
        Q(-100, "a", "m", [503]),
        P(-100),
        P(-71),
        P(-70),
        S(-70, "m"),
    ]
    assert run(operations)[2:] == [
        ["m #1 503 retry at -70"],
        [],
        ["m #2 503 retry at -10"],
        state("pending", 2, -10),
    ]


def test_a_retry_due_at_time_zero_is_still_a_time() -> None:
    operations = [["register", -30, "a", "u"], Q(-30, "a", "m", [503]), P(-30), S(-30, "m"), P(-1), P(0)]
    assert run(operations)[2:] == [
        ["m #1 503 retry at 0"],
        state("pending", 1, 0),
        [],
        ["m #2 503 retry at 60"],
    ]
