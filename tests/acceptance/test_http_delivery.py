"""A signed request, from its parts to a receiver that checks it, over TLS."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from dispatcher.delivery.attempt import signed_request
from dispatcher.delivery.authentication import BearerToken
from dispatcher.delivery.guard import Guard
from dispatcher.delivery.http import HttpTransport
from dispatcher.delivery.refusals import InvalidSignature
from dispatcher.delivery.signing import new_secret, parse_signer
from dispatcher.delivery.transport import Answer, Request
from dispatcher.delivery.verify import verify_webhook
from tests.unit.delivery.certificates import make_contexts
from tests.unit.delivery.receivers import Connection, Names, Receiver, response

BODY = '{"n":"é 😱","id":616581622363398142,"f":1.0}'.encode()


class Shop:
    """A receiver as a customer would write it: 401 unless the webhook is genuine, each id only once."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.seen: list[str] = []

    async def serve(self, connection: Connection) -> None:
        received = await connection.request()
        try:
            verify_webhook(received.body, received.headers, self.secret)
        except InvalidSignature:
            await connection.write(response(401))
            return
        assert received.body == BODY
        assert received.headers["authorization"] == "Bearer t0ken"
        self.seen.append(received.headers["webhook-id"])
        await connection.write(response(200, b"thanks"))


def test_a_genuine_webhook_is_taken_and_a_forged_one_is_not(tmp_path: Path) -> None:
    server, client = make_contexts(tmp_path, "shop.example")
    shop = Shop(new_secret())

    def attempt(url: str, secret: str) -> Request:
        import time

        return signed_request(
            url=url,
            event_id="evt_1",
            timestamp=int(time.time()),
            body=BODY,
            signers=[parse_signer(new_secret()), parse_signer(secret)],
            authentication=BearerToken(token="t0ken"),
        )

    async def run() -> list[Answer]:
        guard, names = Guard(["127.0.0.0/8"]), Names({"shop.example": ["127.0.0.1"]})
        async with Receiver(shop.serve, tls=server) as receiver:
            url = receiver.url("/hooks?tenant=1", host="shop.example", scheme="https")
            transport = HttpTransport(guard, lookup=names, ssl_context=client)
            answers = [await transport.send(attempt(url, secret)) for secret in (shop.secret, new_secret())]
            await transport.close()
            return answers

    assert asyncio.run(run()) == [Answer(status=200, body=b"thanks"), Answer(status=401)]
    assert shop.seen == ["evt_1"]


@pytest.mark.parametrize(
    "module", ["dispatcher", "dispatcher.testing", "dispatcher.delivery.verify", "dispatcher.delivery.guard"]
)
def test_what_sends_nothing_loads_no_client(module: str) -> None:
    heavy = {"aiohttp", "aiodns", "cryptography", "idna", "yarl", "sqlalchemy"}
    program = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert shown.stdout == "[]\n"
