"""410 Gone: dead, and where the endpoint asks for it the end of the endpoint for now."""

from __future__ import annotations

import pytest

from dispatcher.core.entries import AttemptRecorded, EndpointDisabled, PayloadErased
from dispatcher.core.operations import Disable, Enable, Record
from dispatcher.core.policy import PROMISED, STANDARD, RetryPolicy
from tests.unit.core.history import shop

BOTH = pytest.mark.parametrize("policy", [PROMISED, STANDARD], ids=["promised", "standard"])


@BOTH
def test_gone_is_dead_and_disables_an_endpoint_that_asks_for_it(policy: RetryPolicy) -> None:
    history = shop("m", "n", policy=policy, disable_when_gone=True)
    attempted, disabled = history.entries(Record("m", 410, 3), 5)
    assert isinstance(attempted.body, AttemptRecorded)
    assert attempted.body.decision == "dead"
    assert disabled.body == EndpointDisabled(reason="gone")
    assert (disabled.ts, disabled.endpoint_id, disabled.delivery_id) == (5, "shop", None)
    assert history.endpoint().disabled == "gone"
    assert history.status("n") == ("held", 0, None)


@BOTH
def test_gone_only_kills_the_delivery_elsewhere(policy: RetryPolicy) -> None:
    history = shop("m", "n", policy=policy)
    assert len(history.entries(Record("m", 410, 0))) == 1
    assert history.status("m") == ("dead", 1, None)
    assert history.status("n") == ("pending", 0, 0)


@pytest.mark.parametrize("status", [200, 404, 409, 411, 500])
def test_no_other_status_disables(status: int) -> None:
    history = shop("m", disable_when_gone=True)
    assert len(history.entries(Record("m", status, 0))) == 1
    assert history.endpoint().disabled is None


def test_an_endpoint_that_is_disabled_already_keeps_its_reason() -> None:
    history = shop("m", disable_when_gone=True)
    history.entries(Disable("shop", "broken"))
    assert len(history.entries(Record("m", 410, 0))) == 1
    assert history.endpoint().disabled == "broken"


def test_a_status_of_another_protocol_says_nothing_of_the_kind() -> None:
    """Such as a mail server's reply, which comes with what it stands for."""
    history = shop("m", disable_when_gone=True)
    assert len(history.entries(Record("m", 410, 0, outcome="permanent"))) == 1
    assert history.endpoint().disabled is None


def test_the_payload_is_erased_before_the_endpoint_is_disabled() -> None:
    history = shop("m", disable_when_gone=True, erase="on_final")
    bodies = history.bodies(Record("m", 410, 0))
    assert [type(body) for body in bodies] == [AttemptRecorded, PayloadErased, EndpointDisabled]


def test_such_an_endpoint_is_enabled_like_any_other() -> None:
    history = shop("m", disable_when_gone=True)
    history.entries(Record("m", 410, 0))
    history.entries(Enable("shop", replay_dead=True), 7)
    assert history.status("m") == ("pending", 0, 7)
