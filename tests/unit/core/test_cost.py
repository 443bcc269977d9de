"""What one operation costs in a large state: about as much as in a small one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from dispatcher.core.agenda import Agenda
from dispatcher.core.decide import decide
from dispatcher.core.evolve import evolve
from dispatcher.core.operations import (
    AnyOperation,
    Cancel,
    Disable,
    Enable,
    Enqueue,
    Erase,
    Record,
    Refusal,
    Register,
    Release,
    Revive,
    Update,
)
from dispatcher.core.policy import PROMISED
from dispatcher.core.state import State
from dispatcher.core.status import status
from tests.unit.core.steps import Counted, steps

SMALL = 500


class World:
    """A state with an agenda, whose times and positions are counted."""

    def __init__(self) -> None:
        self.state = State("live")
        self.state.position = Counted(0)
        self.agenda = Agenda(self.state)

    def do(self, operation: AnyOperation, ts: int) -> None:
        decided = decide(self.state, operation, Counted(ts))
        assert not isinstance(decided, Refusal), (operation, decided.code)
        for entry in decided:
            changed = evolve(self.state, entry)
            if changed is not None:
                self.agenda.note(changed)

    def register(self, endpoint_id: str, **settings: Any) -> None:
        self.do(Register(endpoint_id=endpoint_id, url="u", policy=PROMISED, **settings), 0)

    def next(self, ts: int) -> str | None:
        found = self.agenda.next(Counted(ts))
        return None if found is None else found.id


def _one_endpoint(size: int, **settings: Any) -> World:
    """Everything waits at one endpoint; a neighbour has one event."""
    world = World()
    world.register("shop", **settings)
    world.register("mail")
    world.do(Enqueue("mail", "post"), 0)
    for number in range(size):
        world.do(Enqueue("shop", f"m{number}"), 0)
    return world


def _many_endpoints(size: int) -> World:
    """Each endpoint has one event; the first two are `shop` and `mail`."""
    world = World()
    for number, name in enumerate(["shop", "mail", *(f"e{n}" for n in range(size))]):
        world.register(name)
        world.do(Enqueue(name, f"m{number}"), 0)
    return world


Act = Callable[[World], object]


def _do(operation: AnyOperation, ts: int = 5) -> Act:
    """An operation, and what is next after it."""

    def act(world: World) -> None:
        world.do(operation, ts)
        world.next(ts)

    return act


def _resume_with_replay(world: World) -> None:
    world.do(Disable("shop"), 6)
    world.do(Enable("shop", replay_dead=True), 7)
    world.next(7)


# In this order, each on the world that the one before left behind.
ACTS: dict[str, Act] = {
    "the next delivery": lambda world: world.next(5),
    "a failed attempt": _do(Record("m0", 503, 5)),
    "the next delivery after it": lambda world: world.next(5),
    "an enqueue": _do(Enqueue("shop", "new")),
    "a status": lambda world: status(world.state.deliveries["m1"]),
    "a release": _do(Release("m0")),
    "a cancellation": _do(Cancel("m0")),
    "an erasure": _do(Erase("m1")),
    "an update": _do(Update(endpoint_id="shop", concurrency=3)),
    "a pause": _do(Disable("shop")),
    "a resumption": _do(Enable("shop"), 6),
    "a resumption with nothing dead": _resume_with_replay,
    "a registration": lambda world: world.register("new"),
}


def _costs(world: World) -> dict[str, int]:
    return {name: steps(lambda act=act: act(world)) for name, act in ACTS.items()}  # type: ignore[misc]


@cache
def _compared(shape: str) -> dict[str, tuple[int, int]]:
    """For each act its steps in a small state and in a large one."""
    worlds: dict[str, tuple[Callable[[], World], Callable[[], World]]] = {
        "pending": (lambda: _one_endpoint(SMALL), lambda: _one_endpoint(200_000)),
        "endpoints": (lambda: _many_endpoints(SMALL), lambda: _many_endpoints(100_000)),
    }
    small, large = (_costs(make()) for make in worlds[shape])
    return {name: (small[name], large[name]) for name in ACTS}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("shape", ["pending", "endpoints"])
def test_one_operation_costs_no_more_among_very_many(shape: str, act: str) -> None:
    """A heap 200 times as large has 8 levels more; what looks at everything costs 200 times as much."""
    small, large = _compared(shape)[act]
    assert large <= 2 * small + 50, f"{small} steps among few, {large} among many"


def test_the_measure_sees_what_looks_at_everything() -> None:
    few, many = [Counted(n) for n in range(100)], [Counted(n) for n in range(10_000)]
    assert steps(lambda: [n for n in many]) > 50 * steps(lambda: [n for n in few])  # noqa: C416
    assert steps(lambda: sorted(many)) > 50 * steps(lambda: sorted(few))
    assert steps(lambda: max(many)) > 50 * steps(lambda: max(few))


@pytest.mark.parametrize("size", [200, 2_000])
@pytest.mark.parametrize("settings", [{}, {"order": "none"}], ids=["one lane", "a lane each"])
def test_working_off_a_backlog_costs_a_few_steps_for_each(size: int, settings: dict[str, Any]) -> None:
    """What an operation leaves stale is dropped when it comes to the front, and so paid for once."""
    world = _one_endpoint(size, **settings)

    def work() -> None:
        while (delivery_id := world.next(5)) is not None:
            world.do(Record(delivery_id, 200, 5), 5)

    assert steps(work) < 400 * (size + 1)


def test_many_cancelled_behind_the_head_are_passed_over_once() -> None:
    size = 2_000
    world = _one_endpoint(size)
    for number in range(1, size):
        world.do(Cancel(f"m{number}"), 5)
    assert steps(lambda: world.do(Cancel("m0"), 5)) > size / 2, "they are passed over here"
    world.do(Enqueue("shop", "new"), 5)
    assert steps(lambda: world.next(5)) < 100
    assert world.next(5) == "post"


def _with_dead(own: int, others: int) -> World:
    world = World()
    world.register("shop")
    world.register("mail")
    for number in range(others):
        world.do(Enqueue("mail", f"o{number}"), 0)
        world.do(Record(f"o{number}", 404, 0), 0)
    for number in range(own):
        world.do(Enqueue("shop", f"m{number}"), 0)
        world.do(Record(f"m{number}", 404, 0), 0)
    world.next(0)  # what the deaths left stale on the agenda is paid for here
    return world


DEAD_ACTS: dict[str, Act] = {
    "its dead letters": lambda world: world.state.dead(world.state.endpoints["shop"]),
    "the revival of a named one": _do(Revive("shop", ("m1",))),
    "the death of it": _do(Record("m1", 404, 5)),
    "the revival of all": _do(Revive("shop")),
    "its dead letters, none now": lambda world: world.state.dead(world.state.endpoints["shop"]),
}


def test_dead_letters_and_revival_cost_as_much_as_the_endpoint_has_dead_whatever_others_have() -> None:
    alone, among = (_with_dead(3, others) for others in (0, 20_000))
    for name, act in DEAD_ACTS.items():
        few = steps(lambda: act(alone))  # noqa: B023
        many = steps(lambda: act(among))  # noqa: B023
        assert many <= 2 * few + 50, f"{name}: {few} steps alone, {many} among others"


def test_naming_what_to_revive_costs_the_same_however_many_are_dead() -> None:
    few, many = (_with_dead(own, 0) for own in (10, 20_000))
    revive = _do(Revive("shop", ("m1", "m7")))
    assert steps(lambda: revive(many)) <= 2 * steps(lambda: revive(few)) + 50


def test_reviving_all_costs_about_as_much_for_each() -> None:
    few, many = (_with_dead(own, 0) for own in (100, 10_000))
    revive = _do(Revive("shop"))
    assert steps(lambda: revive(many)) < 200 * steps(lambda: revive(few))


def test_where_many_were_dead_and_none_is_the_list_costs_nothing() -> None:
    """An emptied dict would still be walked over."""
    world = _with_dead(1000, 0)
    world.do(Revive("shop"), 5)
    assert steps(lambda: world.state.dead(world.state.endpoints["shop"])) < 30
    assert world.state.all_dead() == []
    assert world.state.dead_ids.__sizeof__() == {}.__sizeof__()
