"""An attempt cut off by an orderly shutdown does not count."""

from __future__ import annotations

from dispatcher.core.entries import AttemptReleased
from dispatcher.core.operations import Cancel, Disable, Erase, Release
from tests.unit.core.history import shop


def test_a_release_changes_neither_attempts_nor_due_time() -> None:
    history = shop("m")
    history.attempt("m", 500, 0)
    (entry,) = history.entries(Release("m", started_at=30, worker="w"), 35)
    assert entry.body == AttemptReleased(started_at=30, worker="w")
    assert (entry.ts, entry.endpoint_id, entry.delivery_id) == (35, "shop", "m")
    assert history.status("m") == ("pending", 1, 30)
    assert (history.delivery("m").last_status, history.delivery("m").last_error) == (500, None)
    assert history.attempt("m", 500, 40).attempt == 2


def test_a_release_keeps_the_place_in_the_lane() -> None:
    history = shop("m", "n")
    history.entries(Release("m"))
    assert history.state.head(history.delivery("n").lane) is history.delivery("m")


def test_a_delivery_of_a_disabled_endpoint_may_be_released() -> None:
    history = shop("m")
    history.entries(Disable("shop"))
    history.entries(Release("m"))
    assert history.status("m") == ("held", 0, None)


def test_an_unknown_delivery_is_refused() -> None:
    assert shop().refusal(Release("m")) == "unknown_event"


def test_what_is_not_pending_is_refused() -> None:
    history = shop("sent", "dead", "cancelled", "erased")
    history.attempt("sent", 200)
    history.exhaust("dead")
    history.entries(Cancel("cancelled"))
    history.entries(Erase("erased"))
    for delivery_id in ("sent", "dead", "cancelled", "erased"):
        assert history.refusal(Release(delivery_id)) == "not_pending"
