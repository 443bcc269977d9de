"""`publish`, the settings of endpoints that are about it, and what `status` and `history` say of types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dispatcher.live import Dispatcher
from tests.acceptance.conftest import Command
from tests.acceptance.lively import log_length, rows
from tests.acceptance.receiver import Receiver

URL = "http://127.0.0.1:1/hook"


def shown(command: Command, endpoint_id: str) -> dict[str, str]:
    return dict(line[:2] for line in command("endpoint", "show", endpoint_id).lines)


def settings(command: Command, endpoint_id: str) -> list[Any]:
    found = command("endpoint", "show", endpoint_id, "--json").json
    return [found["types"], found["body_format"]]


def test_an_event_is_published_to_those_that_want_it(
    command: Command, live: Dispatcher, receiver: Receiver
) -> None:
    added = [
        command("endpoint", "add", "shop", receiver.url, "--type", "invoice.*", "--type", "user.created"),
        command("endpoint", "add", "mail", receiver.url, "--format", "standard"),
        command("endpoint", "add", "idle", receiver.url, "--no-types"),
    ]
    assert [ran.code for ran in added] == [0, 0, 0]
    ran = command("publish", "invoice.paid", '{"n": 1.0}', "--event-id", "one")
    assert (ran.code, ran.out, ran.err) == (0, "one\nshop\nmail\n", "")
    with live.worker():
        bodies = sorted(arrival.body for arrival in receiver.take(2))
    assert bodies[1].endswith(b'"data":{"n": 1.0}}')
    assert bodies[0] == b'{"n": 1.0}'
    nobody = command("publish", "order.placed", "1", "--tenant", "other")
    assert (nobody.code, len(nobody.lines)) == (0, 1)


def test_it_takes_what_enqueue_takes(
    command: Command, live: Dispatcher, receiver: Receiver, database: Path, tmp_path: Path
) -> None:
    live.register("shop", receiver.url, tenant="acme")
    (tmp_path / "payload").write_bytes(b"\xff")
    event = ["publish", "invoice.paid", "--file", "payload", "--tenant", "acme", "--event-id", "one"]
    event += ["--content-type", "image/png", "--header", "X-A: b", "--order-key", "k", "--actor", "me"]
    for _ in range(2):
        ran = command(*event, "--json")
        assert ran.json == {"tenant": "acme", "event_id": "one", "endpoints": ["shop"]}
    with live.worker():
        arrival = receiver.next()
    assert (arrival.event, arrival.body) == ("one", b"\xff")
    assert (arrival.headers["content-type"], arrival.headers["x-a"]) == ("image/png", "b")
    ((lane, data),) = rows(
        database,
        "SELECT lane, data FROM dispatcher_deliveries JOIN dispatcher_log USING (position)",
    )
    assert lane.startswith("key:")
    assert json.loads(data)["actor"] == "me"
    assert command("publish", "a", "-", stdin="2", DISPATCHER_SOURCE="/x").code == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["publish", "invoice.*", "1"], "invalid_event_type"),
        (["publish", "invoice.paid"], "usage"),
        (["publish", "invoice.paid", "1", "--file", "x"], "usage"),
        (["publish", "invoice.paid", "2", "--event-id", "one"], "duplicate_event"),
        (["publish", "invoice.paid", "NaN"], "payload_not_json"),
        (["enqueue", "shop", "1", "--type", "a b"], "invalid_event_type"),
        (["endpoint", "set", "shop", "--type", "a*"], "invalid_types"),
        (["endpoint", "set", "shop", "--type", "a", "--all-types"], "usage"),
        (["endpoint", "set", "shop", "--no-types", "--all-types"], "usage"),
        (["endpoint", "set", "shop", "--format", "xml"], "usage"),
        (["endpoint", "add", "other", URL, "--type", ""], "invalid_types"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_refused_has_a_code_and_changes_nothing(
    command: Command, live: Dispatcher, database: Path, arguments: list[str], code: str
) -> None:
    live.register("shop", URL, body_format="standard")
    live.publish("invoice.paid", 1, event_id="one")
    length = log_length(database)
    ran = command(*arguments, "--json")
    assert (ran.code, ran.error["code"]) == (2, code)
    assert log_length(database) == length


def test_a_source_that_is_none_is_refused(command: Command, live: Dispatcher) -> None:
    ran = command("publish", "a", "1", "--json", DISPATCHER_SOURCE="no uri")
    assert (ran.code, ran.error["code"]) == (2, "invalid_source")


def test_types_and_format_are_changed_alone_and_shown(command: Command, live: Dispatcher) -> None:
    live.register("shop", URL, types=["a"], body_format="standard")
    changes: list[tuple[list[str], list[Any]]] = [
        (["--type", "invoice.*", "--type", "b"], [["invoice.*", "b"], "standard"]),
        (["--format", "cloudevents"], [["invoice.*", "b"], "cloudevents"]),
        (["--concurrency", "2"], [["invoice.*", "b"], "cloudevents"]),
        (["--no-types"], [[], "cloudevents"]),
        (["--all-types", "--format", "given"], [None, None]),
    ]
    words = []
    for arguments, expected in changes:
        assert command("endpoint", "set", "shop", *arguments).code == 0
        assert settings(command, "shop") == expected
        found = shown(command, "shop")
        words.append((found["types"], found["body_format"]))
    assert words[1:3] == [("invoice.* b", "cloudevents")] * 2
    assert words[3:] == [("none", "cloudevents"), ("all", "given")]


def test_status_and_history_tell_the_type(command: Command, live: Dispatcher) -> None:
    live.register("shop", URL)
    live.publish("invoice.paid", 1, event_id="one")
    assert command("enqueue", "shop", "1", "--type", "user.created", "--event-id", "two").code == 0
    live.enqueue("shop", 1, event_id="three")
    for event_id, event_type in (("one", "invoice.paid"), ("two", "user.created"), ("three", None)):
        assert dict(command("status", event_id).lines).get("type") == event_type
        assert command("status", event_id, "--json").json["event_type"] == event_type
        (line,) = command("history", event_id).lines
        assert line[2] == "enqueued for shop" + (f", of type {event_type}" if event_type else "")
        (entry,) = command("history", event_id, "--json").json
        assert entry["data"].get("event_type") == event_type
