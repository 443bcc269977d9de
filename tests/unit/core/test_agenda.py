"""What is attempted next, over all endpoints, held in memory."""

from __future__ import annotations

from dispatcher.core.agenda import Agenda
from dispatcher.core.decide import decide
from dispatcher.core.evolve import evolve
from dispatcher.core.operations import (
    AnyOperation,
    Cancel,
    Disable,
    Enable,
    Enqueue,
    Record,
    Refusal,
    Register,
    Revive,
)
from dispatcher.core.policy import PROMISED
from dispatcher.core.state import State


class Told:
    """A state and an agenda that is told of every change."""

    def __init__(self, *endpoints: str) -> None:
        self.state = State("live")
        self.agenda = Agenda(self.state)
        for endpoint in endpoints:
            self.do(Register(endpoint_id=endpoint, url="u", policy=PROMISED))

    def do(self, operation: AnyOperation, ts: int = 0) -> None:
        decided = decide(self.state, operation, ts)
        assert not isinstance(decided, Refusal)
        for entry in decided:
            changed = evolve(self.state, entry)
            if changed is not None:
                self.agenda.note(changed)

    def next(self, ts: int) -> str | None:
        delivery = self.agenda.next(ts)
        return None if delivery is None else delivery.id

    def process(self, ts: int, status: int = 200) -> list[str]:
        """Attempt all that is due, in order; what was attempted."""
        attempted = []
        while (delivery_id := self.next(ts)) is not None:
            attempted.append(delivery_id)
            self.do(Record(delivery_id, status, ts), ts)
        return attempted


def test_nothing_is_next_where_nothing_was_enqueued() -> None:
    assert Told("a").next(10**9) is None


def test_nothing_is_next_before_its_time_and_asking_changes_nothing() -> None:
    told = Told("a")
    told.do(Enqueue("a", "m"), 50)
    assert [told.next(ts) for ts in (0, 49, 50, 49, 50, 51)] == [None, None, "m", None, "m", "m"]


def test_the_earliest_due_time_goes_first_over_all_endpoints() -> None:
    told = Told("a", "b", "c")
    for endpoint, delivery, ts in [("b", "n", 10), ("a", "m", 20), ("c", "o", 30)]:
        told.do(Enqueue(endpoint, delivery), ts)
    told.do(Record("n", 503, 30), 30)
    assert told.process(30) == ["m", "o"]
    assert told.process(60) == ["n"]


def test_among_equal_due_times_the_first_enqueued_goes_first_whatever_the_names() -> None:
    told = Told("a", "b", "c")
    for endpoint, delivery in [("c", "z"), ("a", "y"), ("b", "x"), ("a", "w")]:
        told.do(Enqueue(endpoint, delivery))
    assert told.process(0) == ["z", "y", "x", "w"]


def test_a_waiting_event_never_overtakes_though_its_own_time_has_come() -> None:
    told = Told("a")
    told.do(Enqueue("a", "m"))
    told.do(Enqueue("a", "n"))
    told.do(Record("m", 503, 0))
    assert told.next(29) is None
    assert told.process(30) == ["m", "n"]


def test_a_retry_is_never_due_in_the_pass_that_set_it() -> None:
    told = Told("a", "b")
    told.do(Enqueue("a", "m"))
    told.do(Enqueue("b", "n"))
    assert told.process(0, status=503) == ["m", "n"]
    assert told.process(0, status=503) == []


def test_endpoints_do_not_block_each_other() -> None:
    told = Told("a", "b")
    told.do(Enqueue("a", "m"))
    told.do(Record("m", 503, 0))
    told.do(Enqueue("a", "n"))
    told.do(Enqueue("b", "o"))
    assert told.process(1) == ["o"]


def test_lanes_do_not_block_each_other_and_keep_order_within() -> None:
    told = Told("a")
    for delivery, key in [("m", "k"), ("n", "k"), ("o", "l"), ("p", None)]:
        told.do(Enqueue("a", delivery, None, key))
    told.do(Record("m", 503, 0))
    assert told.process(1) == ["o", "p"]
    assert told.process(30) == ["m", "n"]


def test_a_disabled_endpoint_is_passed_over_until_it_is_enabled() -> None:
    told = Told("a", "b")
    told.do(Enqueue("a", "m"))
    told.do(Enqueue("b", "n"))
    told.do(Disable("a"), 1)
    told.do(Enqueue("a", "o"), 2)
    assert told.process(100) == ["n"]
    told.do(Enable("a"), 200)
    assert told.next(199) is None
    assert told.process(200) == ["m", "o"]


def test_a_retry_that_was_far_away_is_due_when_its_endpoint_resumes() -> None:
    told = Told("a")
    told.do(Enqueue("a", "m"))
    told.do(Record("m", 503, 0))
    told.do(Disable("a"), 1)
    told.do(Enable("a"), 2)
    assert told.process(2) == ["m"]


def test_a_retry_recorded_while_its_endpoint_was_disabled_is_due_when_it_resumes() -> None:
    told = Told("a")
    told.do(Enqueue("a", "m"))
    told.do(Disable("a"), 1)
    told.do(Record("m", 503, 2), 2)
    assert told.next(1000) is None
    told.do(Enable("a"), 1001)
    assert told.process(1001) == ["m"]


def test_a_resumed_endpoint_takes_its_turn_by_the_time_of_its_resumption() -> None:
    told = Told("a", "b")
    told.do(Enqueue("a", "m"), 0)
    told.do(Disable("a"), 1)
    told.do(Enqueue("b", "n"), 5)
    told.do(Enable("a"), 6)
    assert told.process(6) == ["n", "m"]


def test_a_revived_delivery_goes_before_those_enqueued_after_it() -> None:
    told = Told("a")
    told.do(Enqueue("a", "m"))
    told.do(Enqueue("a", "n"))
    told.do(Record("m", 404, 0))
    told.do(Record("n", 503, 0))
    assert told.next(0) is None
    told.do(Revive("a"), 5)
    assert told.process(29) == ["m"]
    assert told.process(30) == ["n"]


def test_a_cancelled_head_makes_way() -> None:
    told = Told("a")
    for delivery in ("m", "n"):
        told.do(Enqueue("a", delivery))
    told.do(Record("m", 503, 0))
    told.do(Cancel("m"), 1)
    assert told.process(1) == ["n"]


def test_time_may_be_negative() -> None:
    told = Told("a")
    told.do(Enqueue("a", "m"), -50)
    assert told.next(-51) is None
    assert told.process(-50) == ["m"]


def test_lanes_that_a_resumption_made_due_keep_their_turns_among_themselves() -> None:
    """So that a resumption touches none of them; all of them are due before what is set later."""
    told = Told("a")
    told.do(Enqueue("a", "first", None, "k"), 0)
    told.do(Enqueue("a", "second", None, "l"), 0)
    told.do(Record("first", 503, 1), 1)
    told.do(Disable("a"), 2)
    told.do(Enable("a"), 3)
    told.do(Enqueue("a", "third", None, "m"), 3)
    assert told.process(3) == ["second", "first", "third"]
