"""`demo`: all of it in one command, and what it shows is true."""

from __future__ import annotations

import re
import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from dispatcher.audit.verify import verify
from dispatcher.cli.customers import AWAY_SECONDS, KINDS, Customer
from dispatcher.cli.receiver import Arrival
from tests.acceptance.cli import PATIENCE_SECONDS, Ran, dispatcher, drawn, started

EVENTS = {kind.endpoint_id: kind.events for kind in KINDS}


class Demos(NamedTuple):
    """Three of them, run side by side because each takes its time, with their folders."""

    piped: Ran
    json: Ran
    terminal: str
    at: Path


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Demos:
    at = tmp_path_factory.mktemp("demo")
    elsewhere = {"DISPATCHER_DATABASE": str(at / "production.db")}
    with ThreadPoolExecutor() as pool:
        piped = pool.submit(dispatcher, "demo", at=at, **elsewhere)
        as_json = pool.submit(dispatcher, "demo", "--json", "--database", "json.db", at=at)
        terminal = pool.submit(drawn, "demo", "--database", "terminal.db", at=at, streams=("stdout",))
        return Demos(piped.result(), as_json.result(), terminal.result(), at)


def test_it_succeeds_and_says_nothing_on_stderr(demos: Demos) -> None:
    assert (demos.piped.code, demos.piped.err) == (0, "")
    assert (demos.json.code, demos.json.err) == (0, "")


def test_its_log_is_in_demo_db_whatever_the_environment_names(demos: Demos) -> None:
    assert {file.name for file in demos.at.iterdir()} == {"demo.db", "json.db", "terminal.db"}
    assert verify(demos.at / "demo.db").findings == []


def test_piped_each_attempt_is_a_line(demos: Demos) -> None:
    lines = [line for line in demos.piped.lines if len(line) == 5]
    assert all(re.fullmatch(r"\d+\.\d", line[0]) for line in lines)
    told = {endpoint: [line[2:] for line in lines if line[1] == endpoint] for endpoint in EVENTS}
    assert told["healthy"] == [[event, "1", "200, delivered"] for event in EVENTS["healthy"]]
    assert told["picky"][2] == ["picky-3", "1", "400, dead"]
    assert told["flaky"][1:4] == [
        ["flaky-2", "1", "503, again in 1 s"],
        ["flaky-2", "2", "503, again in 2 s"],
        ["flaky-2", "3", "200, delivered"],
    ]
    assert told["away"][0] == ["away-1", "1", "connection_refused, again in 1 s"]
    assert float(lines[-1][0]) >= AWAY_SECONDS


def test_it_ends_with_what_arrived_in_which_order_what_is_dead_and_whether_the_log_verifies(
    demos: Demos,
) -> None:
    assert "  healthy: healthy-1, healthy-2, healthy-3, healthy-4, healthy-5\n" in demos.piped.out
    assert "  flaky:   flaky-1, flaky-2 (x3), flaky-3, flaky-4 (x3), flaky-5\n" in demos.piped.out
    assert "\nDead: picky-3, refused by picky with 400\n" in demos.piped.out
    entries, head, _ = verify(demos.at / "demo.db")
    assert f"\nLog: {entries} entries, 0 findings, head {head}\n" in demos.piped.out


def test_the_commands_that_it_ends_with_work(demos: Demos) -> None:
    commands = re.findall(r"^  dispatcher (.*)$", demos.piped.out, re.MULTILINE)
    history, status, checked = (dispatcher(*command.split(), at=demos.at) for command in commands)
    assert (history.code, len(history.lines)) == (0, 4)
    assert ["state", "dead"] in status.lines
    assert ["findings", "0"] in checked.lines


def test_on_a_terminal_a_table_shows_how_it_goes(demos: Demos) -> None:
    for word in ("endpoint", "last attempt", "retrying", "done", "connection_refused, again in 1 s"):
        assert word in demos.terminal
    assert "Log: " in demos.terminal


def test_as_json_it_is_one_document(demos: Demos) -> None:
    document = demos.json.json
    assert document["ok"] is True
    assert document["log"]["findings"] == []
    told = {one["endpoint_id"]: one for one in document["endpoints"]}
    assert {name: [event for event, _ in one["arrived"]] for name, one in told.items()} == EVENTS
    assert {name: one["delivered"] for name, one in told.items()} == {
        "healthy": 5, "flaky": 5, "picky": 4, "away": 5,
    }  # fmt: skip
    (letter,) = told["picky"]["dead"]
    assert (letter["event_id"], letter["last_status"]) == ("picky-3", 400)


def test_a_database_that_holds_a_log_is_left_as_it_is(demos: Demos, example: Path) -> None:
    before = (example / "dispatcher.db").read_bytes()
    ran = dispatcher("demo", "--database", "dispatcher.db", "--json", at=example)
    assert (ran.code, ran.error["code"]) == (2, "usage")
    assert "--database" in ran.error["remedy"]
    assert (example / "dispatcher.db").read_bytes() == before
    assert dispatcher("demo", at=demos.at).code == 2


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "demo.db").write_text("no database" * 100)
    assert dispatcher("demo", at=tmp_path).code == 4


def test_interrupted_it_leaves_a_log_that_verifies(tmp_path: Path) -> None:
    with started("demo", at=tmp_path) as process:
        assert process.stdout is not None
        while "delivered" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 130
    assert verify(tmp_path / "demo.db").findings == []
    with closing(sqlite3.connect(tmp_path / "demo.db")) as connection:
        assert connection.execute("SELECT count(*) FROM dispatcher_claims").fetchone() == (0,)


@pytest.fixture
def customer() -> Iterator[Customer]:
    customer = Customer(KINDS[2])
    yield customer
    customer.receiver.close()


def _arrive(customer: Customer, events: list[str], signature: str = "verified") -> None:
    for event in events:
        arrival = Arrival(0.0, "POST", "/hooks", event, 1, "verified", 200, b"")
        customer.receiver.arrivals.put(arrival._replace(signature=signature))  # type: ignore[arg-type]


def test_what_is_as_it_has_to_be_is_no_trouble(customer: Customer) -> None:
    _arrive(customer, customer.kind.events)
    assert customer.troubles(["picky-3"], 4) == []


def test_an_event_out_of_order_a_bad_signature_and_a_wrong_count_are_trouble(customer: Customer) -> None:
    _arrive(customer, ["picky-2", "picky-1", *customer.kind.events[2:]])
    assert "order" in customer.troubles(["picky-3"], 4)[0]
    _arrive(customer, ["picky-5"], "invalid")
    assert "signature" in customer.troubles(["picky-3"], 4)[1]
    assert "dead" in customer.troubles([], 5)[2]
