"""Honest receivers: what they see, and what comes back."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from pathlib import Path

import pytest

from dispatcher.delivery.attempt import signed_request
from dispatcher.delivery.http import HttpTransport
from dispatcher.delivery.signing import parse_signer
from dispatcher.delivery.transport import Answer, Method
from dispatcher.delivery.verify import verify_webhook
from tests.unit.delivery.certificates import make_contexts
from tests.unit.delivery.receivers import (
    OPEN,
    Connection,
    Names,
    Received,
    Receiver,
    answering,
    exchange,
    request,
    response,
    send_once,
)

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PAYLOADS = [
    '{"n":"é 😱"}'.encode(),
    b'{"id":616581622363398142,"f":1.0}',
    b'{"b":1,"a":2}',
    b"0",
    b"false",
    b'""',
    b"null",
    b"{}",
    b"",
    bytes(range(256)) * 1024,
]


def _received(url_path: str = "/", **options: object) -> tuple[Received, Answer]:
    """What a receiver got of one request."""
    got: list[Received] = []

    async def run() -> Answer:
        async with Receiver(answering(response(204), into=got)) as receiver:
            return await send_once(request(receiver.url(url_path), **options))  # type: ignore[arg-type]

    answer = asyncio.run(run())
    assert len(got) == 1
    return got[0], answer


@pytest.mark.parametrize("body", PAYLOADS, ids=lambda body: repr(body[:20]))
def test_the_body_arrives_as_the_bytes_given_and_the_signature_covers_them(body: bytes) -> None:
    got: list[Received] = []

    async def run() -> None:
        async with Receiver(answering(response(200), into=got)) as receiver:
            signed = signed_request(
                url=receiver.url(), event_id="e1", timestamp=1000, body=body, signers=[parse_signer(SECRET)]
            )
            await send_once(signed)

    asyncio.run(run())
    assert got[0].body == body
    assert got[0].headers["content-length"] == str(len(body))
    verify_webhook(got[0].body, got[0].headers, SECRET, now=1000)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_methods(method: Method) -> None:
    assert _received(method=method)[0].method == method


def test_nothing_is_sent_that_was_not_given_but_what_the_protocol_needs() -> None:
    got, _ = _received(headers=[("Content-Type", "text/x-own; v=1"), ("X-Mixed-Case", "a b")])
    assert sorted(got.headers) == [
        "accept-encoding",
        "content-length",
        "content-type",
        "host",
        "x-mixed-case",
    ]
    assert got.headers["content-type"] == "text/x-own; v=1"
    assert ("X-Mixed-Case", "a b") in got.header_lines


def test_a_body_that_is_compressed_already_is_left_alone() -> None:
    body = gzip.compress(b"{}")
    got, _ = _received(headers=[("Content-Encoding", "gzip")], body=body)
    assert (got.body, got.headers["content-encoding"]) == (body, "gzip")


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("", "/"),
        ("?a=1", "/?a=1"),
        ("/a/../b/./c", "/a/../b/./c"),
        ("/a%2Fb%7e?sig=%2B%2f+x&y=a=b", "/a%2Fb%7e?sig=%2B%2f+x&y=a=b"),
        ("/é?n=ü#fragment", "/%C3%A9?n=%C3%BC"),
        ("//double", "//double"),
    ],
)
def test_the_path_arrives_in_the_spelling_given(path: str, sent: str) -> None:
    assert _received(path)[0].path == sent


def test_userinfo_becomes_basic_authentication_unless_there_is_another() -> None:
    async def run(headers: list[tuple[str, str]]) -> Received:
        got: list[Received] = []
        async with Receiver(answering(response(200), into=got)) as receiver:
            url = receiver.url(host="user:p%40ss@127.0.0.1")
            await send_once(request(url, headers=headers))
        return got[0]

    assert asyncio.run(run([])).headers["authorization"] == "Basic dXNlcjpwQHNz"
    assert asyncio.run(run([("authorization", "Bearer t")])).headers["authorization"] == "Bearer t"


def test_statuses_are_answers() -> None:
    for status in (200, 204, 299, 301, 400, 404, 410, 425, 429, 500, 599):
        answer = exchange(answering(response(status)))
        assert answer == Answer(status=status)


def test_retry_after_is_read_from_one_line_only() -> None:
    assert exchange(answering(response(503, headers=["Retry-After: 120"]))).retry_after == 120
    twice = ["Retry-After: 120", "Retry-After: 60"]
    assert exchange(answering(response(503, headers=twice))).retry_after is None


def test_a_retry_date_is_measured_by_the_transports_clock() -> None:
    async def run() -> Answer:
        dated = response(503, headers=["Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"])
        async with Receiver(answering(dated)) as receiver:
            return await send_once(request(receiver.url()), clock=lambda: 784111777.0 - 90.5)

    assert asyncio.run(run()).retry_after == 91


def test_one_kibibyte_of_the_answer_is_kept() -> None:
    body = json.dumps(["x" * 3000]).encode()
    assert exchange(answering(response(200, body))).body == body[:1024]


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_answer_is_kept_readable(encoding: str) -> None:
    import zlib

    body = gzip.compress(b"thanks") if encoding == "gzip" else zlib.compress(b"thanks")
    answer = exchange(answering(response(200, body, [f"Content-Encoding: {encoding}"])))
    assert answer == Answer(status=200, body=b"thanks")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_and_is_not_followed(status: int) -> None:
    async def run() -> tuple[Answer, int]:
        async with Receiver(answering(response(200))) as second:
            away = ["Location: " + second.url(), "Location: http://169.254.169.254/"]
            async with Receiver(answering(response(status, headers=away))) as first:
                answer = await send_once(request(first.url()))
            return answer, second.connections

    assert asyncio.run(run()) == (Answer(status=status), 0)


def test_cookies_are_not_kept() -> None:
    got: list[Received] = []

    async def run() -> None:
        setting = response(200, headers=["Set-Cookie: a=b; Path=/"])
        async with Receiver(answering(setting, into=got)) as receiver:
            # To a name: of addresses a client takes no cookies anyway.
            transport = HttpTransport(OPEN, lookup=Names({"shop.example": ["127.0.0.1"]}))
            for _ in range(2):
                await transport.send(request(receiver.url(host="shop.example")))
            await transport.close()
            assert receiver.connections == 2

    asyncio.run(run())
    assert [received.headers.get("cookie") for received in got] == [None, None]


def test_the_environments_proxy_and_netrc_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    got, answer = _received()
    assert (answer.status, got.path, "authorization" in got.headers) == (204, "/", False)


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_broken_connection_is_no_reason_to_send_twice(method: Method) -> None:
    async def run() -> tuple[Answer, int]:
        async def drop(connection: Connection) -> None:
            await connection.request()

        async with Receiver(drop) as receiver:
            answer = await send_once(request(receiver.url(), method=method))
            return answer, receiver.connections

    assert asyncio.run(run()) == (Answer(status=0, error="connection_closed"), 1)


def test_a_receiver_that_closes_after_each_answer_is_no_failure() -> None:
    async def run() -> list[int]:
        async with Receiver(answering(response(200))) as receiver:
            transport = HttpTransport(OPEN)
            answers = [await transport.send(request(receiver.url())) for _ in range(20)]
            await transport.close()
            return [answer.status for answer in answers]

    assert asyncio.run(run()) == [200] * 20


def test_tls_to_a_name_uses_the_vetted_address_and_the_names_host_and_sni(tmp_path: Path) -> None:
    server, client = make_contexts(tmp_path, "shop.example")
    asked: list[str | None] = []
    got: list[Received] = []

    def note(sock: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        asked.append(name)

    server.sni_callback = note

    async def run() -> tuple[Answer, str]:
        async with Receiver(answering(response(200, b"ok"), into=got), tls=server) as receiver:
            url = receiver.url(scheme="https", host="SHOP.example")
            names = Names({"shop.example": ["127.0.0.1"]})
            answer = await send_once(request(url), lookup=names, ssl_context=client)
            return answer, f"shop.example:{receiver.port}"

    answer, host = asyncio.run(run())
    assert (answer, asked, got[0].headers["host"]) == (
        Answer(status=200, body=b"ok"),
        ["shop.example"],
        host,
    )


def test_an_address_is_called_as_itself() -> None:
    got: list[Received] = []

    async def run() -> tuple[Answer, str]:
        async with Receiver(answering(response(200), into=got), host="::1") as receiver:
            answer = await send_once(request(receiver.url()))
            return answer, f"[::1]:{receiver.port}"

    answer, host = asyncio.run(run())
    assert (answer, got[0].headers["host"]) == (Answer(status=200), host)


def test_after_closing_nothing_is_sent() -> None:
    async def run() -> Answer:
        transport = HttpTransport(OPEN)
        await transport.close()
        return await transport.send(request("http://127.0.0.1:9/"))

    assert asyncio.run(run()) == Answer(status=0, error="aborted")


def test_cancelling_ends_the_connection() -> None:
    async def run() -> None:
        async def silent(connection: Connection) -> None:
            await connection.request()
            arrived.set()
            await connection.until_left()

        arrived = asyncio.Event()
        async with Receiver(silent) as receiver:
            task = asyncio.create_task(send_once(request(receiver.url())))
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await receiver.left.wait()

    asyncio.run(run())
