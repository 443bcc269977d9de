"""What can be asked for. An operation carries facts that its caller knows; `decide` says what comes of it."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from dispatcher.core.entries import BodyFormat, Erasing, Ordering
from dispatcher.core.policy import OutcomeClass, RetryPolicy


class Operation(Struct, frozen=True, tag_field="op", tag=str.lower, gc=False):
    """One request to change the state; its JSON is the format of traces and captured incidents."""


class Register(Operation, frozen=True, kw_only=True):
    endpoint_id: str
    url: str
    policy: RetryPolicy
    url_digest: str | None = None
    order: Ordering = "strict"
    concurrency: int = 8
    erase: Erasing = "never"
    disable_when_gone: bool = False
    actor: str | None = None
    types: tuple[str, ...] | None = None
    body_format: BodyFormat | None = None
    keep_payloads: int | None = None


class Update(Operation, frozen=True, kw_only=True):
    endpoint_id: str
    url: str | UnsetType = UNSET
    policy: RetryPolicy | UnsetType = UNSET
    url_digest: str | UnsetType = UNSET
    order: Ordering | UnsetType = UNSET
    concurrency: int | UnsetType = UNSET
    erase: Erasing | UnsetType = UNSET
    disable_when_gone: bool | UnsetType = UNSET
    actor: str | None = None
    types: tuple[str, ...] | UnsetType | None = UNSET
    body_format: BodyFormat | UnsetType | None = UNSET
    keep_payloads: int | UnsetType | None = UNSET


class Enqueue(Operation, frozen=True):
    endpoint_id: str
    delivery_id: str
    outcomes: object = None
    """Simulated: the script as it was given, to be judged by `decide`."""
    order_key: str | None = None
    """Live: a keyed digest of the order key."""
    seed: int | None = None
    digest: str | None = None
    actor: str | None = None
    event_type: str | None = None


class Record(Operation, frozen=True):
    """The facts of one finished attempt; times in the log's unit."""

    delivery_id: str
    status: int
    started_at: int
    duration: int = 0
    outcome: OutcomeClass | None = None
    """Given only where the status does not decide it (mail, blocked addresses)."""
    error: str | None = None
    retry_after: int | None = None
    worker: str | None = None


class Release(Operation, frozen=True):
    delivery_id: str
    started_at: int | None = None
    worker: str | None = None


class Disable(Operation, frozen=True):
    endpoint_id: str
    reason: str = "requested"
    actor: str | None = None


class Enable(Operation, frozen=True):
    endpoint_id: str
    replay_dead: bool = False
    actor: str | None = None


class Revive(Operation, frozen=True):
    """Bring dead deliveries back, in enqueue order: these, or those that the rest describes."""

    endpoint_id: str
    delivery_ids: tuple[str, ...] | None = None
    limit: int | None = None
    """At most so many, the first enqueued; at least 1."""
    actor: str | None = None
    after: int = 0
    """Without ids: only what was enqueued after this position."""
    died_from: int = 0
    died_before: int | None = None
    """Without ids: only what died at one of these positions, the latter excluded."""


class Cancel(Operation, frozen=True):
    delivery_id: str
    in_flight: bool = False
    """Whether a worker holds it now: the log does not know."""
    actor: str | None = None


class Erase(Operation, frozen=True):
    delivery_id: str
    in_flight: bool = False
    actor: str | None = None


class Refusal(Struct, frozen=True):
    """Why an operation changed nothing: a stable code."""

    code: str


AnyOperation = Register | Update | Enqueue | Record | Release | Disable | Enable | Revive | Cancel | Erase
