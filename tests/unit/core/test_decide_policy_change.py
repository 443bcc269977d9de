"""A changed policy applies from the next recorded attempt."""

from __future__ import annotations

import msgspec

from dispatcher.core.operations import Update
from dispatcher.core.policy import PROMISED, STANDARD, RetryPolicy
from tests.unit.core.history import History, shop

ONCE = RetryPolicy(max_attempts=1, waits=(), retryable=((500, 599),))
THRICE = msgspec.structs.replace(PROMISED, max_attempts=3)


def _change(history: History, policy: RetryPolicy, ts: int) -> None:
    history.entries(Update(endpoint_id="shop", policy=policy), ts)


def test_a_retry_that_is_set_keeps_its_time() -> None:
    history = shop("m")
    history.attempt("m", 500, 0)
    _change(history, STANDARD, 1)
    assert history.status("m") == ("pending", 1, 30)


def test_the_next_attempt_is_judged_by_the_new_policy() -> None:
    history = shop("m")
    history.attempt("m", 500, 0)
    _change(history, STANDARD, 1)
    assert history.attempt("m", 404, 30).retry_at == 30 + 300
    _change(history, PROMISED, 31)
    assert history.attempt("m", 404, 330).decision == "dead"


def test_a_retry_that_is_set_happens_even_past_a_lowered_maximum() -> None:
    history = shop("m")
    for _ in range(4):
        history.attempt("m", 500, 0)
    _change(history, THRICE, 1)
    assert history.status("m") == ("pending", 4, 240)
    assert history.attempt("m", 200, 240).decision == "delivered"
    assert history.status("m") == ("delivered", 5, None)


def test_past_a_lowered_maximum_a_failure_is_the_last() -> None:
    history = shop("m")
    for _ in range(4):
        history.attempt("m", 500, 0)
    _change(history, ONCE, 1)
    last = history.attempt("m", 500, 240)
    assert (last.attempt, last.outcome, last.decision) == (5, "retryable", "dead")


def test_a_raised_maximum_gives_more_attempts_but_revives_nothing() -> None:
    history = shop("m", "n", policy=ONCE)
    assert history.attempt("m", 500, 0).decision == "dead"
    _change(history, PROMISED, 1)
    assert history.status("m") == ("dead", 1, None)
    assert history.attempt("n", 500, 1).retry_at == 31


def test_a_recorded_decision_is_never_rewritten() -> None:
    history = shop("m", "n")
    history.attempt("m", 404, 0)
    history.attempt("n", 200, 0)
    _change(history, STANDARD, 1)
    assert history.status("m") == ("dead", 1, None)
    assert history.status("n") == ("delivered", 1, None)
