"""Giving a pending delivery up on request."""

from __future__ import annotations

from dispatcher.core.entries import Cancelled
from dispatcher.core.operations import Cancel, Disable, Enable, Erase, Revive
from tests.unit.core.history import shop


def test_a_pending_delivery_is_cancelled_with_its_attempts_kept() -> None:
    history = shop("m")
    history.attempt("m", 500)
    (entry,) = history.entries(Cancel("m", actor="someone"), 5)
    assert entry.body == Cancelled(actor="someone")
    assert (entry.ts, entry.endpoint_id, entry.delivery_id) == (5, "shop", "m")
    assert history.status("m") == ("cancelled", 1, None)
    endpoint = history.endpoint()
    assert (endpoint.pending, endpoint.cancelled, endpoint.dead) == (0, 1, 0)


def test_the_next_in_the_lane_takes_its_turn() -> None:
    history = shop("m", "n", "o")
    history.entries(Cancel("n"))
    history.entries(Cancel("m"))
    assert history.state.head(history.delivery("o").lane) is history.delivery("o")


def test_a_held_delivery_may_be_cancelled_and_stays_so() -> None:
    history = shop("m")
    history.entries(Disable("shop"))
    history.entries(Cancel("m"))
    assert history.status("m") == ("cancelled", 0, None)
    history.entries(Enable("shop", replay_dead=True))
    assert history.status("m") == ("cancelled", 0, None)


def test_a_delivery_in_flight_is_refused() -> None:
    history = shop("m")
    assert history.refusal(Cancel("m", in_flight=True)) == "in_flight"


def test_an_unknown_delivery_is_refused() -> None:
    assert shop().refusal(Cancel("m", in_flight=True)) == "unknown_event"


def test_what_is_not_pending_is_refused_in_flight_or_not() -> None:
    history = shop("sent", "dead", "cancelled", "erased")
    history.attempt("sent", 200)
    history.exhaust("dead")
    history.entries(Cancel("cancelled"))
    history.entries(Erase("erased"))
    for delivery_id in ("sent", "dead", "cancelled", "erased"):
        assert history.refusal(Cancel(delivery_id)) == "not_pending"
        assert history.refusal(Cancel(delivery_id, in_flight=True)) == "not_pending"


def test_a_revived_delivery_may_be_cancelled() -> None:
    history = shop("m")
    history.exhaust("m")
    history.entries(Revive("shop"))
    history.entries(Cancel("m"))
    assert history.status("m") == ("cancelled", 0, None)
    assert history.dead() == []
