"""Many callers at once: each event is accepted once, and is durable when its caller is answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dispatcher.errors import Refused
from dispatcher.live import Dispatcher
from tests.acceptance.conftest import Opened
from tests.acceptance.elsewhere import reader_elsewhere
from tests.acceptance.lively import entries, eventually_is, rows
from tests.acceptance.receiver import Receiver

THREADS, EACH, TASKS, RACERS = 16, 8, 50, 20


def race(count: int, call: Callable[[int], Any]) -> list[Any]:
    """What each of many calls came to, all of them begun at the same moment."""
    start = threading.Barrier(count)

    def one(number: int) -> Any:
        start.wait()
        try:
            return call(number)
        except Refused as refused:
            return refused.code

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_from_many_threads_each_event_is_accepted_once_and_durable_when_answered(
    live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live.register("shop", receiver.url, order="none")
    reader, asking = reader_elsewhere(database), threading.Lock()

    def enqueue(thread: int) -> list[str]:
        ids = []
        for n in range(EACH):
            ids.append(live.enqueue("shop", [thread, n]))
            with asking:
                assert reader.ask(f"default/shop/{ids[-1]}") == 1
        return ids

    ids = [event_id for answer in race(THREADS, enqueue) for event_id in answer]
    reader.line.send(None)
    assert reader.ended() == 0
    assert len(set(ids)) == THREADS * EACH
    with live.worker():
        arrived = receiver.take(THREADS * EACH)
    receiver.assert_quiet()
    assert {arrival.event for arrival in arrived} == set(ids)
    assert {arrival.body for arrival in arrived} == {
        b"[%d,%d]" % (t, n) for t in range(THREADS) for n in range(EACH)
    }


def test_events_of_one_thread_keep_its_order_among_those_of_others(
    live: Dispatcher, receiver: Receiver
) -> None:
    live.register("shop", receiver.url)
    race(4, lambda thread: [live.enqueue("shop", [thread, n]) for n in range(EACH)])
    with live.worker():
        bodies = [arrival.body for arrival in receiver.take(4 * EACH)]
    for thread in range(4):
        mine = [body for body in bodies if body.startswith(b"[%d" % thread)]
        assert mine == [b"[%d,%d]" % (thread, n) for n in range(EACH)]


def test_from_many_tasks_each_event_is_accepted_once_and_durable_when_answered(
    live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live.register("shop", receiver.url)

    async def enqueue(number: int) -> str:
        event_id = await live.aenqueue("shop", number, event_id=f"evt-{number}")
        seen = f"SELECT count(*) FROM dispatcher_deliveries WHERE delivery_id = 'default/shop/{event_id}'"
        assert rows(database, seen) == [(1,)]
        return event_id

    async def enqueue_all() -> list[str]:
        return await asyncio.gather(*(enqueue(number) for number in range(TASKS)))

    assert asyncio.run(enqueue_all()) == [f"evt-{number}" for number in range(TASKS)]
    with live.worker():
        arrived = receiver.take(TASKS)
    receiver.assert_quiet()
    assert sorted(int(arrival.body) for arrival in arrived) == list(range(TASKS))


def test_racing_for_one_id_all_get_the_same_answer_and_one_event_is_delivered(
    live: Dispatcher, receiver: Receiver, opened: Opened
) -> None:
    """From two dispatchers, as from two processes."""
    live.register("shop", receiver.url)
    both = (live, opened())
    with live.worker():
        answers = race(RACERS, lambda n: both[n % 2].enqueue("shop", {"a": 1}, event_id="evt"))
        eventually_is(live, "evt", "delivered")
    assert answers == ["evt"] * RACERS
    assert receiver.events == ["evt"]
    assert entries(live, "evt") == ["Enqueued", "AttemptRecorded"]


def test_racing_for_one_id_with_different_content_one_wins_and_the_others_are_told(
    live: Dispatcher, receiver: Receiver, opened: Opened
) -> None:
    live.register("shop", receiver.url)
    both = (live, opened())
    answers = race(RACERS, lambda n: both[n % 2].enqueue("shop", n, event_id="evt"))
    assert sorted(answers) == ["duplicate_event"] * (RACERS - 1) + ["evt"]
    with live.worker():
        assert receiver.next().body == b"%d" % answers.index("evt")


def test_racing_to_register_one_endpoint_one_wins(live: Dispatcher, receiver: Receiver) -> None:
    urls = [f"http://{receiver.address}/{n}" for n in range(RACERS)]
    answers = race(RACERS, lambda n: live.register("shop", urls[n]))
    won = [n for n, answer in enumerate(answers) if answer != "duplicate_endpoint"]
    assert len(won) == 1
    live.enqueue("shop", 1)
    with live.worker():
        assert receiver.next().path == f"/{won[0]}"
