"""What every transport does: one request in, one answer out, and nothing raised."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, Literal, Protocol

from msgspec import Struct

from dispatcher.core.policy import OutcomeClass

Method = Literal["POST", "PUT", "PATCH"]

DEFAULT_DEADLINE: Final = 10.0
"""Seconds, for everything from the name's resolution to the last byte of the answer."""
MAX_KEPT: Final = 1024
"""Bytes of an answer's body that are kept."""


class Request(Struct, frozen=True, kw_only=True, gc=False):
    """One attempt, ready to be sent: signed, with every header that is ours to choose."""

    method: Method
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    deadline: float = DEFAULT_DEADLINE
    """Seconds."""

    def __repr__(self) -> str:
        # The URL and the headers hold secrets, the body personal data; tracebacks and logs print this.
        return f"Request({self.method}, {len(self.body)} bytes)"


class Answer(Struct, frozen=True, kw_only=True, gc=False):
    """What came of one attempt."""

    status: int
    """The status, or SMTP's reply code, 100 to 599; 0 when no answer came."""
    error: str | None = None
    """An operator's code: one of `TENANT_CODES`; None when an answer came."""
    outcome: OutcomeClass | None = None
    """Only where the status does not decide."""
    retry_after: int | None = None
    """Seconds from the answer, as the receiver asked; None without a valid hint."""
    body: bytes = b""
    """At most 1 KiB, decompressed."""

    def __repr__(self) -> str:
        return f"Answer({self.status}, {self.error or 'answered'}, {len(self.body)} bytes)"


class Transport(Protocol):
    """Sends; whatever happens is an `Answer`. `send` raises nothing but CancelledError."""

    async def send(self, request: Request) -> Answer: ...

    async def close(self) -> None:
        """Lets go of every connection. A later `send` answers `aborted`."""


TENANT_CODES: Final = MappingProxyType(
    {
        # A blocked host looks exactly like one that does not resolve: whoever registers endpoints must
        # not learn which names exist inside.
        "address_blocked": "unreachable",
        "dns_failed": "unreachable",
        "aborted": "aborted",
        "connection_closed": "connection_closed",
        "connection_failed": "connection_failed",
        "connection_refused": "connection_refused",
        "connection_reset": "connection_reset",
        "deadline": "deadline",
        "host_not_allowed": "host_not_allowed",
        "invalid_headers": "invalid_headers",
        "invalid_response": "invalid_response",
        "invalid_url": "invalid_url",
        # What the operator has to put right with the mail server is no business of the tenant's.
        "mail_login_refused": "mail_failed",
        "mail_not_configured": "mail_failed",
        "mail_server_refused": "mail_failed",
        "smtp_4yz": "smtp_4yz",
        "smtp_5yz": "smtp_5yz",
        "smtputf8_missing": "smtputf8_missing",
        "tls_failed": "tls_failed",
        "unsupported_scheme": "unsupported_scheme",
    }
)
"""Operators' codes, and what the tenant is told instead."""


def tenant_code(error: str | None) -> str | None:
    """What a tenant may know of an operator's code; one that is not listed becomes `aborted`."""
    return None if error is None else TENANT_CODES.get(error, "aborted")


def no_answer(error: str) -> Answer:
    """The request may have been sent, or not; worth another try."""
    return Answer(status=0, error=error)


def never_sent(error: str) -> Answer:
    """The request can never be sent as it is; another try would change nothing."""
    return Answer(status=0, error=error, outcome="permanent")
