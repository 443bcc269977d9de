"""Enqueueing: which lane, which order, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from dispatcher.core.entries import Enqueued
from dispatcher.core.operations import Cancel, Disable, Enqueue, Erase, Register, Update
from dispatcher.core.policy import PROMISED
from tests.unit.core.history import shop


def test_an_event_is_due_at_its_own_ts() -> None:
    history = shop()
    (entry,) = history.entries(Enqueue("shop", "m", seed=7, digest="d", actor="someone"), 40)
    assert entry.body == Enqueued(seed=7, digest="d", actor="someone")
    assert (entry.ts, entry.endpoint_id, entry.delivery_id) == (40, "shop", "m")
    assert history.status("m") == ("pending", 0, 40)
    assert (history.delivery("m").seed, history.delivery("m").digest) == (7, "d")


def test_without_a_key_an_event_keeps_order_with_the_whole_endpoint() -> None:
    history = shop("m", "n")
    assert history.delivery("m").lane is history.delivery("n").lane
    assert history.delivery("m").lane.key == ""
    assert history.delivery("m").order < history.delivery("n").order


def test_events_with_one_order_key_share_a_lane_and_others_do_not() -> None:
    history = shop("plain")
    for delivery_id, key in [("m", "k"), ("n", "k"), ("o", "l")]:
        (body,) = history.bodies(Enqueue("shop", delivery_id, order_key=key))
        assert isinstance(body, Enqueued)
        assert body.lane == f"key:{key}"
    lanes = [history.delivery(delivery_id).lane for delivery_id in ("m", "n", "o", "plain")]
    assert lanes[0] is lanes[1]
    assert len({id(lane) for lane in lanes}) == 3


def test_an_order_key_never_meets_the_lane_of_the_endpoint_or_of_a_single_event() -> None:
    history = shop("plain")
    history.entries(Enqueue("shop", "empty", order_key=""))
    history.entries(Enqueue("shop", "sly", order_key="own:m"))
    history.entries(Update(endpoint_id="shop", order="none"))
    history.entries(Enqueue("shop", "m"))
    lanes = {history.delivery(delivery_id).lane.key for delivery_id in ("plain", "empty", "sly", "m")}
    assert lanes == {"", "key:", "key:own:m", "own:m"}


def test_lanes_of_two_endpoints_are_two_lanes() -> None:
    history = shop()
    history.entries(Register(endpoint_id="mail", url="u", policy=PROMISED))
    history.entries(Enqueue("shop", "m", order_key="k"))
    history.entries(Enqueue("mail", "n", order_key="k"))
    assert history.delivery("m").lane is not history.delivery("n").lane


def test_without_order_each_event_has_a_lane_of_its_own() -> None:
    history = shop("m", "n", order="none")
    assert [history.delivery(i).lane.key for i in ("m", "n")] == ["own:m", "own:n"]


def test_without_order_an_order_key_is_refused() -> None:
    history = shop(order="none")
    assert history.refusal(Enqueue("shop", "m", order_key="k")) == "order_key_refused"
    assert history.refusal(Enqueue("shop", "m", order_key="")) == "order_key_refused"


def test_a_changed_order_affects_later_events_only() -> None:
    history = shop("early")
    history.entries(Update(endpoint_id="shop", order="none"))
    history.entries(Enqueue("shop", "middle"))
    history.entries(Update(endpoint_id="shop", order="strict"))
    history.entries(Enqueue("shop", "late"))
    assert [history.delivery(i).lane.key for i in ("early", "middle", "late")] == ["", "own:middle", ""]
    assert history.delivery("early").lane is history.delivery("late").lane


def test_enqueueing_for_an_unknown_endpoint_is_refused() -> None:
    assert shop("m").refusal(Enqueue("mail", "m")) == "unknown_endpoint"


def test_a_known_event_is_refused_whatever_became_of_it() -> None:
    history = shop("waiting", "dead", "sent", "cancelled", "erased")
    history.exhaust("dead")
    history.attempt("sent", 200)
    history.entries(Cancel("cancelled"))
    history.entries(Erase("erased"))
    for delivery_id in ("waiting", "dead", "sent", "cancelled", "erased"):
        assert history.refusal(Enqueue("shop", delivery_id)) == "duplicate_event"


def test_an_event_id_of_another_endpoint_is_refused_as_well() -> None:
    history = shop("m")
    history.entries(Register(endpoint_id="mail", url="u", policy=PROMISED))
    assert history.refusal(Enqueue("mail", "m")) == "duplicate_event"


def test_a_disabled_endpoint_accepts_events_and_holds_them() -> None:
    history = shop()
    history.entries(Disable("shop"))
    history.entries(Enqueue("shop", "m"), 4)
    assert history.status("m") == ("held", 0, None)


def test_a_simulated_event_keeps_its_script() -> None:
    history = shop(kind="simulated")
    (body,) = history.bodies(Enqueue("shop", "m", [503, 0, 200]))
    assert body == Enqueued(outcomes=(503, 0, 200))
    assert history.delivery("m").outcomes == (503, 0, 200)


@pytest.mark.parametrize(
    "outcomes", [None, [], (200,), "200", [True], [99], [600], [-1], [200.0], ["200"], [None], {}, [200, 1]]
)
def test_a_simulated_event_without_a_usable_script_is_refused(outcomes: Any) -> None:
    assert shop(kind="simulated").refusal(Enqueue("shop", "m", outcomes)) == "invalid_outcomes"


@pytest.mark.parametrize("outcomes", [[0], [100], [599], [200] * 1000])
def test_a_script_may_name_no_answer_and_every_status(outcomes: list[int]) -> None:
    history = shop(kind="simulated")
    history.entries(Enqueue("shop", "m", outcomes))
    assert history.delivery("m").outcomes == tuple(outcomes)


def test_refusals_come_in_the_order_endpoint_event_script() -> None:
    history = shop("m", kind="simulated")
    assert history.refusal(Enqueue("mail", "m", [])) == "unknown_endpoint"
    assert history.refusal(Enqueue("shop", "m", [])) == "duplicate_event"
    assert history.refusal(Enqueue("shop", "n", [])) == "invalid_outcomes"


def test_a_live_event_has_no_script_whatever_it_was_given() -> None:
    history = shop()
    (body,) = history.bodies(Enqueue("shop", "m", [200]))
    assert body == Enqueued()
