"""Receivers that are broken, or mean harm."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
import ssl
from pathlib import Path

import pytest

from dispatcher.delivery.connector import MAX_INTERIM, MAX_RECEIVED, HeadFirst
from dispatcher.delivery.http import HttpTransport
from dispatcher.delivery.transport import Answer, Request
from tests.unit.delivery.certificates import make_contexts
from tests.unit.delivery.receivers import (
    BRIEF,
    OPEN,
    PATIENT,
    Connection,
    Receiver,
    Script,
    answering,
    exchange,
    request,
    response,
    send_once,
)

SLOW_HEAD = b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 900
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def _failed(error: str) -> Answer:
    return Answer(status=0, error=error)


def _endless(data: bytes, first: bytes = b"") -> Script:
    """Sends without end, until the other side leaves."""

    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.write(first)
        while True:
            await connection.write(data)

    return script


async def _silent(connection: Connection) -> None:
    await connection.until_left()


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(_silent, id="silent"),
        pytest.param(lambda connection: connection.dribble(SLOW_HEAD), id="slow head"),
        pytest.param(
            lambda connection: connection.dribble(b"HTTP/1.1 102 Processing\r\n\r\n" * 90),
            id="slow interim answers",
        ),
    ],
)
def test_a_slow_head_ends_at_the_deadline(script: Script) -> None:
    assert exchange(script, deadline=BRIEF) == _failed("deadline")


def test_a_slow_body_ends_at_the_deadline_and_the_status_counts() -> None:
    async def slow(connection: Connection) -> None:
        await connection.request()
        await connection.write(b"HTTP/1.1 500 Oops\r\nContent-Length: 900\r\nRetry-After: 7\r\n\r\n")
        await connection.dribble(b"x" * 900)

    answer = exchange(slow, deadline=BRIEF)
    assert (answer.status, answer.error, answer.retry_after) == (500, None, 7)
    assert 0 < len(answer.body) < 900


# Far more than any webhook, so that the kernels cannot hold it all; aiohttp advises against that.
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
def test_a_receiver_that_reads_nothing_cannot_pin_its_connection() -> None:
    async def run() -> tuple[Answer, int]:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            # Less than the body, so that some of it stays unsent at the deadline.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            listening.setblocking(False)
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
            loop = asyncio.get_running_loop()
            sending = asyncio.create_task(send_once(request(url, body=bytes(16 << 20), deadline=BRIEF)))
            accepted, _ = await loop.sock_accept(listening)
            with accepted:
                answer = await sending
                # What the kernels held is still there; what was to follow is not, and never comes.
                count = 0
                while data := await loop.sock_recv(accepted, 1 << 20):
                    count += len(data)
            return answer, count

    answer, count = asyncio.run(run())
    assert answer == _failed("deadline")
    assert 0 < count < 16 << 20


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(_endless(b"x" * 65536, b"HTTP/1.1 200 OK\r\n\r\n"), id="until close"),
        pytest.param(_endless(b"ffff\r\n" + b"x" * 65535 + b"\r\n", CHUNKED), id="chunked"),
        pytest.param(_endless(b"1\r\nx\r\n" * 9999, CHUNKED), id="tiny chunks"),
        pytest.param(
            _endless(b"x" * 65536, response(200, b"")[:-19] + b"Content-Length: 99999999999\r\n\r\n"),
            id="announced",
        ),
    ],
)
def test_an_endless_body_ends_early_and_the_status_counts(script: Script) -> None:
    answer = exchange(script)
    assert (answer.status, answer.error, answer.body) == (200, None, b"x" * 1024)


def test_a_gzip_bomb_is_never_expanded() -> None:
    bomb = gzip.compress(bytes(40 << 20), 1)[:200_000]
    answer = exchange(answering(response(200, bomb, ["Content-Encoding: gzip"])))
    assert answer == Answer(status=200, body=bytes(1024))


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "☃"])
def test_an_undecodable_body_ends_the_reading_only(encoding: str) -> None:
    answer = exchange(
        answering(
            b"HTTP/1.1 202 OK\r\nContent-Encoding: "
            + encoding.encode()
            + b"\r\nContent-Length: 4\r\n\r\nnope"
        )
    )
    assert answer == Answer(status=202)


@pytest.mark.parametrize(
    "body",
    [b"Content-Length: 100\r\n\r\nshort", b"Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nzz\r\n"],
)
def test_a_broken_body_ends_the_reading_only(body: bytes) -> None:
    answer = exchange(answering(b"HTTP/1.1 200 OK\r\n" + body))
    assert (answer.status, answer.error) == (200, None)


def test_a_reset_after_the_status_ends_the_reading_only() -> None:
    async def run() -> Answer:
        async def reset(connection: Connection) -> None:
            await connection.request()
            await connection.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
            await kept.wait()
            connection.reset()

        kept = asyncio.Event()
        async with Receiver(reset) as receiver:
            transport = HttpTransport(OPEN, clock=lambda: kept.set() or 0.0)  # type: ignore[func-returns-value]
            answer = await transport.send(request(receiver.url()))
            await transport.close()
            return answer

    answer = asyncio.run(run())
    assert (answer.status, answer.error) == (200, None)


def test_a_reset_before_the_status_is_no_answer() -> None:
    async def reset(connection: Connection) -> None:
        await connection.request()
        await connection.write(b"HTTP/1.1 2")
        connection.reset()

    assert exchange(reset) == _failed("connection_reset")


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\xff\xfe garbage\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 000 OK\r\n\r\n",
        b"HTTP/1.1 600 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"HTTP/1.1 200 OK\r\n" + b"X-Flood: 1\r\n" * 9999 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n",
    ],
    ids=range(9),
)
def test_what_is_no_answer_is_an_invalid_response(garbage: bytes) -> None:
    assert exchange(answering(garbage)) == _failed("invalid_response")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(_endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 999), id="continue"),
        pytest.param(_endless(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 999), id="hints"),
        pytest.param(_endless(b"x" * 65536, b"HTTP/1.1 200 "), id="status line"),
        pytest.param(_endless(b"x" * 65536), id="garbage"),
    ],
)
def test_an_endless_head_ends_long_before_the_deadline(script: Script) -> None:
    # A patient deadline: it is the bytes that end it.
    assert exchange(script) == _failed("invalid_response")


def test_one_attempt_takes_so_many_bytes_off_the_wire_and_no_more() -> None:
    sent = 0

    async def count(connection: Connection) -> None:
        nonlocal sent
        await connection.request()
        connection.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        connection.writer.transport.set_write_buffer_limits(0)
        while True:
            await connection.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 40)
            sent += 1000

    assert exchange(count).error == "invalid_response"
    # Beyond ours, what the two kernels hold.
    assert sent < MAX_RECEIVED + (8 << 20)


@pytest.mark.parametrize(("interim", "status"), [(MAX_INTERIM, 201), (MAX_INTERIM + 1, 0)])
def test_so_many_interim_answers_are_passed_over_and_no_more(interim: int, status: int) -> None:
    data = b"HTTP/1.1 100 Continue\r\n\r\n" * interim + response(201)
    assert exchange(answering(data)).status == status


def test_blank_lines_in_a_body_end_nothing() -> None:
    assert exchange(answering(response(200, b"\r\n\r\n" * 9))) == Answer(status=200, body=b"\r\n\r\n" * 9)


def test_an_interim_answer_is_passed_over() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    assert exchange(answering(interim + response(201, b"ok"))) == Answer(status=201, body=b"ok")


def test_switching_protocols_is_an_answer() -> None:
    upgrade = b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n\x00\x01"
    answer = exchange(answering(upgrade))
    assert (answer.status, answer.error) == (101, None)


def test_a_closed_port_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert asyncio.run(send_once(request(f"http://127.0.0.1:{port}/"))) == _failed("connection_refused")


class TestTls:
    """Who cannot prove to be the receiver gets nothing."""

    def _send(
        self, tmp_path: Path, *, trusted: bool = True, name: str = "127.0.0.1", script: Script | None = None
    ) -> tuple[Answer, list[str]]:
        server, client = make_contexts(tmp_path, name)
        served: list[str] = []

        async def serve(connection: Connection) -> None:
            served.append((await connection.request()).method)
            await connection.write(response(200))

        async def run() -> Answer:
            loop = asyncio.get_running_loop()
            # A failed handshake is the receiver's to report, not an error of the test.
            loop.set_exception_handler(lambda loop, context: None)
            async with Receiver(script or serve, tls=None if script else server) as receiver:
                context = client if trusted else ssl.create_default_context()
                url = receiver.url(scheme="https")
                return await send_once(request(url, deadline=PATIENT), ssl_context=context)

        return asyncio.run(run()), served

    def test_a_trusted_certificate(self, tmp_path: Path) -> None:
        assert self._send(tmp_path) == (Answer(status=200), ["POST"])

    def test_an_unknown_authority(self, tmp_path: Path) -> None:
        assert self._send(tmp_path, trusted=False) == (_failed("tls_failed"), [])

    def test_a_certificate_for_another_host(self, tmp_path: Path) -> None:
        assert self._send(tmp_path, name="other.example") == (_failed("tls_failed"), [])

    def test_no_tls_at_all(self, tmp_path: Path) -> None:
        async def plain(connection: Connection) -> None:
            await connection.reader.read(1)
            await connection.write(b"HTTP/1.1 400 Bad\r\n\r\n")

        assert self._send(tmp_path, script=plain)[0] == _failed("tls_failed")

    def test_an_endless_body(self, tmp_path: Path) -> None:
        server, client = make_contexts(tmp_path, "127.0.0.1")

        async def run() -> Answer:
            endless = _endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 999)
            async with Receiver(endless, tls=server) as receiver:
                answer = await send_once(request(receiver.url(scheme="https")), ssl_context=client)
                await receiver.left.wait()
                return answer

        assert asyncio.run(run()) == _failed("invalid_response")


@pytest.mark.parametrize(
    "sent",
    [
        request("http://127.0.0.1:9/", headers=[("X-A", "a\r\nX-Evil: 1")]),
        request("http://127.0.0.1:9/", headers=[("", "a")]),
        request("http://127.0.0.1:9/", headers=[("X-B", "é")]),
        request("http://127.0.0.1:9/", headers=[("content-LENGTH", "0")]),
        request("http://127.0.0.1:9/", headers=[("Transfer-Encoding", "chunked")]),
    ],
)
def test_a_bad_header_that_was_stored_is_permanent(sent: Request) -> None:
    expected = Answer(status=0, error="invalid_headers", outcome="permanent")
    assert asyncio.run(send_once(sent)) == expected


@pytest.mark.parametrize(
    "host", ["127.0.0.1:9", "closed.invalid", "127.0.0.1:999999", "[::1%25lo]", "10.0.0.1", "127.1"]
)
def test_no_secret_of_a_url_is_logged_or_answered(host: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    sent = request(f"https://u:s3cr3t@{host}/T0KEN?key=K3Y", headers=[("X-Key", "h1dden")])
    answer = asyncio.run(send_once(sent, guard=OPEN))
    shown = caplog.text + repr(answer) + str(answer.error) + repr(sent)
    assert [secret for secret in ("s3cr3t", "T0KEN", "K3Y", "h1dden") if secret in shown] == []


def test_an_answer_before_the_body_was_read_is_an_answer_at_once() -> None:
    async def early(connection: Connection) -> None:
        await connection.reader.readuntil(b"\r\n\r\n")
        connection.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.reader._transport.pause_reading()  # type: ignore[attr-defined]
        await connection.write(response(413, b"no"))
        await answered.wait()

    answered = asyncio.Event()

    async def run() -> Answer:
        async with Receiver(early) as receiver:
            sending = send_once(request(receiver.url(), body=bytes(1_000_000), deadline=60.0))
            answer = await asyncio.wait_for(sending, PATIENT)
            answered.set()
            return answer

    assert asyncio.run(run()) == Answer(status=413, body=b"no")


@pytest.mark.parametrize("cut", range(1, 45))
def test_a_head_counts_however_it_was_cut_into_pieces(cut: int) -> None:
    broken = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n\r\n\r\n"
    assert _status_of([broken[:-cut], broken[-cut:]]) == 200
    assert _status_of([broken[:cut], broken[cut:]]) == 200


def _status_of(pieces: list[bytes]) -> int | None:
    """What the parser makes of an answer that arrives in these pieces."""

    async def run() -> int | None:
        protocol = HeadFirst(asyncio.get_running_loop())
        protocol.begin()
        protocol.set_response_params()
        for piece in pieces:
            protocol.data_received(piece)
        message, _ = await protocol.read()
        return int(message.code)

    return asyncio.run(run())
