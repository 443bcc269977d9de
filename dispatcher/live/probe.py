"""One signed request sent straight to an endpoint, outside the queue, to see whether it answers."""

from __future__ import annotations

import asyncio
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dispatcher.core.policy import RetryPolicy
from dispatcher.delivery.attempt import signed_request
from dispatcher.delivery.mailbox import is_mail
from dispatcher.delivery.message import mail_request
from dispatcher.delivery.settings import Payload, Settings
from dispatcher.delivery.signing import parse_signer
from dispatcher.delivery.transport import Answer, Request, Transport

BODY = b'{"type":"dispatcher.test"}'


def probe_request(endpoint_id: str, settings: Settings, now: int) -> Request:
    """What an endpoint is probed with at `now`, in milliseconds."""
    event_id = f"test_{secrets.token_hex(16)}"
    if is_mail(settings.url):
        return mail_request(
            url=settings.url,
            subject=settings.subject,
            endpoint_id=endpoint_id,
            event_id=event_id,
            timestamp=now // 1000,
            payload=Payload(body=BODY, type="dispatcher.test"),
        )
    return signed_request(
        url=settings.url,
        method=settings.method,
        event_id=event_id,
        timestamp=now // 1000,
        body=BODY,
        signers=[parse_signer(secret.text) for secret in settings.secrets if secret.signs_at(now)],
        authentication=settings.authentication,
        headers=settings.headers,
    )


def probe(transport: Transport, request: Request, policy: RetryPolicy) -> dict[str, Any]:
    """Send it and tell what came of it; the transport is closed."""

    async def send() -> tuple[Answer, int]:
        began = time.monotonic_ns()
        try:
            answer = await transport.send(request)
        finally:
            await transport.close()
        return answer, (time.monotonic_ns() - began) // 1_000_000

    # In a thread of its own: the caller's may be running an event loop.
    with ThreadPoolExecutor(1, "dispatcher-probe") as thread:
        answer, duration = thread.submit(asyncio.run, send()).result()
    return {
        "ok": (answer.outcome or policy.classify(answer.status)) == "success",
        "status": answer.status,
        "error": answer.error,
        "duration_ms": duration,
        "body_bytes": len(answer.body),
    }
