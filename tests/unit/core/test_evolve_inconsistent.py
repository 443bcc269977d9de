"""An entry that cannot follow those before it is refused, never guessed at."""

from __future__ import annotations

import pytest

from dispatcher.core.entries import (
    AttemptRecorded,
    AttemptReleased,
    Body,
    Cancelled,
    EndpointDisabled,
    EndpointEnabled,
    EndpointRegistered,
    EndpointUpdated,
    Enqueued,
    LogOpened,
    PayloadErased,
    Revived,
)
from dispatcher.core.evolve import Inconsistent
from dispatcher.core.policy import PROMISED
from tests.unit.core.fold import DEAD, RETRY, SENT, Fold

OF_A_DELIVERY: list[Body] = [RETRY, SENT, DEAD, AttemptReleased(), Revived(), Cancelled(), PayloadErased()]
OF_AN_ENDPOINT: list[Body] = [EndpointUpdated(), EndpointDisabled(reason="r"), EndpointEnabled()]
REGISTERED = EndpointRegistered(url="u", policy=PROMISED, order="strict", concurrency=8, erase="never")


def _name(body: Body) -> str:
    return type(body).__name__


@pytest.mark.parametrize("body", OF_A_DELIVERY, ids=_name)
@pytest.mark.parametrize("delivery", ["missing", None])
def test_an_entry_about_an_unknown_delivery(body: Body, delivery: str | None) -> None:
    with pytest.raises(Inconsistent, match=_name(body)):
        Fold("m").tell(body, delivery)


@pytest.mark.parametrize("body", OF_AN_ENDPOINT, ids=_name)
@pytest.mark.parametrize("endpoint", ["missing", None])
def test_an_entry_about_an_unknown_endpoint(body: Body, endpoint: str | None) -> None:
    with pytest.raises(Inconsistent):
        Fold("m").tell(body, endpoint=endpoint)


def test_an_unknown_one_is_named() -> None:
    with pytest.raises(Inconsistent, match="Revived speaks of 'missing' of 'shop', which is unknown"):
        Fold("m").tell(Revived(), "missing")


@pytest.mark.parametrize("endpoint", ["missing", None])
def test_an_event_for_an_unknown_endpoint(endpoint: str | None) -> None:
    with pytest.raises(Inconsistent):
        Fold().tell(Enqueued(), "m", endpoint=endpoint)


def test_an_event_without_an_id() -> None:
    with pytest.raises(Inconsistent):
        Fold().tell(Enqueued(), None)


@pytest.mark.parametrize("before", [None, SENT, DEAD, Cancelled()])
def test_an_event_enqueued_again(before: Body | None) -> None:
    fold = Fold("m")
    if before is not None:
        fold.tell(before, "m")
    with pytest.raises(Inconsistent, match="'m' is enqueued already"):
        fold.tell(Enqueued(), "m")


def test_an_endpoint_registered_again() -> None:
    with pytest.raises(Inconsistent, match="'shop' is registered already"):
        Fold().tell(REGISTERED)


def test_an_endpoint_without_an_id() -> None:
    with pytest.raises(Inconsistent):
        Fold().tell(REGISTERED, endpoint=None)


def test_a_log_opened_twice() -> None:
    with pytest.raises(Inconsistent, match="start"):
        Fold().tell(LogOpened(kind="live", unit="ms"), endpoint=None)


@pytest.mark.parametrize("end", [SENT, DEAD, Cancelled()], ids=["delivered", "dead", "cancelled"])
@pytest.mark.parametrize(
    "body", [RETRY, SENT, DEAD, Cancelled()], ids=["retry", "delivered", "dead", "cancelled"]
)
def test_an_attempt_or_a_cancellation_of_what_is_over(end: Body, body: Body) -> None:
    fold = Fold("m")
    fold.tell(end, "m")
    with pytest.raises(Inconsistent, match="'m' is"):
        fold.tell(body, "m")


@pytest.mark.parametrize("before", [None, SENT, Cancelled()], ids=["pending", "delivered", "cancelled"])
def test_a_revival_of_what_is_not_dead(before: Body | None) -> None:
    fold = Fold("m")
    if before is not None:
        fold.tell(before, "m")
    with pytest.raises(Inconsistent, match="without being dead"):
        fold.tell(Revived(), "m")


def test_a_retry_without_its_time() -> None:
    body = AttemptRecorded(attempt=1, status=503, outcome="retryable", decision="retry", started_at=0)
    with pytest.raises(Inconsistent, match="without its time"):
        Fold("m").tell(body, "m")
