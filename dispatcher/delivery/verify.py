"""For receivers: is this webhook genuine?"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import Final

from dispatcher.delivery.refusals import InvalidSecret, InvalidSignature
from dispatcher.delivery.signing import parse_verifier, signed_message

_TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)
MAX_SIGNATURES: Final = 32
"""More than any rotation needs; checking thousands would let a forger spend our time."""


def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secret: str | Iterable[str],
    *,
    tolerance_seconds: int = 300,
    now: float | None = None,
) -> None:
    """Returns if a webhook was signed with one of the secrets; raises InvalidSignature otherwise.

    `body` is the raw body, as it came; `headers` hold webhook-id, webhook-timestamp and
    webhook-signature, in any case; a secret is `whsec_…`, `whsk_…` or the public `whpk_…`. `now` is in
    seconds since 1970 (default: the clock's). A timestamp further than the tolerance from now, either
    way, is refused, but an attacker can repeat a webhook within it: keep the ids that were seen.
    Raises InvalidSecret for a secret that is none, TypeError for a body that is not bytes.
    """
    if not isinstance(body, (bytes, bytearray, memoryview)):
        raise TypeError("the body must be the raw bytes of the request, before any decoding")
    verifiers = [parse_verifier(one) for one in ([secret] if isinstance(secret, str) else secret)]
    if not verifiers:
        raise InvalidSecret("no secret was given")
    event_id, sent_at, signatures = _read(headers)
    # Written so that a tolerance or a clock that is no number lets nothing pass.
    if not abs((time.time() if now is None else now) - sent_at) <= tolerance_seconds:
        raise InvalidSignature
    try:
        message = signed_message(event_id, sent_at, bytes(body))
    except ValueError:
        raise InvalidSignature from None
    if not any(verifier.accepts(message, one) for one in signatures for verifier in verifiers):
        raise InvalidSignature


def _read(headers: Mapping[str, str]) -> tuple[str, int, list[str]]:
    """Id, timestamp in seconds, signatures."""
    found = {name.lower(): value for name, value in headers.items()}
    event_id = found.get("webhook-id", "")
    timestamp = found.get("webhook-timestamp", "")
    signatures = found.get("webhook-signature", "").split(" ")
    # A leading zero or a sign would be signed as another text than the one that was sent.
    canonical = _TIMESTAMP.fullmatch(timestamp) and timestamp == str(int(timestamp))
    if not event_id or not canonical or len(signatures) > MAX_SIGNATURES:
        raise InvalidSignature
    return event_id, int(timestamp), signatures
