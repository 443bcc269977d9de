"""The inbox on the command line."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher.live import Dispatcher
from tests.acceptance.conftest import Command
from tests.acceptance.receiver import Receiver


def accept(live: Dispatcher, database: Path, *event_ids: str, order_key: str | None = None) -> None:
    with closing(sqlite3.connect(database)) as connection:
        for event_id in event_ids:
            live.enqueue("shop", 1, event_id=event_id, order_key=order_key, connection=connection)
        connection.commit()


@pytest.fixture
def refused(live: Dispatcher, receiver: Receiver, database: Path) -> Dispatcher:
    """A dispatcher with two events that were refused, numbers 1 and 2, and could be taken now."""
    live.register("shop", receiver.url, order="none")
    accept(live, database, "one", "two", order_key="k")
    live.update("shop", order="strict")
    return live


def test_it_lists_what_waits_and_what_was_refused_and_why(
    command: Command, refused: Dispatcher, database: Path
) -> None:
    accept(refused, database, "three")
    listed = command("inbox")
    assert (listed.code, listed.err) == (0, "")
    assert [[line[0], *line[2:]] for line in listed.lines] == [
        ["1", "shop", "one", "", "order_key_refused"],
        ["2", "shop", "two", "", "order_key_refused"],
        ["3", "shop", "three", "", ""],
    ]
    assert [line[0] for line in command("inbox", "--refused").lines] == ["1", "2"]
    assert command("inbox", "--tenant", "other").out == ""
    assert command("inbox", "--json").json == refused.inbox()
    assert len(refused.inbox()) == 3, "looking takes nothing into the log"


def test_status_tells_of_events_that_are_not_in_the_log(
    command: Command, refused: Dispatcher, database: Path
) -> None:
    accept(refused, database, "three")
    told = dict(command("status", "three").lines)
    assert (told["state"], told["endpoint"]) == ("accepted", "shop")
    assert set(told) == {"event", "endpoint", "state", "accepted"}
    told = dict(command("status", "one", "--endpoint", "shop").lines)
    assert (told["state"], told["refused because"]) == ("refused", "order_key_refused")
    assert command("status", "three", "--json").json == {
        "tenant": "default",
        **refused.status("shop", "three"),
    }
    unknown = command("history", "three")
    assert (unknown.code, "dispatcher inbox" in unknown.err) == (3, True)


def test_refused_ones_are_tried_again(command: Command, refused: Dispatcher) -> None:
    assert command("inbox", "retry", "2").lines == [["taken", "1"]]
    assert command("inbox", "retry", "--all", "--json").json == {"taken": 1}
    assert refused.inbox() == []
    missing = command("inbox", "retry", "2")
    assert (missing.code, missing.out) == (3, "")


def test_refused_ones_are_given_up_when_that_is_confirmed(command: Command, refused: Dispatcher) -> None:
    unasked = command("inbox", "drop", "1", "--json")
    assert (unasked.code, unasked.error["code"]) == (2, "not_confirmed")
    assert len(refused.inbox()) == 2
    assert command("inbox", "drop", "1", "--yes").lines == [["dropped", "1"]]
    assert command("inbox", "drop", "--all", "--yes", "--json").json == {"dropped": 1}
    assert refused.inbox() == []


@pytest.mark.parametrize(
    "arguments", [["retry"], ["drop"], ["retry", "1", "--all"], ["--json", "retry", "1"]]
)
def test_it_wants_to_know_which_and_options_in_their_place(
    command: Command, live: Dispatcher, arguments: list[str]
) -> None:
    wrong = command("inbox", *arguments)
    assert (wrong.code, wrong.out) == (2, "")


def test_a_worker_that_ends_when_idle_delivers_what_waits(
    command: Command, live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live.register("shop", receiver.url)
    accept(live, database, "one", "two")
    assert command("work", "--until-idle").code == 0
    assert receiver.events == ["one", "two"]
