"""Disabling and enabling endpoints."""

from __future__ import annotations

from dispatcher.core.entries import EndpointDisabled, EndpointEnabled, Revived
from dispatcher.core.operations import Cancel, Disable, Enable, Enqueue, Erase
from tests.unit.core.history import shop


def test_disabling_holds_what_is_pending_and_says_why() -> None:
    history = shop("m", "sent", "dead")
    history.attempt("m", 500)
    history.attempt("sent", 200)
    history.exhaust("dead")
    (entry,) = history.entries(Disable("shop", "broken", "someone"), 5)
    assert entry.body == EndpointDisabled(reason="broken", actor="someone")
    assert (entry.ts, entry.endpoint_id, entry.delivery_id) == (5, "shop", None)
    assert history.endpoint().disabled == "broken"
    assert history.status("m") == ("held", 1, None)
    assert history.status("sent") == ("delivered", 1, None)
    assert history.status("dead") == ("dead", 1, None)


def test_without_a_reason_it_was_requested() -> None:
    history = shop()
    assert history.bodies(Disable("shop")) == [EndpointDisabled(reason="requested")]


def test_disabling_twice_is_refused() -> None:
    history = shop()
    history.entries(Disable("shop"))
    assert history.refusal(Disable("shop")) == "already_disabled"
    history.entries(Enable("shop"))
    assert history.bodies(Disable("shop"))


def test_an_empty_reason_disables_as_well() -> None:
    history = shop("m")
    history.entries(Disable("shop", ""))
    assert history.status("m") == ("held", 0, None)
    assert history.refusal(Disable("shop")) == "already_disabled"
    assert history.bodies(Enable("shop"))


def test_unknown_endpoints_are_refused() -> None:
    history = shop()
    assert history.refusal(Disable("mail")) == "unknown_endpoint"
    assert history.refusal(Enable("mail")) == "unknown_endpoint"


def test_enabling_what_is_enabled_is_refused() -> None:
    history = shop()
    assert history.refusal(Enable("shop", replay_dead=True)) == "not_disabled"


def test_enabling_makes_everything_pending_due_and_keeps_the_attempts() -> None:
    history = shop("late", "fresh", "held")
    history.attempt("late", 500)
    history.entries(Disable("shop"), 5)
    history.entries(Enqueue("shop", "during"), 7)
    history.attempt("held", 503, 8)
    (entry,) = history.entries(Enable("shop", actor="someone"), 10)
    assert entry.body == EndpointEnabled(actor="someone")
    assert (entry.ts, entry.endpoint_id, entry.delivery_id) == (10, "shop", None)
    assert history.status("late") == ("pending", 1, 10)
    assert history.status("fresh") == ("pending", 0, 10)
    assert history.status("held") == ("pending", 1, 10)
    assert history.status("during") == ("pending", 0, 10)


def test_what_fails_after_the_pause_waits_from_there() -> None:
    history = shop("m")
    history.entries(Disable("shop"), 5)
    history.entries(Enable("shop"), 10)
    assert history.attempt("m", 500, 12).retry_at == 42
    assert history.status("m") == ("pending", 1, 42)
    history.entries(Disable("shop"), 20)
    history.entries(Enable("shop"), 21)
    assert history.status("m") == ("pending", 1, 21)


def test_enabling_without_replay_leaves_the_dead_dead() -> None:
    history = shop("m")
    history.exhaust("m")
    history.entries(Disable("shop"))
    assert history.bodies(Enable("shop")) == [EndpointEnabled()]
    assert history.status("m") == ("dead", 1, None)


def test_enabling_with_replay_revives_the_dead_in_enqueue_order_and_enables_last() -> None:
    history = shop("m", "n", "sent", "o")
    history.exhaust("o", "m", "n")
    history.attempt("sent", 200)
    history.entries(Disable("shop"), 5)
    entries = history.entries(Enable("shop", True, "someone"), 9)
    assert [entry.delivery_id for entry in entries] == ["m", "n", "o", None]
    assert [entry.body for entry in entries[:3]] == [Revived(actor="someone")] * 3
    assert entries[3].body == EndpointEnabled(replay_dead=True, actor="someone")
    assert {(entry.ts, entry.endpoint_id) for entry in entries} == {(9, "shop")}
    assert [history.status(i) for i in ("m", "n", "o")] == [("pending", 0, 9)] * 3
    assert history.status("sent") == ("delivered", 1, None)
    assert history.dead() == []


def test_enabling_with_replay_and_nothing_dead_only_enables() -> None:
    history = shop("m")
    history.entries(Disable("shop"))
    assert history.bodies(Enable("shop", replay_dead=True)) == [EndpointEnabled(replay_dead=True)]


def test_enabling_with_replay_leaves_the_erased_and_the_cancelled_alone() -> None:
    history = shop("kept", "erased", "cancelled")
    history.exhaust("kept", "erased")
    history.entries(Erase("erased"))
    history.entries(Cancel("cancelled"))
    history.entries(Disable("shop"))
    entries = history.entries(Enable("shop", replay_dead=True))
    assert [entry.delivery_id for entry in entries] == ["kept", None]
    assert history.dead() == ["erased"]
    assert history.status("cancelled") == ("cancelled", 0, None)


def test_endpoints_are_paused_one_by_one() -> None:
    history = shop("m")
    other = shop("m")
    history.entries(Disable("shop"))
    assert other.status("m") == ("pending", 0, 0)
