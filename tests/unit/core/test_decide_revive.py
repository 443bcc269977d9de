"""Bringing dead deliveries back."""

from __future__ import annotations

import pytest

from dispatcher.core.entries import Revived
from dispatcher.core.operations import Cancel, Disable, Enable, Enqueue, Erase, Register, Revive
from dispatcher.core.policy import PROMISED
from tests.unit.core.history import History, shop


@pytest.fixture
def history() -> History:
    """m, n, o, p died in the order o, m, p, n; q waits behind them."""
    history = shop("m", "n", "o", "p", "q")
    history.exhaust("o", "m", "p", "n")
    return history


def _revived(history: History, revive: Revive, ts: int = 10) -> list[str | None]:
    entries = history.entries(revive, ts)
    assert all(isinstance(entry.body, Revived) for entry in entries)
    assert all((entry.ts, entry.endpoint_id) == (ts, "shop") for entry in entries)
    return [entry.delivery_id for entry in entries]


def test_dead_letters_stand_in_the_order_of_their_death(history: History) -> None:
    assert history.dead() == ["o", "m", "p", "n"]
    assert [delivery.id for delivery in history.state.all_dead()] == ["o", "m", "p", "n"]


def test_all_dead_deliveries_of_an_endpoint_come_back_in_enqueue_order(history: History) -> None:
    assert _revived(history, Revive("shop", actor="someone")) == ["m", "n", "o", "p"]
    assert history.dead() == []


def test_a_revived_delivery_has_its_attempts_and_its_place_back(history: History) -> None:
    (entry,) = history.entries(Revive("shop", ("n",), actor="someone"), 10)
    assert entry.body == Revived(actor="someone")
    assert history.status("n") == ("pending", 0, 10)
    assert history.state.head(history.delivery("q").lane) is history.delivery("n")
    assert history.dead() == ["o", "m", "p"]


def test_a_limit_takes_the_earliest_enqueued(history: History) -> None:
    assert _revived(history, Revive("shop", limit=3)) == ["m", "n", "o"]
    assert history.dead() == ["p"]
    assert _revived(history, Revive("shop", limit=3)) == ["p"]
    assert _revived(history, Revive("shop", limit=3)) == []


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(history: History, limit: int) -> None:
    assert history.refusal(Revive("shop", limit=limit)) == "invalid_limit"
    assert history.refusal(Revive("shop", ("m",), limit=limit)) == "invalid_limit"


def test_a_revival_can_go_on_after_the_last_one_that_was_revived(history: History) -> None:
    assert _revived(history, Revive("shop", limit=2)) == ["m", "n"]
    history.exhaust("m", ts=10)
    assert _revived(history, Revive("shop", limit=2, after=history.delivery("n").order)) == ["o", "p"]
    assert history.dead() == ["m"]


def test_a_span_of_deaths_chooses_by_the_latest_death(history: History) -> None:
    o, m, p, n = (history.delivery(i).death or 0 for i in ("o", "m", "p", "n"))
    assert o < m < p < n
    assert _revived(history, Revive("shop", died_from=m, died_before=n)) == ["m", "p"]
    history.exhaust("m", ts=10)
    assert _revived(history, Revive("shop", died_before=n)) == ["o"]
    assert _revived(history, Revive("shop", died_from=n + 1)) == ["m"]


def test_named_deliveries_come_back_in_enqueue_order_and_once_each(history: History) -> None:
    assert _revived(history, Revive("shop", ("p", "m", "p"))) == ["m", "p"]
    assert history.dead() == ["o", "n"]


def test_a_limit_holds_for_named_deliveries_too(history: History) -> None:
    assert _revived(history, Revive("shop", ("p", "n", "m"), limit=2)) == ["m", "n"]


def test_naming_none_revives_none(history: History) -> None:
    assert _revived(history, Revive("shop", ())) == []
    assert len(history.dead()) == 4


def test_reviving_at_an_unknown_endpoint_is_refused(history: History) -> None:
    assert history.refusal(Revive("mail")) == "unknown_endpoint"
    assert history.refusal(Revive("mail", ("m",))) == "unknown_endpoint"


def test_one_unknown_delivery_refuses_all(history: History) -> None:
    assert history.refusal(Revive("shop", ("m", "missing"))) == "unknown_event"


def test_a_delivery_of_another_endpoint_is_as_good_as_unknown(history: History) -> None:
    history.entries(Register(endpoint_id="mail", url="u", policy=PROMISED))
    history.entries(Enqueue("mail", "elsewhere"))
    history.exhaust("elsewhere")
    assert history.refusal(Revive("shop", ("elsewhere",))) == "unknown_event"
    assert _revived(history, Revive("shop")) == ["m", "n", "o", "p"]
    assert history.dead("mail") == ["elsewhere"]


def test_only_the_dead_are_revived(history: History) -> None:
    history.entries(Enqueue("shop", "cancelled"))
    history.entries(Cancel("cancelled"))
    history.entries(Enqueue("shop", "sent"))
    history.attempt("sent", 200)
    for delivery_id in ("q", "cancelled", "sent"):
        assert history.refusal(Revive("shop", ("m", delivery_id))) == "not_dead"


def test_an_erased_delivery_is_never_revived(history: History) -> None:
    history.entries(Erase("n"))
    assert history.refusal(Revive("shop", ("m", "n"))) == "payload_erased"
    assert _revived(history, Revive("shop", limit=2)) == ["m", "o"]
    assert _revived(history, Revive("shop")) == ["p"]
    history.entries(Disable("shop"))
    assert len(history.entries(Enable("shop", replay_dead=True))) == 1
    assert history.dead() == ["n"]
    assert history.status("n") == ("dead", 1, None)


def test_at_a_disabled_endpoint_the_revived_are_held_until_it_is_enabled(history: History) -> None:
    history.entries(Disable("shop"), 5)
    assert _revived(history, Revive("shop", ("o",)), 6) == ["o"]
    assert history.status("o") == ("held", 0, None)
    history.entries(Enable("shop"), 8)
    assert history.status("o") == ("pending", 0, 8)


def test_the_script_starts_again_and_a_second_death_counts_as_the_latest(history: History) -> None:
    _revived(history, Revive("shop", ("o",)))
    history.exhaust("o", ts=11)
    assert history.dead() == ["m", "p", "n", "o"]
    assert history.status("o") == ("dead", 1, None)


def test_a_revival_returns_to_the_count_of_what_is_pending(history: History) -> None:
    endpoint = history.endpoint()
    assert (endpoint.pending, endpoint.dead) == (1, 4)
    _revived(history, Revive("shop", limit=3))
    assert (endpoint.pending, endpoint.dead) == (4, 1)
