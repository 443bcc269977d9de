"""What an endpoint's and an event's sender chose, as it lies sealed in the vault."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Struct, UnsetType

from dispatcher.delivery.authentication import Authentication
from dispatcher.delivery.transport import Method

Headers = tuple[tuple[str, str], ...]


class Secret(Struct, frozen=True):
    """A signing secret, and until when it signs (the log's unit); None for good."""

    text: str
    until: int | None = None

    def signs_at(self, now: int) -> bool:
        return self.until is None or self.until > now

    def __repr__(self) -> str:
        return "Secret(…)"


class Settings(Struct, frozen=True, kw_only=True):
    """Where and how an endpoint's events are sent."""

    url: str
    method: Method = "POST"
    headers: Headers = ()
    authentication: Authentication | None = None
    secrets: tuple[Secret, ...] = ()
    """The newest first."""
    subject: str | None = None
    """Of mails: a template."""

    def __repr__(self) -> str:
        return "Settings(…)"


class Payload(Struct, frozen=True, kw_only=True, gc=False):
    """What is sent, the same bytes on every attempt."""

    body: bytes
    headers: Headers = ()
    type: str | UnsetType = UNSET
    """Of a published event."""

    def __repr__(self) -> str:
        return f"Payload({len(self.body)} bytes)"


encode = msgspec.msgpack.encode
decode_settings = msgspec.msgpack.Decoder(Settings).decode
decode_payload = msgspec.msgpack.Decoder(Payload).decode
