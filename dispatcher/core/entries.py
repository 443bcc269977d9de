"""What the log can say. An entry's type and version are kept on disk for ever: change neither, add anew."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from dispatcher.core.policy import OutcomeClass, RetryPolicy

Decision = Literal["delivered", "retry", "dead"]
Kind = Literal["simulated", "live"]
Ordering = Literal["strict", "none"]
Erasing = Literal["never", "on_delivery", "on_final"]
BodyFormat = Literal["standard", "cloudevents"]
"""What a published event is wrapped in; None: as it is given."""

MAIL_URL: Final = "mailto:"
"""All that the log holds of a mail endpoint's url."""


class Body(Struct, frozen=True, omit_defaults=True, gc=False):
    """The part of an entry that is its own: the JSON of the log's `data` column.

    Every time and wait counts in the log's unit, which its first entry names. A field at its default is not
    written. Only None, False, 0, "" and UNSET are defaults: msgspec tells them by identity, and equal bodies
    must give equal bytes.
    """

    VERSION: ClassVar[int] = 1


class LogOpened(Body, frozen=True, kw_only=True):
    """The log's first entry: its kind, and the unit of every time in it."""

    kind: Kind
    unit: Literal["s", "ms"]


class EndpointRegistered(Body, frozen=True, kw_only=True):
    """A customer wants events delivered to a url (in a live log: its scheme and host, and a digest)."""

    url: str
    policy: RetryPolicy
    url_digest: str | None = None
    order: Ordering
    concurrency: int
    erase: Erasing
    disable_when_gone: bool = False
    actor: str | None = None
    types: tuple[str, ...] | None = None
    """Patterns of the published events that it takes; None: all."""
    body_format: BodyFormat | None = None
    keep_payloads: int | None = None
    """So long after the final outcome a payload is kept; None: for good."""


class EndpointUpdated(Body, frozen=True, kw_only=True):
    """An endpoint's settings changed; a field that is absent kept its value."""

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


class Enqueued(Body, frozen=True, kw_only=True):
    """An event is to be delivered: from now on it is never lost."""

    lane: str = ""
    """The deliveries it keeps order with; "" is the endpoint itself."""
    outcomes: tuple[int, ...] | None = None
    """Simulated: the status of each attempt; the last one repeats."""
    seed: int | None = None
    """Live: what the jitter of its waits is drawn from."""
    digest: str | None = None
    """Live: a keyed digest of the content, to recognise a repeat."""
    actor: str | None = None
    event_type: str | None = None
    """Of a published event."""


class AttemptRecorded(Body, frozen=True, kw_only=True, rename={"outcome": "class"}):
    """One try: the facts, and beside them what was decided under the policy then in force."""

    attempt: int
    status: int
    outcome: OutcomeClass
    decision: Decision
    retry_at: int | None = None
    error: str | None = None
    retry_after: int | None = None
    worker: str | None = None
    started_at: int
    duration: int = 0
    judged: bool = False
    """The class came with the facts (mail, blocked addresses): the status alone does not give it."""


class AttemptReleased(Body, frozen=True, kw_only=True):
    """A try was cut off by an orderly shutdown; it does not count."""

    worker: str | None = None
    started_at: int | None = None


class EndpointDisabled(Body, frozen=True, kw_only=True):
    """Deliveries to the endpoint are held from here on."""

    reason: str
    actor: str | None = None


class EndpointEnabled(Body, frozen=True, kw_only=True):
    """Every pending delivery of the endpoint is due from here on."""

    replay_dead: bool = False
    actor: str | None = None


class Revived(Body, frozen=True, kw_only=True):
    """A dead delivery is pending again, with no attempts, at its original place."""

    actor: str | None = None


class Cancelled(Body, frozen=True, kw_only=True):
    """A pending delivery is given up on request."""

    actor: str | None = None


class PayloadErased(Body, frozen=True, kw_only=True):
    """The delivery's payload can no longer be read by anyone."""

    actor: str | None = None


class Entry(Struct, frozen=True, gc=False):
    """One record of the log, without its position: entries stand in the order in which they happened."""

    ts: int
    endpoint_id: str | None
    delivery_id: str | None
    body: Body


BODIES: tuple[type[Body], ...] = (
    LogOpened,
    EndpointRegistered,
    EndpointUpdated,
    Enqueued,
    AttemptRecorded,
    AttemptReleased,
    EndpointDisabled,
    EndpointEnabled,
    Revived,
    Cancelled,
    PayloadErased,
)

encode_body = msgspec.json.Encoder().encode
"""The JSON of a body, as UTF-8; equal bodies give equal bytes."""
