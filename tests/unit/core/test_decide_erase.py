"""Erasing payloads: by command, on delivery, or when a delivery is over."""

from __future__ import annotations

import pytest

from dispatcher.core.entries import AttemptRecorded, Body, Cancelled, PayloadErased
from dispatcher.core.operations import Cancel, Disable, Erase, Record, Update
from tests.unit.core.history import shop


def _types(bodies: list[Body]) -> list[type[Body]]:
    return [type(body) for body in bodies]


def test_erasing_a_pending_delivery_cancels_it_first() -> None:
    history = shop("m", "n")
    entries = history.entries(Erase("m", actor="someone"), 5)
    assert [entry.body for entry in entries] == [Cancelled(actor="someone"), PayloadErased(actor="someone")]
    assert {(entry.ts, entry.endpoint_id, entry.delivery_id) for entry in entries} == {(5, "shop", "m")}
    assert history.status("m") == ("cancelled", 0, None)
    assert history.delivery("m").erased
    assert not history.delivery("n").erased


def test_erasing_a_held_delivery_cancels_it_too() -> None:
    history = shop("m")
    history.entries(Disable("shop"))
    assert _types(history.bodies(Erase("m"))) == [Cancelled, PayloadErased]


@pytest.mark.parametrize(("status", "state"), [(200, "delivered"), (404, "dead")])
def test_erasing_what_is_over_leaves_its_state(status: int, state: str) -> None:
    history = shop("m")
    history.attempt("m", status)
    assert history.bodies(Erase("m", actor="someone")) == [PayloadErased(actor="someone")]
    assert history.status("m") == (state, 1, None)
    assert history.delivery("m").erased


def test_erasing_what_was_cancelled_does_not_cancel_it_again() -> None:
    history = shop("m")
    history.entries(Cancel("m"))
    assert history.bodies(Erase("m")) == [PayloadErased()]
    assert history.endpoint().cancelled == 1


def test_erasing_twice_is_accepted_and_comes_to_nothing() -> None:
    history = shop("m")
    history.entries(Erase("m"))
    assert history.entries(Erase("m")) == []


def test_a_delivery_in_flight_is_refused() -> None:
    history = shop("m")
    assert history.refusal(Erase("m", in_flight=True)) == "in_flight"
    assert not history.delivery("m").erased


def test_an_unknown_delivery_is_refused() -> None:
    assert shop().refusal(Erase("m", in_flight=True)) == "unknown_event"


@pytest.mark.parametrize(
    ("erase", "status", "erased"),
    [
        ("never", 200, False),
        ("never", 404, False),
        ("on_delivery", 200, True),
        ("on_delivery", 404, False),
        ("on_final", 200, True),
        ("on_final", 404, True),
    ],
)
def test_an_outcome_erases_where_the_endpoint_asks_for_it(erase: str, status: int, erased: bool) -> None:
    history = shop("m", erase=erase)
    entries = history.entries(Record("m", status, 3), 5)
    assert _types([entry.body for entry in entries]) == [AttemptRecorded] + [PayloadErased] * erased
    assert {(entry.ts, entry.endpoint_id, entry.delivery_id) for entry in entries} == {(5, "shop", "m")}
    assert history.delivery("m").erased is erased


@pytest.mark.parametrize("erase", ["on_delivery", "on_final"])
def test_a_retry_never_erases(erase: str) -> None:
    history = shop("m", erase=erase)
    assert _types(history.bodies(Record("m", 503, 0))) == [AttemptRecorded]


def test_the_last_failed_attempt_is_final() -> None:
    history = shop("m", erase="on_final")
    for _ in range(5):
        history.attempt("m", 500)
    assert _types(history.bodies(Record("m", 500, 0))) == [AttemptRecorded, PayloadErased]


def test_a_changed_setting_applies_to_what_is_pending() -> None:
    history = shop("m", "n")
    history.attempt("m", 200)
    history.entries(Update(endpoint_id="shop", erase="on_delivery"))
    assert _types(history.bodies(Record("n", 200, 0))) == [AttemptRecorded, PayloadErased]
    assert not history.delivery("m").erased
