"""Every number of retrying, of the two named policies and of those made by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dispatcher.core.policy import NAMED_POLICIES, PROMISED, STANDARD, RetryPolicy

STATUSES = [0, *range(100, 600)]
SUCCESSES = set(range(200, 300))


def _retryable(policy: RetryPolicy) -> set[int]:
    return {status for status in STATUSES if policy.classify(status) == "retryable"}


def test_two_policies_are_named() -> None:
    assert NAMED_POLICIES == {"promised": PROMISED, "standard": STANDARD}


def test_promised_is_six_attempts_with_waits_doubled_up_to_five_minutes() -> None:
    assert PROMISED.max_attempts == 6
    assert PROMISED.waits == (30, 60, 120, 240, 300)
    assert PROMISED.jitter_percent == 0
    assert PROMISED.retry_after_cap == 3600


def test_standard_is_ten_attempts_over_three_days() -> None:
    assert STANDARD.max_attempts == 10
    assert STANDARD.waits == (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
    assert STANDARD.jitter_percent == 10
    assert STANDARD.retry_after_cap == 3600


def test_promised_retries_no_answer_408_429_and_server_errors() -> None:
    assert _retryable(PROMISED) == {0, 408, 429, *range(500, 600)}
    assert {PROMISED.classify(status) for status in range(1, 100)} == {"permanent"}


def test_standard_retries_all_but_success_and_gone() -> None:
    assert _retryable(STANDARD) == set(STATUSES) - SUCCESSES - {410}


@pytest.mark.parametrize("policy", NAMED_POLICIES.values(), ids=NAMED_POLICIES)
def test_success_is_2xx_and_the_rest_is_permanent(policy: RetryPolicy) -> None:
    assert {status for status in STATUSES if policy.classify(status) == "success"} == SUCCESSES
    permanent = {status for status in STATUSES if policy.classify(status) == "permanent"}
    assert permanent == set(STATUSES) - SUCCESSES - _retryable(policy)


@pytest.mark.parametrize("status", [-1, 600, 999, 2**63])
def test_a_status_that_http_does_not_know_is_permanent(status: int) -> None:
    assert PROMISED.classify(status) == "permanent"
    assert STANDARD.classify(status) == "permanent"


def test_the_last_wait_repeats() -> None:
    policy = RetryPolicy(max_attempts=9, waits=(3, 7), retryable=((0, 0),))
    assert [policy.wait_after(attempt, None) for attempt in range(1, 9)] == [3, 7, 7, 7, 7, 7, 7, 7]


def test_promised_waits_are_the_same_whatever_the_seed() -> None:
    assert [PROMISED.wait_after(attempt, 12345) for attempt in range(1, 6)] == [30, 60, 120, 240, 300]


def test_without_a_seed_nothing_is_jittered() -> None:
    assert [STANDARD.wait_after(attempt, None) for attempt in range(1, 10)] == list(STANDARD.waits)


MILLIS = STANDARD.scaled(1000)
SEEDS = [0, 1, 2, 17, 2**31, 2**63 - 1, -1, -(2**63)]


@pytest.mark.parametrize("seed", SEEDS)
def test_jitter_lengthens_a_wait_by_at_most_a_tenth(seed: int) -> None:
    for attempt, wait in enumerate(MILLIS.waits, start=1):
        assert wait <= MILLIS.wait_after(attempt, seed) <= wait + wait // 10


def test_jitter_comes_of_the_seed_and_the_attempt_alone() -> None:
    twin = msgspec.json.decode(msgspec.json.encode(MILLIS), type=RetryPolicy)
    for seed in SEEDS:
        for attempt in range(1, 10):
            assert MILLIS.wait_after(attempt, seed) == twin.wait_after(attempt, seed)
    # Drawn once and written down: another draw would move the retries of live histories.
    drawn = [MILLIS.wait_after(attempt, 17) - MILLIS.waits[attempt - 1] for attempt in (1, 2, 3)]
    assert drawn == [223, 16_208, 54_434]


def test_jitter_differs_from_attempt_to_attempt_and_from_seed_to_seed() -> None:
    flat = RetryPolicy(max_attempts=10, waits=(1_000_000,), retryable=((0, 0),), jitter_percent=10)
    by_attempt = {flat.wait_after(attempt, 17) for attempt in range(1, 10)}
    by_seed = {flat.wait_after(1, seed) for seed in range(100)}
    assert len(by_attempt) == 9
    assert len(by_seed) == 100


def test_jitter_is_spread_over_its_whole_range() -> None:
    flat = RetryPolicy(max_attempts=2, waits=(1_000_000,), retryable=((0, 0),), jitter_percent=10)
    extra = [flat.wait_after(1, seed) - 1_000_000 for seed in range(2000)]
    assert 0 <= min(extra) < 1000
    assert 99_000 < max(extra) <= 100_000
    assert 45_000 < sum(extra) / len(extra) < 55_000


def test_scaling_multiplies_times_and_nothing_else() -> None:
    assert MILLIS.waits == tuple(wait * 1000 for wait in STANDARD.waits)
    assert MILLIS.retry_after_cap == 3_600_000
    assert (MILLIS.max_attempts, MILLIS.retryable, MILLIS.jitter_percent) == (10, STANDARD.retryable, 10)
    assert PROMISED.scaled(1) == PROMISED


def test_exponential_waits_double_up_to_the_cap() -> None:
    policy = RetryPolicy.exponential(attempts=5, base=10, cap=35)
    assert policy.waits == (10, 20, 35, 35)
    assert policy.retryable == PROMISED.retryable
    assert policy.jitter_percent == 0


def test_exponential_takes_classes_and_jitter() -> None:
    policy = RetryPolicy.exponential(attempts=2, base=1, cap=1, retryable=((404, 404),), jitter_percent=5)
    assert (policy.waits, policy.retryable, policy.jitter_percent) == ((1,), ((404, 404),), 5)


def test_exponential_of_one_attempt_waits_never_and_of_many_stays_at_the_cap() -> None:
    assert RetryPolicy.exponential(attempts=1, base=10, cap=35).waits == ()
    assert RetryPolicy.exponential(attempts=200, base=1, cap=10**6).waits[-1] == 10**6


VALID: dict[str, Any] = {"max_attempts": 3, "waits": (1, 2), "retryable": ((0, 0), (500, 599))}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": -1}, "max_attempts"),
        ({"waits": ()}, "waits"),
        ({"max_attempts": 2, "waits": ()}, "waits"),
        ({"waits": (1, 0)}, "wait"),
        ({"waits": (-1,)}, "wait"),
        ({"max_attempts": 1, "waits": (0,)}, "wait"),
        ({"jitter_percent": -1}, "jitter_percent"),
        ({"jitter_percent": 101}, "jitter_percent"),
        ({"retry_after_cap": -1}, "retry_after_cap"),
        ({"retryable": ((500, 499),)}, "retryable"),
        ({"retryable": ((200, 200),)}, "retryable"),
        ({"retryable": ((299, 299),)}, "retryable"),
        ({"retryable": ((100, 200),)}, "retryable"),
        ({"retryable": ((299, 300),)}, "retryable"),
        ({"retryable": ((0, 599),)}, "retryable"),
        ({"retryable": ((500, 599), (250, 260))}, "retryable"),
    ],
)
def test_numbers_that_could_never_work_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        RetryPolicy(**{**VALID, **change})


def test_a_policy_made_by_hand_has_no_jitter_and_hears_an_hour_unless_told() -> None:
    policy = RetryPolicy(**VALID)
    assert (policy.jitter_percent, policy.retry_after_cap) == (0, 3600)


def test_a_policy_is_a_value() -> None:
    policy = RetryPolicy(**VALID)
    assert hash(policy) == hash(RetryPolicy(**VALID))
    with pytest.raises(AttributeError):
        policy.max_attempts = 9  # type: ignore[misc]


@pytest.mark.parametrize(
    "change",
    [
        {"max_attempts": 1, "waits": ()},
        {"waits": (1,)},
        {"waits": (1, 2, 3, 4)},
        {"jitter_percent": 100},
        {"retry_after_cap": 0},
        {"retryable": ()},
        {"retryable": ((0, 199), (300, 599))},
        {"retryable": ((404, 404),)},
    ],
)
def test_numbers_at_the_edges_are_accepted(change: dict[str, Any]) -> None:
    assert RetryPolicy(**{**VALID, **change})


def test_json_with_a_field_that_no_policy_has_is_refused() -> None:
    text = msgspec.json.encode(PROMISED).decode()
    assert msgspec.json.decode(text, type=RetryPolicy) == PROMISED
    with pytest.raises(msgspec.ValidationError, match="max_delay"):
        msgspec.json.decode(text.replace("{", '{"max_delay":1,', 1), type=RetryPolicy)


def test_json_with_numbers_that_could_never_work_is_refused() -> None:
    text = msgspec.json.encode(PROMISED).decode().replace('"max_attempts":6', '"max_attempts":0')
    with pytest.raises(msgspec.ValidationError, match="max_attempts"):
        msgspec.json.decode(text, type=RetryPolicy)


@pytest.mark.parametrize("field", [{"waits": (2**53 + 1,)}, {"retry_after_cap": 2**53 + 1}])
def test_a_wait_that_no_due_time_could_hold_is_refused(field: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="2\\*\\*53"):
        msgspec.structs.replace(PROMISED, **field)
