"""`erase`, and the setting of `endpoint add` and `set`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from dispatcher.live import Dispatcher
from tests.acceptance.cli import Terminal, started
from tests.acceptance.conftest import Command
from tests.acceptance.lively import (
    OPEN,
    MovedClock,
    Prompted,
    enqueue,
    eventually_is,
    log_length,
    rows,
    state,
)
from tests.acceptance.test_live_erasure import URL, erased


def test_when_to_erase_is_set_and_shown(command: Command, database: Path) -> None:
    assert command("endpoint", "add", "shop", URL, "--erase", "on_final").code == 0
    assert ["erase", "on_final"] in command("endpoint", "show", "shop").lines
    changed = command("endpoint", "set", "shop", "--erase", "on_delivery")
    assert changed == (0, "shop changed: erase\n", "")
    assert command("endpoint", "show", "shop", "--json").json["erase"] == "on_delivery"
    assert command("endpoint", "set", "shop", "--concurrency", "2").code == 0
    assert command("endpoint", "show", "shop", "--json").json["erase"] == "on_delivery"


def test_an_event_is_erased_by_its_id(command: Command, live: Dispatcher, database: Path) -> None:
    live.register("shop", URL)
    enqueue(live, "one", "two")
    assert command("erase", "one", "--yes", "--actor", "me") == (0, "one is erased\n", "")
    assert ["payload", "erased, not yet scrubbed"] in command("status", "one").lines
    assert command("db", "scrub").code == 0
    assert ["payload", "erased"] in command("status", "one").lines
    assert "me" in command("history", "one", "--json").out
    assert command("erase", "two", "--endpoint", "shop", "--yes", "--json").json == {
        "tenant": "default",
        "endpoint_id": "shop",
        "event_id": "two",
        "erased": 1,
        "in_flight": 0,
    }
    assert erased(database) == ["one", "two"]


def test_many_are_erased_by_endpoint_age_or_tenant(
    command: Command, live: Dispatcher, database: Path, clock: MovedClock
) -> None:
    clock.move(-3600)
    for endpoint_id in ("shop", "mail"):
        live.register(endpoint_id, URL)
        enqueue(live, f"old-{endpoint_id}", endpoint_id=endpoint_id)
    clock.move(3600)
    enqueue(live, "young")
    before = datetime.fromtimestamp((clock.ms - 1000) / 1000).isoformat()
    ran = command("erase", "--endpoint", "shop", "--older-than", before, "--yes")
    assert ran == (0, "erased\t1\nin flight, left\t0\n", "")
    assert erased(database) == ["old-shop"]
    ran = command("erase", "--endpoint", "shop", "--all", "--yes", "--json")
    assert ran.json == {"tenant": "default", "endpoint_id": "shop", "erased": 1, "in_flight": 0}
    ran = command("erase", "--tenant", "default", "--all", "--yes", "--json")
    assert ran.json == {"tenant": "default", "erased": 1, "in_flight": 0}
    assert sorted(erased(database)) == ["old-mail", "old-shop", "young"]


def test_what_is_being_sent_is_reported(command: Command, database: Path, clock: MovedClock) -> None:
    transport = Prompted()
    with Dispatcher(database, clock=clock, open_networks=OPEN, transport=transport) as live:
        live.register("shop", URL)
        enqueue(live, "sent", "waiting")
        with live.worker():
            assert transport.asked.wait(20)
            named = command("erase", "sent", "--yes", "--json")
            assert (named.code, named.error["code"]) == (2, "in_flight")
            ran = command("erase", "--endpoint", "shop", "--all", "--yes")
            assert (ran.code, ran.out) == (1, "erased\t1\nin flight, left\t1\n")
            assert "being sent" in ran.err
            transport.may_answer.set()
            eventually_is(live, "sent", "delivered")
    assert erased(database) == ["waiting"]


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        ([], "usage", 2),
        (["one", "--all"], "usage", 2),
        (["--all"], "usage", 2),
        (["--older-than", "2h"], "usage", 2),
        (["--endpoint", "shop"], "usage", 2),
        (["--endpoint", "shop", "--older-than", "soon"], "usage", 2),
        (["one"], "not_confirmed", 2),
        (["--endpoint", "shop", "--all"], "not_confirmed", 2),
        (["none", "--yes"], "not_found", 3),
        (["none", "--endpoint", "shop", "--yes"], "unknown_event", 3),
        (["--endpoint", "none", "--all", "--yes"], "unknown_endpoint", 3),
        (["--tenant", "none", "--all", "--yes"], "unknown_tenant", 3),
        (["--tenant", "", "--all", "--yes"], "invalid_id", 2),
        (["--endpoint", "", "--all", "--yes"], "invalid_id", 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_refused_has_a_code_and_erases_nothing(
    command: Command, live: Dispatcher, database: Path, arguments: list[str], code: str, exit_code: int
) -> None:
    live.register("shop", URL)
    enqueue(live, "one")
    length = log_length(database)
    ran = command("erase", *arguments, "--json")
    assert (ran.code, ran.error["code"]) == (exit_code, code)
    assert log_length(database) == length


@pytest.mark.parametrize(("answer", "gone"), [("y\n", True), ("\n", False), ("\x04", False)])
def test_on_a_terminal_it_asks_first(
    live: Dispatcher, database: Path, tmp_path: Path, answer: str, gone: bool
) -> None:
    live.register("shop", URL)
    enqueue(live, "one")
    terminal = Terminal()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), terminal.theirs)
    with started("erase", "one", "--database", str(database), at=tmp_path, **streams) as process:
        asked = terminal.read_until("[y/N]")
        assert "Erase the payload of one at shop, for ever?" in asked
        terminal.write(answer)
        assert process.wait() == (0 if gone else 2)
    assert erased(database) == (["one"] if gone else [])
    assert state(live, "one") == ("cancelled" if gone else "pending")
    assert rows(database, "SELECT count(*) FROM dispatcher_payloads") == [(1,)]
