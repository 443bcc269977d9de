"""What a delivery looks like from outside."""

from __future__ import annotations

import pytest

from dispatcher.core.entries import AttemptRecorded
from dispatcher.core.operations import Cancel, Disable, Enable, Enqueue, Release, Revive, Update
from dispatcher.core.policy import STANDARD
from dispatcher.core.status import attempt_record, due_at, shown_state, status
from tests.unit.core.history import shop


def test_a_status_names_state_attempts_and_next_attempt() -> None:
    history = shop("m")
    history.attempt("m", 503, 5)
    assert status(history.delivery("m")) == {"state": "pending", "attempts": 1, "next_attempt_at": 35}


def test_a_waiting_event_shows_its_own_due_time_and_attempts() -> None:
    history = shop("m")
    history.entries(Enqueue("shop", "n"), 4)
    history.attempt("m", 503, 5)
    assert history.status("n") == ("pending", 0, 4)


def test_only_what_is_pending_and_not_held_has_a_next_attempt() -> None:
    history = shop("sent", "dead", "cancelled", "held")
    history.attempt("sent", 200)
    history.exhaust("dead")
    history.entries(Cancel("cancelled"))
    history.entries(Disable("shop"))
    for delivery_id, state in [
        ("sent", "delivered"),
        ("dead", "dead"),
        ("cancelled", "cancelled"),
        ("held", "held"),
    ]:
        delivery = history.delivery(delivery_id)
        assert shown_state(delivery) == state
        assert due_at(delivery) is None


def test_a_due_time_from_before_the_pause_is_that_of_the_resumption() -> None:
    history = shop("m", "n")
    history.attempt("m", 503, 0)
    history.entries(Disable("shop"), 5)
    history.entries(Enable("shop"), 8)
    assert due_at(history.delivery("m")) == 8
    history.attempt("m", 503, 9)
    assert due_at(history.delivery("m")) == 69
    assert due_at(history.delivery("n")) == 8


def test_only_the_newest_resumption_counts() -> None:
    history = shop("m")
    for ts in (10, 20, 30):
        history.entries(Disable("shop"), ts)
        history.entries(Enable("shop"), ts + 5)
    assert due_at(history.delivery("m")) == 35


def test_a_revival_is_due_at_its_own_ts() -> None:
    history = shop("m")
    history.exhaust("m")
    history.entries(Revive("shop"), 9)
    assert history.status("m") == ("pending", 0, 9)


def test_releases_and_changed_settings_do_not_show() -> None:
    history = shop("m")
    history.attempt("m", 503, 0)
    history.entries(Release("m"), 31)
    history.entries(Update(endpoint_id="shop", policy=STANDARD), 32)
    assert history.status("m") == ("pending", 1, 30)


@pytest.mark.parametrize(
    ("attempt", "status", "decision", "retry_at", "line"),
    [
        (3, 200, "delivered", None, "evt-1 #3 200 delivered"),
        (1, 503, "retry", 30, "evt-1 #1 503 retry at 30"),
        (2, 0, "retry", 0, "evt-1 #2 0 retry at 0"),
        (1, 503, "retry", -10, "evt-1 #1 503 retry at -10"),
        (1, 404, "dead", None, "evt-1 #1 404 dead"),
        (6, 503, "dead", None, "evt-1 #6 503 dead"),
    ],
)
def test_an_attempt_reads_as_one_line(
    attempt: int, status: int, decision: str, retry_at: int | None, line: str
) -> None:
    recorded = AttemptRecorded(
        attempt=attempt,
        status=status,
        outcome="retryable",
        decision=decision,  # type: ignore[arg-type]
        retry_at=retry_at,
        started_at=0,
    )
    assert attempt_record("evt-1", recorded) == line
