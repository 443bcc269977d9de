"""Whatever the rules decided they decide again: the check finds nothing in any valid history."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatcher import run
from dispatcher.audit.replay import check
from dispatcher.audit.verify import verify
from dispatcher.core.entries import Kind
from dispatcher.core.operations import Enable, Revive
from tests.conformance.test_two_sources import Both
from tests.core_steps import Step, Unbury, transactions
from tests.ramdisk import ramdisk
from tests.strategies import histories

UNHURRIED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


@settings(UNHURRIED, max_examples=60)
@given(histories(), st.integers(0, 40))
def test_a_simulated_history_is_found_to_be_as_the_rules_decide(operations: list[Any], cut: int) -> None:
    with ramdisk() as folder:
        file = folder / "log.db"
        run(operations[:cut], file)
        run(operations[cut:], file)
        assert check(file) is None
        assert verify(file).findings == []


def _apart(steps: list[Step]) -> list[Step]:
    """Revivals at times of their own: those at one time have a test of their own."""
    return [
        (max(later, 1) if isinstance(action, Revive | Unbury | Enable) else later, action)
        for later, action in steps
    ]


@pytest.mark.parametrize("kind", ["live"])
def test_a_live_history_is_found_to_be_as_the_rules_decide(kind: Kind) -> None:
    @settings(UNHURRIED, max_examples=50)
    @given(transactions(kind))
    def property_holds(history: list[list[Step]]) -> None:
        with ramdisk() as folder:
            both = Both(kind, folder / "log.db")
            for steps in history:
                both.transact(_apart(steps))
            assert check(both.file) is None
            assert verify(both.file).findings == []

    property_holds()
