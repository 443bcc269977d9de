"""Recording attempts: what is decided from the facts, and that the facts are kept."""

from __future__ import annotations

import pytest

from dispatcher.core.entries import AttemptRecorded
from dispatcher.core.operations import Cancel, Disable, Enable, Enqueue, Erase, Record, Revive
from dispatcher.core.policy import PROMISED, STANDARD
from tests.unit.core.history import shop

FAILURES_OF_PROMISED = [500, 501, 503, 599, 408, 429, 0]


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_success_delivers(status: int) -> None:
    history = shop("m")
    attempt = history.attempt("m", status, 5)
    assert (attempt.attempt, attempt.outcome, attempt.decision) == (1, "success", "delivered")
    assert attempt.retry_at is None
    assert history.status("m") == ("delivered", 1, None)


@pytest.mark.parametrize("status", FAILURES_OF_PROMISED)
def test_a_retryable_failure_is_tried_again_after_the_wait(status: int) -> None:
    history = shop("m")
    attempt = history.attempt("m", status, 5)
    assert (attempt.outcome, attempt.decision, attempt.retry_at) == ("retryable", "retry", 35)
    assert history.status("m") == ("pending", 1, 35)


@pytest.mark.parametrize(
    "status", [100, 199, 300, 301, 304, 307, 400, 401, 404, 407, 409, 410, 425, 430, 499]
)
def test_a_permanent_failure_is_dead_at_once(status: int) -> None:
    history = shop("m")
    attempt = history.attempt("m", status, 5)
    assert (attempt.attempt, attempt.outcome, attempt.decision) == (1, "permanent", "dead")
    assert attempt.retry_at is None
    assert history.status("m") == ("dead", 1, None)
    assert history.dead() == ["m"]


def test_six_attempts_are_promised_and_there_is_no_seventh() -> None:
    history = shop("m")
    due = 0
    for number, wait in enumerate([30, 60, 120, 240, 300], start=1):
        attempt = history.attempt("m", 500, due)
        assert (attempt.attempt, attempt.retry_at) == (number, due + wait)
        due += wait
    last = history.attempt("m", 500, due)
    assert (last.attempt, last.outcome, last.decision, last.retry_at) == (6, "retryable", "dead", None)
    assert due == 750
    assert history.refusal(Record("m", 200, due), due) == "not_pending"


def test_the_last_allowed_attempt_may_still_succeed() -> None:
    history = shop("m")
    for _ in range(5):
        history.attempt("m", 500)
    assert history.attempt("m", 200).decision == "delivered"
    assert history.status("m") == ("delivered", 6, None)


def test_a_wait_runs_from_the_ts_of_the_entry_and_not_from_when_the_attempt_was_due_or_started() -> None:
    history = shop("m")
    (entry,) = history.entries(Record("m", 503, started_at=70, duration=8), 100)
    assert isinstance(entry.body, AttemptRecorded)
    assert entry.body.retry_at == 130


def test_all_facts_are_kept_beside_the_decision() -> None:
    history = shop("m")
    facts = Record("m", 503, 70, 8, None, "oversized", 45, "worker-1")
    (entry,) = history.entries(facts, 100)
    assert entry.body == AttemptRecorded(
        attempt=1,
        status=503,
        outcome="retryable",
        decision="retry",
        retry_at=145,
        error="oversized",
        retry_after=45,
        worker="worker-1",
        started_at=70,
        duration=8,
    )
    assert (entry.ts, entry.endpoint_id, entry.delivery_id) == (100, "shop", "m")
    assert (history.delivery("m").last_status, history.delivery("m").last_error) == (503, "oversized")


def test_a_class_that_came_with_the_facts_beats_the_status_and_is_marked() -> None:
    history = shop("m", "n", "o")
    blocked = history.attempt("m", 0, outcome="permanent", error="host_not_allowed")
    assert (blocked.outcome, blocked.decision, blocked.judged) == ("permanent", "dead", True)
    accepted = history.attempt("n", 0, outcome="success")
    assert (accepted.outcome, accepted.decision, accepted.judged) == ("success", "delivered", True)
    later = history.attempt("o", 404, 0, outcome="retryable")
    assert (later.outcome, later.decision, later.retry_at) == ("retryable", "retry", 30)


def test_a_class_that_the_status_decides_is_not_marked() -> None:
    assert shop("m").attempt("m", 200).judged is False


def test_a_lost_attempt_counts_and_waits_like_any_other() -> None:
    history = shop("m")
    attempt = history.attempt("m", 0, 50, error="lost")
    assert (attempt.attempt, attempt.error, attempt.retry_at) == (1, "lost", 80)


def test_a_delivery_that_is_not_the_head_is_recorded_as_it_comes() -> None:
    history = shop("m", "n")
    assert history.attempt("n", 503, 5).retry_at == 35
    assert history.attempt("n", 200, 40).decision == "delivered"
    assert history.status("m") == ("pending", 0, 0)
    head = history.state.head(history.delivery("m").lane)
    assert head is history.delivery("m")


def test_a_head_that_is_attempted_twice_in_between_stays_the_head() -> None:
    history = shop("m", "n", "o")
    history.exhaust("n")
    history.attempt("m", 500)
    lane = history.delivery("m").lane
    assert history.state.head(lane) is history.delivery("m")
    history.attempt("m", 200, 30)
    assert history.state.head(lane) is history.delivery("o")


def test_the_result_of_a_disabled_endpoint_is_recorded_and_its_retry_is_held() -> None:
    history = shop("m", "n")
    history.entries(Disable("shop"), 10)
    assert history.attempt("m", 503, 20).retry_at == 50
    assert history.status("m") == ("held", 1, None)
    assert history.attempt("n", 200, 20).decision == "delivered"
    assert history.status("n") == ("delivered", 1, None)
    history.entries(Enable("shop"), 25)
    assert history.status("m") == ("pending", 1, 25)


def test_an_unknown_delivery_is_refused() -> None:
    assert shop("m").refusal(Record("n", 200, 0)) == "unknown_event"


@pytest.mark.parametrize("end", ["delivered", "dead", "cancelled", "erased"])
def test_what_is_not_pending_is_refused(end: str) -> None:
    history = shop("m")
    match end:
        case "delivered":
            history.attempt("m", 200)
        case "dead":
            history.exhaust("m")
        case "cancelled":
            history.entries(Cancel("m"))
        case _:
            history.entries(Erase("m"))
    assert history.refusal(Record("m", 200, 0)) == "not_pending"


def test_after_revival_attempts_count_from_one_again() -> None:
    history = shop("m")
    for _ in range(6):
        history.attempt("m", 500)
    history.entries(Revive("shop"), 900)
    attempt = history.attempt("m", 500, 900)
    assert (attempt.attempt, attempt.decision, attempt.retry_at) == (1, "retry", 930)


def test_each_endpoint_follows_its_own_policy() -> None:
    promised, standard = shop("m", policy=PROMISED), shop("m", policy=STANDARD)
    assert promised.attempt("m", 404).decision == "dead"
    assert standard.attempt("m", 404).retry_at == 5
    assert standard.attempt("m", 410, 5).decision == "dead"


def test_jitter_lengthens_a_wait_by_the_deliverys_own_seed() -> None:
    history = shop(policy=STANDARD.scaled(1000))
    retries = set()
    for seed in (1, 2, 3, None):
        history.entries(Enqueue("shop", f"m{seed}", seed=seed))
        retry_at = history.attempt(f"m{seed}", 500).retry_at
        assert retry_at == STANDARD.scaled(1000).wait_after(1, seed)
        retries.add(retry_at)
    assert len(retries) == 4
    assert min(retries) == 5000
