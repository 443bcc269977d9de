"""Connections that serve one request after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from dispatcher.delivery import connector
from dispatcher.delivery.connector import KEPT_SECONDS, MAX_RECEIVED
from dispatcher.delivery.http import HttpTransport
from dispatcher.delivery.transport import Answer, Method
from tests.unit.delivery.receivers import (
    BRIEF,
    OPEN,
    Connection,
    Receiver,
    Script,
    request,
    response,
)

OK = Answer(status=200)


def serving(*answers: bytes) -> Script:
    """Answers one request after another of a connection, the last answer again and again."""

    async def script(connection: Connection) -> None:
        for n in range(1000):
            await connection.request()
            await connection.write(answers[min(n, len(answers) - 1)])

    return script


def in_a_row(
    script: Script, count: int = 2, *, method: Method = "POST", deadline: float = 5.0
) -> tuple[list[Answer], int]:
    """What becomes of requests over one transport, and how many connections they took."""

    async def run() -> tuple[list[Answer], int]:
        async with Receiver(script) as receiver:
            transport = HttpTransport(OPEN)
            sent = request(receiver.url(), method=method, deadline=deadline)
            answers = [await transport.send(sent) for _ in range(count)]
            await transport.close()
            return answers, receiver.connections

    return asyncio.run(run())


@pytest.mark.parametrize("answer", [response(200), response(200, b"ok" * 9), response(500, b"no")])
def test_a_connection_over_which_all_went_well_serves_the_next_request(answer: bytes) -> None:
    answers, connections = in_a_row(serving(answer), 5)
    assert (len(set(map(repr, answers))), connections) == (1, 1)


def test_an_idle_connection_is_not_kept_for_long() -> None:
    async def run() -> int:
        async with Receiver(serving(response(200))) as receiver:
            transport = HttpTransport(OPEN)
            await transport.send(request(receiver.url()))
            # The receiver sees the end of it; nothing else ends its script.
            await asyncio.wait_for(receiver.left.wait(), KEPT_SECONDS * 10)
            await transport.send(request(receiver.url()))
            await transport.close()
            return receiver.connections

    assert asyncio.run(run()) == 2


def closing_after(first: bytes, *, reset: bool) -> tuple[Script, list[str]]:
    """Answers one request, takes the next, and ends the connection without an answer; later ones serve."""
    seen: list[str] = []

    async def script(connection: Connection) -> None:
        seen.append((await connection.request()).body.decode())
        await connection.write(first)
        if len(seen) == 1:
            seen.append((await connection.request()).body.decode())
            if reset:
                connection.reset()
            return
        await connection.until_left()

    return script, seen


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
@pytest.mark.parametrize("reset", [False, True])
def test_a_kept_connection_that_is_closed_as_a_request_is_sent_is_replaced(
    method: Method, reset: bool
) -> None:
    script, seen = closing_after(response(200), reset=reset)
    answers, connections = in_a_row(script, method=method)
    assert (answers, connections) == ([OK, OK], 2)
    assert len(seen) == 3


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_new_connection_that_is_closed_is_not_tried_again(method: Method) -> None:
    async def script(connection: Connection) -> None:
        await connection.request()

    answers, connections = in_a_row(script, 1, method=method)
    assert ([answer.error for answer in answers], connections) == (["connection_closed"], 1)


def test_a_request_is_sent_a_second_time_only_once_and_only_over_a_new_connection() -> None:
    async def script(connection: Connection) -> None:
        received = await connection.request()
        if received.body == b"first":
            await connection.write(response(200))
            await connection.request()

    async def run() -> tuple[list[int], Answer, int]:
        async with Receiver(script) as receiver:
            transport = HttpTransport(OPEN)
            first = request(receiver.url(), body=b"first")
            # Three connections are kept: none of them is tried after the one that proved stale.
            kept = await asyncio.gather(*(transport.send(first) for _ in range(3)))
            second = await transport.send(request(receiver.url(), body=b"second"))
            await transport.close()
            return [answer.status for answer in kept], second, receiver.connections

    statuses, second, connections = asyncio.run(run())
    assert (statuses, second.error, connections) == ([200] * 3, "connection_closed", 4)


def test_one_that_breaks_within_an_answer_is_not_tried_again() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.write(response(200))
        await connection.request()
        await connection.write(b"HTTP/1.1 2")

    answers, connections = in_a_row(script)
    assert ([answer.status for answer in answers], connections) == ([200, 0], 1)


FORGED = b"HTTP/1.1 299 Forged\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize("surplus", [FORGED, FORGED[:9], b"\x00", b"\r\n"])
def test_what_comes_with_an_answer_is_not_the_answer_to_the_next_request(surplus: bytes) -> None:
    answers, _ = in_a_row(serving(response(200, b"ok") + surplus, response(200, b"ok")))
    assert [answer.status for answer in answers] == [200, 200]


@pytest.mark.parametrize("surplus", [FORGED, FORGED[:9], b"\x00"])
def test_what_comes_after_an_answer_ends_the_connection(
    surplus: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "KEPT_SECONDS", 3600.0)

    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.write(response(200))
        await told.wait()
        await connection.write(surplus)
        # Whoever was told what nobody asked for leaves.
        await connection.until_left()

    told = asyncio.Event()

    async def run() -> tuple[list[Answer], int]:
        async with Receiver(script) as receiver:
            transport = HttpTransport(OPEN)
            answers = [await transport.send(request(receiver.url()))]
            told.set()
            await asyncio.wait_for(receiver.left.wait(), 20)
            answers.append(await transport.send(request(receiver.url())))
            await transport.close()
            return answers, receiver.connections

    assert asyncio.run(run()) == ([OK, OK], 2)


def _half_read() -> Script:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.write(b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n" + bytes(70_000))
        await connection.until_left()

    return script


def _undecodable() -> Script:
    return serving(response(200, b"???", headers=["Content-Encoding: gzip"]))


def _refusing_to_be_kept() -> Script:
    return serving(response(200, headers=["Connection: close"]))


@pytest.mark.parametrize("script", [_half_read, _undecodable, _refusing_to_be_kept])
def test_a_connection_over_which_something_was_odd_is_not_kept(script: Callable[[], Script]) -> None:
    answers, connections = in_a_row(script())
    assert ([answer.status for answer in answers], connections) == ([200, 200], 2)


def test_a_request_that_was_given_up_takes_its_connection_with_it() -> None:
    async def first_answered(connection: Connection) -> None:
        await connection.request()
        await connection.write(response(200))
        await connection.request()
        await connection.until_left()

    async def run() -> tuple[list[str | None], bool]:
        async with Receiver(first_answered) as receiver:
            transport = HttpTransport(OPEN)
            answers = [await transport.send(request(receiver.url(), deadline=BRIEF)) for _ in range(2)]
            await receiver.left.wait()
            await transport.close()
            return [answer.error for answer in answers], receiver.left.is_set()

    assert asyncio.run(run()) == ([None, "deadline"], True)


def test_what_one_attempt_may_receive_is_not_used_up_by_earlier_ones() -> None:
    large = response(200, bytes(60_000))
    answers, connections = in_a_row(serving(large), MAX_RECEIVED // 60_000 + 3)
    assert {answer.status for answer in answers} == {200}
    assert connections == 1


def test_hosts_and_ports_do_not_share_connections() -> None:
    async def run() -> Sequence[int]:
        async with Receiver(serving(response(200))) as one, Receiver(serving(response(200))) as other:
            transport = HttpTransport(OPEN)
            for receiver in (one, other, one, other):
                await transport.send(request(receiver.url()))
            await transport.close()
            return one.connections, other.connections

    assert asyncio.run(run()) == (1, 1)
