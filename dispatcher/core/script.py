"""Simulated deliveries carry the status of each of their attempts."""

from __future__ import annotations

from typing import Any

from dispatcher.core.agenda import Agenda
from dispatcher.core.entities import Delivery
from dispatcher.core.operations import Record


def parse_script(outcomes: object) -> tuple[int, ...] | None:
    """A script from outside, or None unless it is a non-empty list of integers, each 0 or in 100..599."""
    # The type is asked, not the value: a value may lie about its class, its length and its items.
    if not issubclass(type(outcomes), list):
        return None
    statuses: list[Any] = list.copy(outcomes)  # type: ignore[arg-type]
    for n, status in enumerate(statuses):
        kind = type(status)
        if kind is not int:
            if kind is bool or not issubclass(kind, int):
                return None
            status = statuses[n] = int.__int__(status)
        if status != 0 and not 100 <= status <= 599:
            return None
    return tuple(statuses) or None


def scripted_status(delivery: Delivery) -> int:
    """The status of a delivery's next attempt: attempt n gets the nth, the last one repeats."""
    outcomes = delivery.outcomes
    if not outcomes:
        return 0
    return outcomes[min(delivery.attempts, len(outcomes) - 1)]


def scripted_attempt(agenda: Agenda, ts: int) -> Record | None:
    """What a simulation at ts attempts next, and what comes of it; None when nothing more is due."""
    delivery = agenda.next(ts)
    return None if delivery is None else Record(delivery.id, scripted_status(delivery), ts)
