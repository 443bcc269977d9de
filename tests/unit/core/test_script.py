"""The script of a simulated delivery: attempt n gets the nth status, the last one repeats."""

from __future__ import annotations

import pytest

from dispatcher.core.operations import Disable, Enable, Enqueue
from dispatcher.core.script import scripted_status
from tests.unit.core.history import shop


@pytest.mark.parametrize("outcomes", [[503], [503, 0], [500, 429, 408], [500] * 6])
def test_each_attempt_gets_its_own_status_and_the_last_repeats(outcomes: list[int]) -> None:
    history = shop(kind="simulated")
    history.entries(Enqueue("shop", "m", outcomes))
    got = []
    for _ in range(6):
        got.append(scripted_status(history.delivery("m")))
        history.attempt("m", got[-1])
    assert got == [*outcomes, *[outcomes[-1]] * 6][:6]


def test_after_revival_the_script_starts_again() -> None:
    history = shop(kind="simulated")
    history.entries(Enqueue("shop", "m", [503, 404, 200]))
    history.attempt("m", 503)
    history.attempt("m", 404)
    history.entries(Disable("shop"))
    history.entries(Enable("shop", replay_dead=True))
    assert scripted_status(history.delivery("m")) == 503


def test_a_delivery_without_a_script_gets_no_answer() -> None:
    assert scripted_status(shop("m").delivery("m")) == 0
