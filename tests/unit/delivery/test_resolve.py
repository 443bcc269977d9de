"""Names: where they lead is decided by every attempt, and nobody waits for another's."""

from __future__ import annotations

import asyncio
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.delivery.connection import CURRENT, AddressBlocked, Wire, make_socket
from dispatcher.delivery.guard import Guard, check_url
from dispatcher.delivery.http import HttpTransport
from dispatcher.delivery.refusals import UrlRefused
from dispatcher.delivery.resolve import DnsLookup, NameNotFound
from dispatcher.delivery.transport import Answer, tenant_code
from tests.unit.delivery.receivers import (
    BRIEF,
    OPEN,
    Names,
    Receiver,
    answering,
    request,
    response,
    send_once,
)

BLOCKED = Answer(status=0, error="address_blocked")


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["169.254.169.254"],
        ["::ffff:169.254.169.254"],
        ["64:ff9b::a9fe:a9fe"],
        ["2002:7f00:1::"],
        ["::127.0.0.1"],
        ["::"],
        ["fe80::1%eth0"],
        ["8.8.8.8", "10.0.0.1"],
        ["10.0.0.1", "8.8.8.8"],
        ["2606:4700::1111", "8.8.8.8", "::1"],
        [f"8.8.8.{n}" for n in range(100)] + ["10.0.0.1"],
        ["not an address"],
    ],
)
def test_one_blocked_record_blocks_the_name(addresses: list[str]) -> None:
    names = Names({"shop.example": addresses})
    answer = asyncio.run(send_once(request("http://shop.example/"), guard=Guard(), lookup=names))
    assert answer == BLOCKED


def test_a_blocked_name_looks_to_the_tenant_like_one_that_does_not_exist() -> None:
    names = Names({"inside.example": ["10.0.0.1"], "empty.example": []})

    async def run() -> list[Answer]:
        hosts = ["inside.example", "empty.example", "nowhere.example"]
        return [await send_once(request(f"http://{host}/"), lookup=names) for host in hosts]

    answers = asyncio.run(run())
    assert [answer.error for answer in answers] == ["address_blocked", "dns_failed", "dns_failed"]
    seen = {(answer.status, tenant_code(answer.error), answer.outcome, answer.body) for answer in answers}
    assert seen == {(0, "unreachable", None, b"")}


def test_a_name_is_looked_up_and_vetted_anew_for_every_connection() -> None:
    async def run() -> tuple[list[Answer], list[str]]:
        names = Names({"shop.example": ["127.0.0.1"]})
        async with Receiver(answering(response(200))) as receiver:
            transport = HttpTransport(OPEN, lookup=names)
            sent = request(receiver.url(host="shop.example"))
            answers = [await transport.send(sent)]
            names.names["shop.example"] = ["10.0.0.1"]
            answers.append(await transport.send(sent))
            await transport.close()
            return answers, names.asked

    answers, asked = asyncio.run(run())
    assert answers == [Answer(status=200), BLOCKED]
    # Once a connection: a second lookup could lead elsewhere than the one that was vetted.
    assert asked == ["shop.example"] * 2


def test_the_last_check_is_on_the_socket() -> None:
    wire = Wire(Guard())
    token = CURRENT.set(wire)
    try:
        with pytest.raises(AddressBlocked):
            make_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 80)))
    finally:
        CURRENT.reset(token)
    assert wire.blocked


def test_what_slips_past_the_resolver_is_stopped_at_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> tuple[Answer, int]:
        async with Receiver(answering(response(200))) as receiver:
            allowed = Guard.allows

            class Careless(Guard):
                """Forgets itself once: when the resolver asks."""

                asked = 0

                def allows(self, address: object) -> bool:
                    self.asked += 1
                    return self.asked == 1 or allowed(self, address)  # type: ignore[arg-type]

            names = Names({"shop.example": ["127.0.0.1"]})
            url = receiver.url(host="shop.example")
            return await send_once(request(url), guard=Careless(), lookup=names), receiver.connections

    assert asyncio.run(run()) == (BLOCKED, 0)


def test_slow_names_delay_no_other() -> None:
    async def run() -> None:
        slow_names = [f"slow{n}.example" for n in range(200)]
        names = Names({**dict.fromkeys(slow_names), "shop.example": ["127.0.0.1"]})
        async with Receiver(answering(response(200))) as receiver:
            transport = HttpTransport(OPEN, lookup=names)
            slow = [asyncio.create_task(transport.send(request(f"http://{host}/"))) for host in slow_names]
            answer = await transport.send(request(receiver.url(host="shop.example")))
            assert answer.status == 200
            assert sorted(names.asked) == sorted([*slow_names, "shop.example"])
            assert not any(task.done() for task in slow)
            for task in slow:
                task.cancel()
            await asyncio.gather(*slow, return_exceptions=True)
            await transport.close()

    asyncio.run(run())


def test_a_slow_name_ends_at_the_deadline_and_its_lookup_with_it() -> None:
    async def run() -> Answer:
        names = Names({"slow.example": None})
        answer = await send_once(request("http://slow.example/", deadline=BRIEF), lookup=names)
        assert names.cancelled.is_set()
        return answer

    assert asyncio.run(run()) == Answer(status=0, error="deadline")


@settings(max_examples=60, deadline=None)
@given(st.from_regex(r"[a-z0-9_@:.%é/\\\[\]-]{1,24}", fullmatch=True) | st.from_regex(r"xn--[a-z0-9-]{1,9}"))
def test_the_host_that_was_checked_is_the_host_that_is_looked_up(rest: str) -> None:
    try:
        target = check_url("http://" + rest, Guard())
    except UrlRefused:
        return
    names = Names({})
    answer = asyncio.run(send_once(request("http://" + rest), guard=Guard(), lookup=names))
    if target.address is None:
        assert (names.asked, answer.error) == ([target.host], "dns_failed")


def test_the_second_address_is_tried_when_the_first_refuses() -> None:
    async def run() -> Answer:
        names = Names({"shop.example": ["127.0.0.2", "127.0.0.1"]})
        async with Receiver(answering(response(200))) as receiver:
            return await send_once(request(receiver.url(host="shop.example")), lookup=names)

    assert asyncio.run(run()) == Answer(status=200)


class TestDns:
    """The lookup that is used when none is given; no name server is needed for these."""

    def test_the_hosts_file_counts(self) -> None:
        async def run() -> Answer:
            return await send_once(request("http://localhost:9/"), guard=Guard())

        assert asyncio.run(run()) == BLOCKED

    @pytest.mark.parametrize("host", ["shop..example", "x" * 300, ""])
    def test_what_is_no_name_is_not_found(self, host: str) -> None:
        async def run() -> None:
            lookup = DnsLookup()
            with pytest.raises(NameNotFound):
                await lookup.addresses(host)
            await lookup.close()

        asyncio.run(run())

    def test_name_servers_that_are_silent_delay_no_other_name(self) -> None:
        async def run() -> None:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
                silent.bind(("127.0.0.1", 0))
                lookup = DnsLookup([f"127.0.0.1:{silent.getsockname()[1]}"])
                transport = HttpTransport(OPEN, lookup=lookup)
                slow = [
                    asyncio.create_task(transport.send(request(f"http://n{n}.example/", deadline=BRIEF)))
                    for n in range(50)
                ]
                async with Receiver(answering(response(200)), host="127.0.0.1") as receiver:
                    answer = await transport.send(request(receiver.url(host="localhost")))
                assert answer.error in (None, "connection_refused")
                assert {(await task).error for task in slow} == {"deadline"}
                await transport.close()

        asyncio.run(run())

    def test_closing_unused_or_twice(self) -> None:
        async def run() -> None:
            lookup = DnsLookup()
            await lookup.close()
            await lookup.addresses("localhost")
            await lookup.close()
            await lookup.close()

        asyncio.run(run())
