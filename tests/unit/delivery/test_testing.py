"""The transport that tests use instead of a network."""

from __future__ import annotations

import asyncio

import pytest

from dispatcher.delivery.transport import Answer, Transport
from dispatcher.testing import Delayed, Hanging, ManualClock, ScriptedTransport
from tests.unit.delivery.receivers import request

URL = "https://shop.example/"


def test_scripts_by_event_then_by_url_then_the_default() -> None:
    async def run() -> list[int]:
        scripted = ScriptedTransport(default=204)
        transport: Transport = scripted
        scripted.script(URL, [500, 200])
        scripted.script("e1", [Answer(status=410)])
        one = request(URL, headers=[("Webhook-Id", "e1")])
        two = request(URL, headers=[("webhook-id", "e2")])
        other = request("https://other.example/")
        sent = [one, two, two, two, one, other]
        statuses = [(await transport.send(each)).status for each in sent]
        assert scripted.requests == sent
        assert scripted.sent_to(URL) == sent[:5]
        return statuses

    assert asyncio.run(run()) == [410, 500, 200, 200, 410, 204]


def test_failures() -> None:
    async def run() -> list[Answer]:
        scripted = ScriptedTransport()
        scripted.script(URL, ["dns_failed", 0])
        answers = [await scripted.send(request(URL)) for _ in range(2)]
        await scripted.close()
        return [*answers, await scripted.send(request(URL))]

    assert [answer.error for answer in asyncio.run(run())] == ["dns_failed", "deadline", "aborted"]


def test_a_late_answer_waits_for_the_clock() -> None:
    async def run() -> None:
        clock = ManualClock()
        scripted = ScriptedTransport(clock=clock)
        scripted.script(URL, [Delayed(3, Answer(status=200)), Delayed(60, Answer(status=200))])
        for seconds, answer in ((3, Answer(status=200)), (10, Answer(status=0, error="deadline"))):
            arrived = len(scripted.requests) + 1
            sending = asyncio.create_task(scripted.send(request(URL, deadline=10)))
            await scripted.arrived(arrived)
            await asyncio.sleep(0)
            clock.advance(seconds - 1)
            await asyncio.sleep(0)
            assert not sending.done()
            clock.advance(1)
            assert await sending == answer

    asyncio.run(run())


def test_a_hanging_receiver_ends_with_its_sender() -> None:
    async def run() -> None:
        scripted = ScriptedTransport(default=Hanging())
        sending = asyncio.create_task(scripted.send(request(URL)))
        await scripted.arrived(1)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending

    asyncio.run(run())


def test_sleepers_wake_in_order_and_a_cancelled_one_never() -> None:
    async def run() -> list[int]:
        clock, woken = ManualClock(100.0), list[int]()

        async def sleep(seconds: int) -> None:
            await clock.sleep(seconds)
            woken.append(seconds)

        tasks = [asyncio.create_task(sleep(seconds)) for seconds in (3, 1, 2, 0, 9)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        clock.advance(5)
        await asyncio.gather(*tasks[:4], return_exceptions=True)
        assert clock.now == 105.0
        assert not tasks[4].done()
        tasks[4].cancel()
        return woken

    assert asyncio.run(run()) == [0, 1, 3]


def test_an_empty_script_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="step"):
        ScriptedTransport().script(URL, [])
