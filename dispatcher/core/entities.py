"""What the log is about: endpoints, their lanes, the deliveries in them. Changed by `evolve` alone."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from dispatcher.core.entries import BodyFormat, Erasing, Ordering
from dispatcher.core.policy import RetryPolicy
from dispatcher.core.window import Item, Window

DeliveryState = Literal["pending", "delivered", "dead", "cancelled"]


class Endpoint(Struct, eq=False):
    """Where a customer wants events, and how many of them stand where. Times in the log's unit."""

    id: str
    registered: int
    """The position of its registration."""
    url: str
    policy: RetryPolicy
    url_digest: str | None = None
    order: Ordering = "strict"
    concurrency: int = 8
    erase: Erasing = "never"
    disable_when_gone: bool = False
    types: tuple[str, ...] | None = None
    """Patterns of the published events that it takes; None: all."""
    body_format: BodyFormat | None = None
    keep_payloads: int | None = None
    """So long after the final outcome a payload is kept; None: for good."""
    disabled: str | None = None
    """Why it is disabled; None while it is enabled."""
    resumptions: int = 0
    """How often it was enabled again."""
    resumed_at: int = 0
    """When it was last enabled again: whatever was due before then is due at this time."""
    pending: int = 0
    delivered: int = 0
    dead: int = 0
    cancelled: int = 0

    lanes: dict[str, Lane] = field(default_factory=dict)
    lane_order: Window = field(default_factory=lambda: Window(complete=True))
    """Its lanes by (resumption, due_at, order) of their heads."""
    dead_ids: dict[str, None] = field(default_factory=dict)
    stored: bool = False
    """It came from a source, where more of its lanes and deliveries may lie."""
    dead_loaded: bool = False


class Lane(Struct, eq=False):
    """Deliveries of one endpoint that keep order among themselves."""

    endpoint: Endpoint
    key: str
    pending: Window
    """(order, delivery id) of what is pending."""
    shown: Item | None = None
    """Where it stands in the endpoint's lane order; () when nothing is pending, None when not yet known."""


class Delivery(Struct, eq=False, gc=False):
    """One event for one endpoint. It refers to its lane and nothing refers back to it but the state:
    that is why it can be left to reference counting."""

    id: str
    lane: Lane
    order: int
    """The position of its Enqueued entry: its place in its lane, for ever."""
    due_at: int
    resumption: int
    """The endpoint's resumptions when due_at was set."""
    outcomes: tuple[int, ...] | None = None
    seed: int | None = None
    digest: str | None = None
    event_type: str | None = None
    state: DeliveryState = "pending"
    attempts: int = 0
    death: int | None = None
    """The position of its latest death, while it is dead."""
    last_status: int | None = None
    last_error: str | None = None
    erased: bool = False


class StoredDelivery(Struct, frozen=True, gc=False):
    """A delivery as a source keeps it."""

    id: str
    endpoint_id: str
    lane: str
    order: int
    due_at: int
    resumption: int
    outcomes: tuple[int, ...] | None
    seed: int | None
    digest: str | None
    event_type: str | None
    state: DeliveryState
    attempts: int
    death: int | None
    last_status: int | None
    last_error: str | None
    erased: bool
