"""Twenty callers at once with one event id, some of them through the inbox: there is one event."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import Refused
from dispatcher.live import Dispatcher
from tests.acceptance.conftest import Opened
from tests.acceptance.elsewhere import Elsewhere
from tests.acceptance.lively import OPEN, entries, eventually, eventually_is, rows
from tests.acceptance.receiver import Receiver
from tests.acceptance.test_live_concurrency import race

RACERS = 20


def through_inbox(live: Dispatcher, database: Path, payload: Any) -> str:
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        answer = live.enqueue("shop", payload, event_id="evt", connection=connection)
        connection.commit()
    return answer


def enqueue(live: Dispatcher, database: Path, number: int, payload: Any) -> str:
    """Each third one through the inbox; what the caller was told."""
    try:
        if number % 3 == 0:
            return through_inbox(live, database, payload)
        return live.enqueue("shop", payload, event_id="evt")
    except Refused as refused:
        return refused.code


def _race(database: Path, same: bool, line: Any) -> None:
    """In a process of its own: say what each number that is heard comes to."""
    with Dispatcher(database, open_networks=OPEN) as live:
        line.send("ready")
        while (number := line.recv()) is not None:
            line.send(enqueue(live, database, number, "same" if same else number))


def answers_of(how: str, live: Dispatcher, opened: Opened, database: Path, same: bool) -> list[str]:
    if how == "threads":
        both = (live, opened())
        return race(RACERS, lambda n: enqueue(both[n % 2], database, n, "same" if same else n))
    racers = [Elsewhere(_race, database, same) for _ in range(RACERS)]
    for racer in racers:
        assert racer.hear() == "ready"
    for number, racer in enumerate(racers):
        racer.line.send(number)
    answers = [racer.hear() for racer in racers]
    for racer in racers:
        racer.line.send(None)
        assert racer.ended() == 0
    return answers


@pytest.mark.parametrize("how", ["threads", "processes"])
def test_with_equal_content_all_get_the_same_answer_and_one_event_is_delivered(
    live: Dispatcher, receiver: Receiver, opened: Opened, database: Path, how: str
) -> None:
    live.register("shop", receiver.url)
    with live.worker():
        assert answers_of(how, live, opened, database, same=True) == ["evt"] * RACERS
        eventually_is(live, "evt", "delivered")
        eventually(lambda: live.inbox() == [])
    assert receiver.events == ["evt"]
    assert entries(live, "evt") == ["Enqueued", "AttemptRecorded"]


@pytest.mark.parametrize("how", ["threads", "processes"])
def test_with_other_content_one_wins_and_of_the_others_it_is_said_or_kept_that_they_did_not(
    live: Dispatcher, receiver: Receiver, opened: Opened, database: Path, how: str
) -> None:
    live.register("shop", receiver.url)
    answers = answers_of(how, live, opened, database, same=False)
    with live.worker():
        body = int(receiver.next().body)
        eventually_is(live, "evt", "delivered")
    kept = [event["refused"] for event in live.inbox()]
    inbox = [number for number in range(RACERS) if number % 3 == 0]
    assert [answers[number] for number in inbox] == ["evt"] * len(inbox)
    direct = [answers[number] for number in range(RACERS) if number not in inbox]
    assert kept == ["duplicate_event"] * (len(inbox) - (body in inbox))
    assert sorted(direct) == ["duplicate_event"] * (len(direct) - (body not in inbox)) + ["evt"] * (
        body not in inbox
    )
    receiver.assert_quiet()
    assert rows(database, "SELECT count(*) FROM dispatcher_deliveries") == [(1,)]


def test_applications_that_write_at_the_same_time_wait_for_each_other(
    live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live.register("shop", receiver.url)

    def write(number: int) -> list[str]:
        accepted = []
        with closing(sqlite3.connect(database, timeout=30)) as connection:
            for n in range(10):
                accepted.append(live.enqueue("shop", [number, n], connection=connection))
                connection.commit()
        return accepted

    with live.worker():
        accepted = [event_id for answer in race(RACERS, write) for event_id in answer]
        arrived = receiver.take(len(accepted))
    assert sorted(arrival.event for arrival in arrived) == sorted(accepted)
    for number in range(RACERS):
        mine = [arrival.body for arrival in arrived if arrival.body.startswith(b"[%d," % number)]
        assert mine == [b"[%d,%d]" % (number, n) for n in range(10)]
