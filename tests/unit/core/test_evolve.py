"""What each entry changes, whoever decided it: the fold of every type."""

from __future__ import annotations

import pytest

from dispatcher.core.entities import Delivery, Endpoint
from dispatcher.core.entries import (
    BODIES,
    AttemptRecorded,
    AttemptReleased,
    Body,
    Cancelled,
    EndpointDisabled,
    EndpointEnabled,
    EndpointRegistered,
    EndpointUpdated,
    Enqueued,
    Entry,
    LogOpened,
    PayloadErased,
    Revived,
)
from dispatcher.core.evolve import evolve
from dispatcher.core.policy import STANDARD
from dispatcher.core.state import State
from tests.unit.core.fold import DEAD, RETRY, SENT, Fold
from tests.unit.core.history import snapshot


def test_every_entry_takes_a_position_and_sets_the_time() -> None:
    fold = Fold("m")
    assert (fold.state.position, fold.state.ts) == (3, 2)
    fold.tell(AttemptReleased(), "m", ts=50)
    assert (fold.state.position, fold.state.ts) == (4, 50)


@pytest.mark.parametrize(("kind", "unit"), [("simulated", "s"), ("live", "ms")])
def test_opening_decides_the_kind_and_changes_no_entity(kind: str, unit: str) -> None:
    state = State("live")
    body = LogOpened(kind=kind, unit=unit)  # type: ignore[arg-type]
    assert evolve(state, Entry(3, None, None, body)) is None
    assert (state.kind, state.position, state.ts) == (kind, 1, 3)


def test_a_registration_makes_an_endpoint_with_its_position_and_settings() -> None:
    fold = Fold()
    body = EndpointRegistered(
        url="v",
        policy=STANDARD,
        url_digest="d",
        order="none",
        concurrency=2,
        erase="on_final",
        disable_when_gone=True,
        actor="a",
    )
    changed = fold.tell(body, endpoint="mail")
    assert isinstance(changed, Endpoint)
    assert changed is fold.state.endpoints["mail"]
    assert (changed.id, changed.registered, changed.url, changed.policy) == ("mail", 3, "v", STANDARD)
    assert (changed.url_digest, changed.order, changed.concurrency) == ("d", "none", 2)
    assert (changed.erase, changed.disable_when_gone, changed.disabled) == ("on_final", True, None)
    assert (changed.resumptions, changed.resumed_at) == (0, 0)


def test_an_update_sets_what_is_present_even_to_what_counts_as_nothing() -> None:
    fold = Fold()
    full = EndpointUpdated(
        url="v",
        policy=STANDARD,
        url_digest="d",
        order="none",
        concurrency=2,
        erase="on_final",
        disable_when_gone=True,
    )
    assert fold.tell(full) is fold.shop
    assert (fold.shop.url, fold.shop.policy, fold.shop.url_digest) == ("v", STANDARD, "d")
    assert (fold.shop.order, fold.shop.concurrency, fold.shop.erase) == ("none", 2, "on_final")
    assert (fold.shop.disable_when_gone, fold.shop.disabled) == (True, None)
    fold.tell(EndpointUpdated(url="", url_digest="", concurrency=0, disable_when_gone=False))
    assert (fold.shop.url, fold.shop.url_digest, fold.shop.concurrency) == ("", "", 0)
    assert (fold.shop.disable_when_gone, fold.shop.disabled) == (False, None)
    before = snapshot(fold.state)
    fold.tell(EndpointUpdated(actor="a"), ts=fold.state.ts)
    fold.state.position -= 1
    assert snapshot(fold.state) == before


def test_an_enqueued_event_is_pending_due_at_the_entrys_ts_in_its_lane() -> None:
    fold = Fold()
    body = Enqueued(lane="key:k", outcomes=(503, 200), seed=9, digest="d", actor="a")
    changed = fold.tell(body, "m", ts=40)
    assert isinstance(changed, Delivery)
    assert changed is fold.state.deliveries["m"]
    assert (changed.id, changed.order, changed.due_at, changed.state) == ("m", 3, 40, "pending")
    assert (changed.outcomes, changed.seed, changed.digest) == ((503, 200), 9, "d")
    assert (changed.attempts, changed.death, changed.last_status, changed.erased) == (0, None, None, False)
    assert changed.lane is fold.shop.lanes["key:k"]
    assert changed.lane.endpoint is fold.shop
    assert fold.state.head(changed.lane) is changed
    assert fold.counts() == (1, 0, 0, 0)


def test_an_event_enqueued_after_a_resumption_belongs_to_it() -> None:
    fold = Fold("early")
    fold.tell(EndpointDisabled(reason="r"))
    fold.tell(EndpointEnabled(), ts=50)
    fold.tell(Enqueued(), "late", ts=60)
    assert fold.state.deliveries["early"].resumption == 0
    assert fold.state.deliveries["late"].resumption == 1


def test_a_retry_sets_the_due_time_and_keeps_the_facts() -> None:
    fold = Fold("m")
    changed = fold.tell(RETRY, "m", ts=44)
    assert isinstance(changed, Delivery)
    assert (changed.state, changed.attempts, changed.due_at) == ("pending", 1, 77)
    assert (changed.last_status, changed.last_error, changed.resumption) == (503, "slow", 0)
    assert fold.counts() == (1, 0, 0, 0)


def test_a_retry_after_a_resumption_belongs_to_it() -> None:
    fold = Fold("m")
    fold.tell(EndpointDisabled(reason="r"))
    fold.tell(EndpointEnabled())
    fold.tell(RETRY, "m")
    assert fold.state.deliveries["m"].resumption == 1


def test_the_entry_says_how_many_attempts_there_were_and_what_became_of_the_last() -> None:
    fold = Fold("m", "n")
    fold.tell(RETRY, "m")
    sent = fold.tell(SENT, "m")
    assert isinstance(sent, Delivery)
    assert (sent.state, sent.attempts, sent.last_status, sent.last_error) == ("delivered", 2, 204, None)
    assert sent.death is None
    dead = fold.tell(DEAD, "n")
    assert isinstance(dead, Delivery)
    assert (dead.state, dead.attempts, dead.last_status, dead.death) == ("dead", 3, 404, 7)
    assert fold.counts() == (0, 1, 1, 0)
    assert list(fold.shop.dead_ids) == list(fold.state.dead_ids) == ["n"]


def test_what_is_over_leaves_its_place_to_the_next() -> None:
    fold = Fold("m", "n", "o")
    lane = fold.shop.lanes[""]
    fold.tell(SENT, "m")
    assert fold.state.head(lane) is fold.state.deliveries["n"]
    fold.tell(Cancelled(), "o")
    fold.tell(DEAD, "n")
    assert fold.state.head(lane) is None


def test_a_release_reports_the_delivery_and_changes_nothing_of_it() -> None:
    fold = Fold("m")
    fold.tell(RETRY, "m")
    before = snapshot(fold.state)
    assert (
        fold.tell(AttemptReleased(worker="w", started_at=3), "m", fold.state.ts) is fold.state.deliveries["m"]
    )
    fold.state.position -= 1
    assert snapshot(fold.state) == before


def test_disabling_and_enabling_count_resumptions_and_touch_no_delivery() -> None:
    fold = Fold("m")
    fold.tell(RETRY, "m")
    assert fold.tell(EndpointDisabled(reason="broken", actor="a")) is fold.shop
    assert (fold.shop.disabled, fold.shop.resumptions, fold.shop.resumed_at) == ("broken", 0, 0)
    assert fold.tell(EndpointEnabled(replay_dead=True, actor="a"), ts=90) is fold.shop
    assert (fold.shop.disabled, fold.shop.resumptions, fold.shop.resumed_at) == (None, 1, 90)
    assert (fold.state.deliveries["m"].due_at, fold.state.deliveries["m"].resumption) == (77, 0)


def test_a_revival_gives_back_place_attempts_and_due_time() -> None:
    fold = Fold("m", "n")
    fold.tell(DEAD, "m")
    fold.tell(DEAD, "n")
    changed = fold.tell(Revived(actor="a"), "m", ts=50)
    assert isinstance(changed, Delivery)
    assert (changed.state, changed.attempts, changed.due_at, changed.death) == ("pending", 0, 50, None)
    assert (changed.order, changed.resumption, changed.last_status) == (3, 0, 404)
    assert fold.state.head(changed.lane) is changed
    assert fold.counts() == (1, 0, 1, 0)
    assert list(fold.shop.dead_ids) == list(fold.state.dead_ids) == ["n"]


def test_a_revival_after_a_resumption_belongs_to_it() -> None:
    fold = Fold("m")
    fold.tell(DEAD, "m")
    fold.tell(EndpointDisabled(reason="r"))
    fold.tell(EndpointEnabled())
    fold.tell(Revived(), "m")
    assert fold.state.deliveries["m"].resumption == 1


def test_a_second_death_stands_behind_the_first_of_another() -> None:
    fold = Fold("m", "n")
    for body, delivery in [(DEAD, "m"), (DEAD, "n"), (Revived(), "m"), (DEAD, "m")]:
        fold.tell(body, delivery)
    assert [delivery.id for delivery in fold.state.dead(fold.shop)] == ["n", "m"]
    assert [delivery.id for delivery in fold.state.all_dead()] == ["n", "m"]
    assert fold.state.deliveries["m"].death == 8


def test_a_cancelled_delivery_is_neither_pending_nor_dead() -> None:
    fold = Fold("m", "n")
    changed = fold.tell(Cancelled(actor="a"), "m")
    assert isinstance(changed, Delivery)
    assert (changed.state, changed.death) == ("cancelled", None)
    assert fold.counts() == (1, 0, 0, 1)
    assert fold.state.dead(fold.shop) == []


@pytest.mark.parametrize("body", [SENT, DEAD, Cancelled()])
def test_an_erasure_marks_the_delivery_and_leaves_its_state(body: Body) -> None:
    fold = Fold("m")
    fold.tell(body, "m")
    counts = fold.counts()
    changed = fold.tell(PayloadErased(actor="a"), "m")
    assert isinstance(changed, Delivery)
    assert changed.erased
    assert changed.state != "pending"
    assert fold.counts() == counts


def test_there_is_a_fold_for_every_type_of_entry() -> None:
    told = {
        LogOpened,
        EndpointRegistered,
        EndpointUpdated,
        Enqueued,
        AttemptRecorded,
        AttemptReleased,
        EndpointDisabled,
        EndpointEnabled,
        Revived,
        Cancelled,
        PayloadErased,
    }
    assert told == set(BODIES), "a new type needs its tests here"
