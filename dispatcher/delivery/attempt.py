"""One attempt's request: what the caller gave, signed at the moment it is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from dispatcher.delivery.authentication import Authentication, authentication_header
from dispatcher.delivery.headers import check_headers, merge
from dispatcher.delivery.signing import Signer, signature_header
from dispatcher.delivery.transport import DEFAULT_DEADLINE, Method, Request

USER_AGENT: Final = "webhook-dispatcher"
"""Without a version: receivers need none, and attackers would read it."""


def signed_request(
    *,
    url: str,
    event_id: str,
    timestamp: int,
    body: bytes,
    signers: Sequence[Signer] = (),
    authentication: Authentication | None = None,
    headers: Iterable[tuple[str, str]] = (),
    method: Method = "POST",
    deadline: float = DEFAULT_DEADLINE,
) -> Request:
    """The request of one attempt; timestamp (of the attempt, since 1970) and deadline in seconds.

    Equal but for `webhook-timestamp` and `webhook-signature` on every attempt of a delivery. A caller's
    header beats a default, authentication beats a caller's header; nobody beats `webhook-*`. Without
    signers there is no signature. Raises InvalidHeaders, also for what was stored before a rule existed.
    """
    sent = dict(_constant(tuple(headers), authentication))
    sent.setdefault("idempotency-key", ("Idempotency-Key", event_id))
    sent["webhook-id"] = ("webhook-id", event_id)
    sent["webhook-timestamp"] = ("webhook-timestamp", str(timestamp))
    if signers:
        signature = signature_header(signers, event_id, timestamp, body)
        sent["webhook-signature"] = ("webhook-signature", signature)
    return Request(
        method=method,
        url=url,
        headers=tuple(sent.values()),
        body=body,
        deadline=deadline,
    )


@lru_cache(maxsize=4096)
def _constant(
    headers: tuple[tuple[str, str], ...], authentication: Authentication | None
) -> Mapping[str, tuple[str, str]]:
    """What is the same on every attempt of every event with these headers, by lower-case name."""
    defaults = (("User-Agent", USER_AGENT), ("Content-Type", "application/json"))
    proof = () if authentication is None else (authentication_header(authentication),)
    return merge(defaults, check_headers(headers), proof)
