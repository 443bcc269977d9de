"""`work`: what it says of its work, in a log and on a terminal."""

from __future__ import annotations

import json
import logging
import signal
from pathlib import Path

import pytest

from dispatcher.cli import work
from dispatcher.cli.livelog import logging_to_stderr
from dispatcher.cli.root import execute
from dispatcher.live import Dispatcher
from tests.acceptance.cli import on_terminal
from tests.acceptance.lively import enqueue
from tests.acceptance.receiver import Receiver
from tests.acceptance.working import ONCE, OPENED, events, logged, work_until_idle

HIDDEN = "hidden"


def test_a_failed_attempt_and_a_death_are_logged_and_a_delivery_is_not(
    live_now: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live_now.register("shop", receiver.url, policy=ONCE)
    live_now.register("other", receiver.url, tenant="acme", policy=ONCE)
    receiver.answer("gone", 404)
    receiver.answer("busy", 503)
    enqueue(live_now, "good", "gone")
    live_now.enqueue("other", 1, tenant="acme", event_id="busy")
    log = logged(work_until_idle(database, "--name", "night").err)
    gone, busy = sorted(events(log, "attempt"), key=lambda line: line["level"], reverse=True)
    assert {**gone, "time": None} == {
        "time": None, "level": "warning", "event": "attempt", "endpoint_id": "shop", "event_id": "gone",
        "attempt": 1, "status": 404, "error": None, "decision": "dead", "next_attempt_at": None,
        "worker": "night",
    }  # fmt: skip
    due = live_now.status("other", "busy", tenant="acme")["next_attempt_at"]
    assert {**busy, "time": None} == {
        "time": None, "level": "info", "event": "attempt", "tenant": "acme", "endpoint_id": "other",
        "event_id": "busy", "attempt": 1, "status": 503, "error": None, "decision": "retry",
        "next_attempt_at": due, "worker": "night",
    }  # fmt: skip


def test_a_request_without_an_answer_is_logged_with_its_reason(live_now: Dispatcher, database: Path) -> None:
    live_now.register("shop", "http://127.0.0.1:1/hook", policy=ONCE)
    enqueue(live_now, "one")
    (attempt,) = events(logged(work_until_idle(database).err), "attempt")
    assert (attempt["status"], attempt["error"]) == (0, "connection_refused")


@pytest.mark.parametrize(("level", "shown"), [("warning", ["dead"]), ("error", [])])
def test_the_level_says_how_much_is_logged(
    live_now: Dispatcher, receiver: Receiver, database: Path, level: str, shown: list[str]
) -> None:
    for endpoint, answer in (("shop", 404), ("other", 503)):
        live_now.register(endpoint, receiver.url, policy=ONCE)
        receiver.answer(endpoint, answer)
        live_now.enqueue(endpoint, 1, event_id=endpoint)
    log = logged(work_until_idle(database, "--log-level", level).err)
    assert [line["decision"] for line in log] == shown


def test_no_payload_url_or_secret_is_ever_in_the_output(
    live_now: Dispatcher, receiver: Receiver, database: Path
) -> None:
    url = receiver.url.replace("//", f"//user:{HIDDEN}@") + f"/{HIDDEN}?token={HIDDEN}"
    secret = live_now.register("shop", url, policy=ONCE, headers=[("X-Token", HIDDEN)])
    for event, status in (("good", 200), ("gone", 404), ("busy", 503)):
        receiver.answer(event, status)
        live_now.enqueue("shop", {"name": HIDDEN}, event_id=event)
    live_now.register("down", f"http://127.0.0.1:1/{HIDDEN}", policy=ONCE)
    live_now.enqueue("down", HIDDEN, event_id="lost")
    ran = work_until_idle(database, "--log-level", "debug")
    assert len(events(logged(ran.err), "attempt")) == 3
    assert HIDDEN not in ran.err
    assert secret not in ran.err


def test_on_a_terminal_a_live_line_says_how_it_goes(
    live_now: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live_now.register("shop", receiver.url, policy=ONCE)
    receiver.answer("gone", 404)
    receiver.answer("busy", 503)
    enqueue(live_now, "one", "gone", "busy", "late")
    command = ("work", *OPENED, "--database", str(database))
    with on_terminal(*command, at=database.parent, streams=("stderr",)) as (process, terminal):
        seen = terminal.read_until("delivered 1  retried 1  dead 1  backlog 2  next due in ")
        assert "warning: gone for shop: attempt 1: 404, dead" in seen
        assert "busy for shop" not in seen
        process.send_signal(signal.SIGINT)
        assert "stopped: delivered 1  retried 1  dead 1" in terminal.read_all()
        assert process.wait() == 0


@pytest.mark.parametrize("signals", [1, 2])
def test_on_a_terminal_the_cursor_is_there_again_at_the_end(
    live_now: Dispatcher, receiver: Receiver, database: Path, signals: int
) -> None:
    live_now.register("shop", receiver.url)
    enqueue(live_now, "one")
    command = ("work", *OPENED, "--grace", "3600", "--database", str(database))
    with (
        receiver.holding(),
        on_terminal(*command, at=database.parent, streams=("stderr",)) as (process, terminal),
    ):
        terminal.read_until("in flight 1")
        process.send_signal(signal.SIGTERM)
        terminal.read_until("stopping (SIGTERM)")
        if signals == 2:
            process.send_signal(signal.SIGTERM)
        else:
            receiver.release()
        seen = terminal.read_all()
        assert process.wait() == (0 if signals == 1 else -signal.SIGTERM)
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")


def test_json_is_logged_on_a_terminal_too_if_asked_for(database: Path) -> None:
    command = ("work", "--until-idle", "--json", "--database", str(database))
    with on_terminal(*command, at=database.parent, streams=("stderr",)) as (process, terminal):
        assert [line["event"] for line in logged(terminal.read_all())] == ["started", "stopping", "stopped"]
        assert process.wait() == 0


def test_a_summary_is_logged_now_and_then(
    live_now: Dispatcher,
    receiver: Receiver,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(work, "SUMMARY_SECONDS", 0.0)
    live_now.register("shop", receiver.url)
    enqueue(live_now, "one")
    assert execute(["work", "--until-idle", *OPENED, "--database", str(database)]) == 0
    summary = events(logged(capsys.readouterr().err), "summary")[-1]
    assert (summary["delivered"], summary["backlog"], summary["next_due_in"]) == (1, 0, None)


def test_what_the_library_warns_of_is_logged_and_an_exception_without_its_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with logging_to_stderr(None, as_json=True):
        logging.getLogger("dispatcher.log").warning("the clock is %d ms behind", 7)
        try:
            raise ValueError(HIDDEN)
        except ValueError:
            logging.getLogger("dispatcher.worker").exception("a turn failed")
        logging.getLogger("asyncio").error("https://user:%s@shop.example", HIDDEN)
    logging.getLogger("dispatcher.log").warning("nobody listens any more")
    warning, failed, foreign = logged(capsys.readouterr().err)
    assert (warning["level"], warning["logger"], warning["message"]) == (
        "warning", "dispatcher.log", "the clock is 7 ms behind",
    )  # fmt: skip
    assert failed["trace"][-1] == "ValueError"
    assert __file__ in failed["trace"][0]
    assert foreign["logger"] == "asyncio"
    assert HIDDEN not in json.dumps([warning, failed, foreign])
