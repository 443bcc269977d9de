"""The model is the yardstick of the property tests, so it is held against the worked examples itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.examples import WORKED_EXAMPLES
from tests.model import Model
from tests.notation import DL, D, E, P, Q, R, S, exact, state
from tests.strategies import histories


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_the_model_answers_the_worked_examples(example: str) -> None:
    operations, results = WORKED_EXAMPLES[example]
    assert exact(Model().run(operations)) == exact(results)


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_the_model_keeps_its_state_between_calls(example: str) -> None:
    operations, results = WORKED_EXAMPLES[example]
    model = Model()
    assert [model.run([operation])[0] for operation in operations] == results


def test_a_position_is_counted_for_every_entry_and_for_the_one_that_opens_the_log() -> None:
    model = Model()
    model.run([P(0), S(0, "m"), D(0, "a")])
    assert model.position == 0
    model.run([R("a"), Q(0, "a", "m", [404]), Q(0, "a", "n", [503])])
    assert model.position == 4
    model.run([P(0), P(1), P(30)])
    assert model.position == 7, "three attempts; the process at 1 found nothing due"
    model.run([D(40, "a"), E(50, "a", True)])
    assert model.position == 10, "the pause, the revival, the end of the pause"


def test_time_moves_only_with_entries() -> None:
    model = Model()
    assert model.run([R("a"), P(100), S(100, "m"), D(100, "z"), Q(5, "a", "m", [200]), P(4)])[-2:] == [
        "queued",
        "error: time went backwards",
    ]


def test_every_enqueued_event_is_counted_in_one_state() -> None:
    model = Model()
    model.run([R("a"), R("b"), R("c"), *(Q(0, "a", f"a{number}", [200]) for number in range(3))])
    model.run([Q(0, "b", "b", [404]), Q(0, "c", "c1", [503]), Q(0, "c", "c2", [200]), P(0), D(1, "c")])
    assert model.counts() == {"enqueued": 6, "pending": 0, "held": 2, "delivered": 3, "dead": 1}
    model.run([D(2, "b"), E(3, "b", True), E(3, "c", False)])
    assert model.counts() == {"enqueued": 6, "pending": 3, "held": 0, "delivered": 3, "dead": 0}


def test_a_second_death_moves_an_event_to_the_end_of_the_dead_letters() -> None:
    model = Model()
    model.run([R("a"), R("b"), Q(0, "a", "m", [404]), Q(0, "b", "n", [404]), P(0)])
    assert model.run([DL(0), D(0, "a"), E(1, "a", True), DL(1), P(1), DL(1)]) == [
        ["m", "n"],
        True,
        True,
        ["n"],
        ["m #1 404 dead"],
        ["n", "m"],
    ]
    assert model.run([S(1, "m")]) == [state("dead", 1)]


@settings(deadline=None, max_examples=50)
@given(histories())
def test_conservation_holds_after_every_operation(operations: list[Any]) -> None:
    model = Model()
    for operation in operations:
        model.run([operation])
        counts = model.counts()
        assert counts.pop("enqueued") == sum(counts.values())
