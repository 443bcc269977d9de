"""Generated operations of the core: all of them, over few endpoints, lanes and deliveries."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st
from msgspec import UNSET

from dispatcher.core.entries import Kind
from dispatcher.core.operations import (
    AnyOperation,
    Cancel,
    Disable,
    Enable,
    Enqueue,
    Erase,
    Record,
    Register,
    Release,
    Revive,
    Update,
)
from dispatcher.core.policy import PROMISED, STANDARD, RetryPolicy

TWICE = RetryPolicy(max_attempts=2, waits=(1,), retryable=((0, 0), (500, 599)))
ONCE = RetryPolicy(max_attempts=1, waits=(), retryable=())


class Attempt(NamedTuple):
    """Attempt what is next, with these facts."""

    status: int
    retry_after: int | None


class Process(NamedTuple):
    """Attempt all that is due, with these statuses in turn."""

    statuses: tuple[int, ...]


class Backlog(NamedTuple):
    """Enqueue so many, more than are loaded at once."""

    endpoint_id: str
    order_key: str | None
    size: int


class Bury(NamedTuple):
    """Let so many pending deliveries of an endpoint die, the earliest or the latest first."""

    endpoint_id: str
    size: int
    latest: bool


class Unbury(NamedTuple):
    """Revive dead deliveries of an endpoint by name: every nth of them, in the order of death."""

    endpoint_id: str
    nth: int
    limit: int | None


Action = AnyOperation | Attempt | Process | Backlog | Bury | Unbury
Step = tuple[int, Action]
"""How much later, and what then."""

FRESH = "<fresh>"
ENDPOINTS = st.sampled_from(["a", "b", "c"])
DELIVERIES = st.sampled_from([f"e{n}" for n in range(1, 10)])
NEW_DELIVERIES = st.sampled_from([FRESH, FRESH, FRESH, FRESH, FRESH, "e1", "e2"])
POLICIES = st.sampled_from([TWICE, TWICE, ONCE, PROMISED, STANDARD, STANDARD.scaled(1000)])
STATUSES = st.sampled_from([200, 200, 204, 500, 503, 429, 404, 410, 0])
DELTAS = st.sampled_from([0, 0, 0, 0, 1, 1, 5, 30, 300, 5000])
KEYS = st.sampled_from([None, None, "k", "l"])
ORDERS = st.sampled_from(["strict", "strict", "none"])
ERASING = st.sampled_from(["never", "never", "on_delivery", "on_final"])
ACTORS = st.sampled_from([None, None, "somebody"])
RARELY = st.integers(0, 5).map(lambda n: n == 0)
TYPES = st.sampled_from([None, None, (), ("order.*", "*")])
FORMATS = st.sampled_from([None, "standard", "cloudevents"])
KEEPING = st.sampled_from([None, None, 86_400_000])
EVENT_TYPES = st.sampled_from([None, "order.paid"])
HINTS = st.sampled_from([None, None, 0, 77, 10_000])


def _or_unset(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(UNSET), st.just(UNSET), values)


REGISTER = st.builds(
    Register,
    endpoint_id=ENDPOINTS,
    url=st.just("https://a.example"),
    policy=POLICIES,
    url_digest=st.sampled_from([None, "d"]),
    order=ORDERS,
    concurrency=st.integers(1, 8),
    erase=ERASING,
    disable_when_gone=st.booleans(),
    actor=ACTORS,
    types=TYPES,
    body_format=FORMATS,
    keep_payloads=KEEPING,
)
UPDATE = st.builds(
    Update,
    endpoint_id=ENDPOINTS,
    url=_or_unset(st.just("https://b.example")),
    policy=_or_unset(POLICIES),
    url_digest=_or_unset(st.just("e")),
    order=_or_unset(ORDERS),
    concurrency=_or_unset(st.integers(1, 8)),
    erase=_or_unset(ERASING),
    disable_when_gone=_or_unset(st.booleans()),
    actor=ACTORS,
    types=_or_unset(TYPES),
    body_format=_or_unset(FORMATS),
    keep_payloads=_or_unset(KEEPING),
)
RECORD = st.builds(
    Record,
    DELIVERIES,
    STATUSES,
    st.integers(-5, 5),
    st.integers(0, 9),
    st.sampled_from([None, None, None, "success", "retryable", "permanent"]),
    st.sampled_from([None, "lost"]),
    HINTS,
    ACTORS,
)
REVIVE = st.builds(
    Revive,
    ENDPOINTS,
    st.one_of(st.none(), st.lists(DELIVERIES, max_size=3).map(tuple)),
    st.sampled_from([None, None, 0, 1, 2, 3]),
    ACTORS,
    st.sampled_from([0, 0, 7, 15]),
    st.sampled_from([0, 0, 9, 20]),
    st.sampled_from([None, None, 12, 30]),
)
SCRIPTS = st.one_of(st.lists(STATUSES, min_size=1, max_size=3), st.sampled_from([[], None, [99]]))


def _enqueues(kind: Kind) -> st.SearchStrategy[Enqueue]:
    scripts = SCRIPTS if kind == "simulated" else st.none()
    seeds = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
    digests = st.sampled_from([None, "d"])
    facts = scripts, KEYS, seeds, digests, ACTORS, EVENT_TYPES
    return st.builds(Enqueue, ENDPOINTS, NEW_DELIVERIES, *facts)


def _actions(kind: Kind) -> st.SearchStrategy[Action]:
    enqueue = _enqueues(kind)
    attempt = st.builds(Attempt, STATUSES, HINTS)
    process = st.builds(Process, st.lists(STATUSES, min_size=1, max_size=3).map(tuple))
    return st.one_of(
        enqueue,
        enqueue,
        attempt,
        attempt,
        process,
        st.builds(Backlog, ENDPOINTS, KEYS, st.integers(9, 30)),
        st.builds(Bury, ENDPOINTS, st.integers(1, 12), st.booleans()),
        st.builds(Unbury, ENDPOINTS, st.integers(1, 3), st.sampled_from([None, None, 2])),
        RECORD,
        REVIVE,
        UPDATE,
        REGISTER,
        st.builds(Release, DELIVERIES, st.sampled_from([None, 3]), ACTORS),
        st.builds(Disable, ENDPOINTS, st.sampled_from(["requested", "broken"]), ACTORS),
        st.builds(Enable, ENDPOINTS, st.booleans(), ACTORS),
        st.builds(Enable, ENDPOINTS, st.booleans(), ACTORS),
        st.builds(Cancel, DELIVERIES, RARELY, ACTORS),
        st.builds(Erase, DELIVERIES, RARELY, ACTORS),
    )


def transactions(kind: Kind) -> st.SearchStrategy[list[list[Step]]]:
    """Steps, cut into transactions; most endpoints are registered first."""
    steps = st.lists(st.tuples(DELTAS, _actions(kind)), min_size=3, max_size=12)
    opening = st.lists(st.tuples(st.just(0), REGISTER), min_size=4, max_size=5)
    return st.builds(lambda first, rest: [first, *rest], opening, st.lists(steps, min_size=2, max_size=6))
