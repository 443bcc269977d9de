"""A receiver's Retry-After: heard on 429 and 503, only ever to wait longer, never beyond an hour."""

from __future__ import annotations

import msgspec
import pytest

from dispatcher.core.policy import PROMISED, STANDARD, RetryPolicy
from tests.unit.core.history import shop

BOTH = pytest.mark.parametrize(
    ("policy", "first_wait"), [(PROMISED, 30), (STANDARD, 5)], ids=["promised", "standard"]
)


@BOTH
@pytest.mark.parametrize("status", [429, 503])
def test_the_longer_of_schedule_and_hint_is_waited(policy: RetryPolicy, first_wait: int, status: int) -> None:
    history = shop("m", "n", "o", policy=policy)
    assert history.attempt("m", status, 10, retry_after=first_wait + 1).retry_at == 10 + first_wait + 1
    assert history.attempt("n", status, 10, retry_after=first_wait - 1).retry_at == 10 + first_wait
    assert history.attempt("o", status, 10, retry_after=0).retry_at == 10 + first_wait


@BOTH
def test_a_hint_goes_beyond_the_policys_own_cap_but_never_beyond_an_hour(
    policy: RetryPolicy, first_wait: int
) -> None:
    history = shop("m", "n", "o", policy=policy)
    assert history.attempt("m", 503, 10, retry_after=3599).retry_at == 10 + 3599
    assert history.attempt("n", 503, 10, retry_after=3600).retry_at == 10 + 3600
    assert history.attempt("o", 503, 10, retry_after=99_999_999_999).retry_at == 10 + 3600


def test_a_schedule_longer_than_an_hour_is_not_shortened_by_the_cap() -> None:
    history = shop("m", policy=STANDARD)
    for _ in range(3):
        history.attempt("m", 503)
    assert history.attempt("m", 503, 0, retry_after=3600).retry_at == 7200


def test_the_cap_counts_in_the_logs_unit() -> None:
    history = shop("m", policy=PROMISED.scaled(1000))
    assert history.attempt("m", 503, 0, retry_after=10_000_000).retry_at == 3_600_000


@pytest.mark.parametrize("status", [500, 502, 504, 408, 0])
def test_on_any_other_status_a_hint_is_only_kept(status: int) -> None:
    attempt = shop("m").attempt("m", status, 0, retry_after=1000)
    assert (attempt.retry_at, attempt.retry_after) == (30, 1000)


def test_a_hint_on_success_or_on_the_last_attempt_moves_nothing() -> None:
    history = shop("m", "n")
    assert history.attempt("m", 200, 0, retry_after=1000).retry_at is None
    for _ in range(5):
        history.attempt("n", 503)
    last = history.attempt("n", 503, 0, retry_after=1000)
    assert (last.decision, last.retry_at) == ("dead", None)


def test_an_attempt_with_a_hint_counts_like_any_other() -> None:
    history = shop("m")
    for number in range(1, 6):
        assert history.attempt("m", 429, 0, retry_after=3600).attempt == number
    assert history.attempt("m", 429, 0, retry_after=3600).decision == "dead"


def test_a_cap_of_zero_ignores_hints() -> None:
    history = shop("m", policy=msgspec.structs.replace(PROMISED, retry_after_cap=0))
    assert history.attempt("m", 503, 0, retry_after=1000).retry_at == 30


def test_a_negative_hint_never_shortens_the_wait() -> None:
    assert shop("m").attempt("m", 503, 0, retry_after=-1000).retry_at == 30
