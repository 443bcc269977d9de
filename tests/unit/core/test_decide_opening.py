"""The first accepted operation opens the log."""

from __future__ import annotations

import pytest

from dispatcher.core.decide import decide
from dispatcher.core.entries import EndpointRegistered, Kind, LogOpened
from dispatcher.core.operations import (
    AnyOperation,
    Cancel,
    Disable,
    Enqueue,
    Erase,
    Record,
    Refusal,
    Register,
)
from dispatcher.core.policy import PROMISED
from dispatcher.core.state import State
from tests.unit.core.history import History, shop

REGISTER = Register(endpoint_id="shop", url="u", policy=PROMISED)


@pytest.mark.parametrize(("kind", "unit"), [("simulated", "s"), ("live", "ms")])
def test_the_first_operation_opens_the_log_at_its_own_ts(kind: Kind, unit: str) -> None:
    opened, registered = History(kind).entries(REGISTER, 17)
    assert isinstance(opened.body, LogOpened)
    assert (opened.body.kind, opened.body.unit) == (kind, unit)
    assert (opened.ts, opened.endpoint_id, opened.delivery_id) == (17, None, None)
    assert isinstance(registered.body, EndpointRegistered)
    assert registered.ts == 17


def test_a_log_is_opened_only_once() -> None:
    history = shop()
    assert [type(body).__name__ for body in history.bodies(Enqueue("shop", "m"))] == ["Enqueued"]


@pytest.mark.parametrize(
    "operation", [Enqueue("shop", "m"), Disable("shop"), Record("m", 200, 0), Cancel("m"), Erase("m")]
)
def test_a_refused_operation_opens_no_log(operation: AnyOperation) -> None:
    state = State("live")
    assert isinstance(decide(state, operation, 0), Refusal)
    assert state.position == 0
