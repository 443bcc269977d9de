"""`receive`: what a developer points an endpoint at."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dispatcher.delivery.signing import new_secret, parse_signer, signature_header
from tests.acceptance.cli import PATIENCE_SECONDS, dispatcher, on_terminal, started

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Receiving:
    """The command, running, and one connection to it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        assert process.stderr is not None
        self.out, self.err = process.stdout, process.stderr
        self.announced = self.err.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.announced)
        assert found, self.announced
        self.connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=PATIENCE_SECONDS)

    def send(self, event_id: str = "one", body: bytes = b"{}", path: str = "/hook", **headers: str) -> int:
        """The status that a request is answered with."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("POST", path, body, {"webhook-id": event_id, **named})
        with self.connection.getresponse() as response:
            response.read()
            return response.status

    def send_signed(
        self, secret: str, event_id: str = "one", body: bytes = b"{}", signed: bytes = b""
    ) -> int:
        now = int(time.time())
        signature = signature_header([parse_signer(secret)], event_id, now, signed or body)
        return self.send(event_id, body, webhook_timestamp=str(now), webhook_signature=signature)

    def line(self) -> list[str]:
        return self.out.readline().rstrip("\n").split("\t")

    def end(self, how: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Exit code and what it says at its end."""
        self.process.send_signal(how)
        return self.process.wait(PATIENCE_SECONDS), self.err.read()


@contextmanager
def receiving(*arguments: str, at: Path, **options: Any) -> Iterator[Receiving]:
    with started("receive", "--port", "0", *arguments, at=at, **options) as process:
        running = Receiving(process)
        try:
            yield running
        finally:
            running.connection.close()


def test_each_event_gets_the_answers_in_turn_and_the_last_one_repeats(tmp_path: Path) -> None:
    with receiving("--answer", "503,500,200", at=tmp_path) as receiver:
        assert [receiver.send("one") for _ in range(4)] == [503, 500, 200, 200]
        assert [receiver.send("two") for _ in range(2)] == [503, 500]
        assert receiver.send("one") == 200
        lines = [receiver.line() for _ in range(7)]
    assert [(line[3], line[4], line[6]) for line in lines] == [
        ("one", "1", "503"), ("one", "2", "500"), ("one", "3", "200"), ("one", "4", "200"),
        ("two", "1", "503"), ("two", "2", "500"), ("one", "5", "200"),
    ]  # fmt: skip


def test_an_arrival_is_a_line(tmp_path: Path) -> None:
    with receiving(at=tmp_path) as receiver:
        assert receiver.send("one", b'{"order": 17}', path="/hook?token=hidden") == 200
        at, *rest = receiver.line()
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}", at)
    assert rest == ["POST", "/hook?...", "one", "1", "none", "200", '{"order": 17}']


def test_as_json_an_arrival_is_an_object_a_line(tmp_path: Path) -> None:
    with receiving("--json", at=tmp_path) as receiver:
        assert list(json.loads(receiver.announced)) == ["listening"]
        receiver.send("one", "ü".encode() * 100)
        arrival = json.loads(receiver.out.readline())
        code, said = receiver.end()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", arrival.pop("at"))
    assert arrival == {
        "method": "POST", "path": "/hook", "event_id": "one", "attempt": 1, "signature": "none",
        "answer": 200, "body": "ü" * 100,
    }  # fmt: skip
    assert (code, json.loads(said)["requests"]) == (0, 1)


def test_what_would_steer_a_terminal_is_escaped_and_a_long_body_cut(tmp_path: Path) -> None:
    with receiving(at=tmp_path) as receiver:
        receiver.send("one", b"\x1b[31m\n\t\xff" + b"x" * 1000)
        line = receiver.line()
    assert line[7].startswith(r"\x1b[31m\n\t\xffxxx")
    assert line[7].endswith("x...")
    assert len(line[7]) < 100


def test_a_forged_signature_is_answered_401_and_shown_and_moves_no_answer_on(tmp_path: Path) -> None:
    with receiving("--secret", SECRET, "--answer", "503,200", at=tmp_path) as receiver:
        assert receiver.send_signed(new_secret()) == 401
        assert receiver.send_signed(SECRET, signed=b"another body") == 401
        assert receiver.send() == 401
        assert receiver.send_signed(SECRET) == 503
        assert receiver.send_signed(SECRET) == 200
        lines = [receiver.line() for _ in range(5)]
    assert [line[4:7] for line in lines] == [
        ["", "invalid", "401"], ["", "invalid", "401"], ["", "none", "401"],
        ["1", "verified", "503"], ["2", "verified", "200"],
    ]  # fmt: skip


def test_during_a_rotation_two_secrets_are_good(tmp_path: Path) -> None:
    fresh = new_secret()
    with receiving("--secret", SECRET, "--secret", fresh, at=tmp_path) as receiver:
        assert (receiver.send_signed(SECRET), receiver.send_signed(fresh)) == (200, 200)


def test_without_a_secret_signatures_are_left_unchecked(tmp_path: Path) -> None:
    with receiving(at=tmp_path) as receiver:
        assert receiver.send_signed(SECRET) == 200
        assert receiver.line()[5] == "unchecked"


@pytest.mark.parametrize("source", ["file", "standard input", "environment"])
def test_a_secret_need_not_stand_on_the_command_line(tmp_path: Path, source: str) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    with (tmp_path / "secret").open() as file:
        ways: dict[str, tuple[list[str], dict[str, Any]]] = {
            "file": (["--secret", "@secret"], {}),
            "standard input": (["--secret", "@-"], {"stdin": file}),
            "environment": ([], {"env": {"DISPATCHER_SECRET": f"{new_secret()} {SECRET}"}}),
        }
        arguments, options = ways[source]
        with receiving(*arguments, at=tmp_path, **options) as receiver:
            assert receiver.send_signed(SECRET) == 200
            assert receiver.send_signed(new_secret()) == 401
            assert receiver.line()[5] == "verified"


@pytest.mark.parametrize("wrong", ["whsec_hidden!", "whsec_aGlkZGVu", "@absent"])
def test_a_secret_that_is_none_is_wrong_usage_and_not_shown(tmp_path: Path, wrong: str) -> None:
    ran = dispatcher("receive", "--port", "0", "--secret", wrong, at=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "secret" in ran.err
    assert "whsec_hidden" not in ran.err
    assert "aGlkZGVu" not in ran.err


@pytest.mark.parametrize("wrong", ["", "ok", "200,", "99", "600", "200;500"])
def test_answers_that_are_none_are_wrong_usage(tmp_path: Path, wrong: str) -> None:
    assert dispatcher("receive", "--port", "0", "--answer", wrong, at=tmp_path).code == 2


def test_the_answer_0_closes_the_connection(tmp_path: Path) -> None:
    with receiving("--answer", "0,204", at=tmp_path) as receiver:
        with pytest.raises(http.client.RemoteDisconnected):
            receiver.send()
        assert receiver.send() == 204
        assert [receiver.line()[6] for _ in range(2)] == ["0", "204"]


def test_a_connection_is_kept_for_many_requests(tmp_path: Path) -> None:
    with receiving("--answer", "204,304,500,200", at=tmp_path) as receiver:
        receiver.connection.connect()
        kept = receiver.connection.sock
        assert [receiver.send() for _ in range(4)] == [204, 304, 500, 200]
        assert receiver.connection.sock is kept


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Length": str(256 * 1024 + 1)}, 413),
        ({"Content-Length": "9" * 5000}, 413),
        ({"Content-Length": "-1"}, 400),
        ({"Content-Length": "²"}, 400),
        ({}, 411),
        ({"Transfer-Encoding": "chunked"}, 411),
    ],
    ids=["long", "very long", "negative", "no digit", "none", "chunked"],
)
def test_a_body_of_a_length_that_is_not_taken_is_refused_unread(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    with receiving(at=tmp_path) as receiver:
        receiver.connection.putrequest("POST", "/hook")
        for name, value in headers.items():
            receiver.connection.putheader(name, value)
        receiver.connection.endheaders()
        with receiver.connection.getresponse() as response:
            assert (response.status, response.getheader("Connection")) == (status, "close")
        receiver.connection.close()
        assert receiver.send("next") == 200
        assert receiver.line()[3] == "next"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_browser_gets_a_hint(tmp_path: Path, method: str) -> None:
    with receiving(at=tmp_path) as receiver:
        receiver.connection.request(method, "/")
        with receiver.connection.getresponse() as response:
            assert response.status == 200
            assert (b"POST" in response.read()) == (method == "GET")
        receiver.send("next")
        assert receiver.line()[3] == "next"


def test_an_arrival_is_shown_before_its_delayed_answer(tmp_path: Path) -> None:
    with receiving("--delay", "3600", at=tmp_path) as receiver:
        receiver.connection.request("POST", "/hook", b"{}", {"webhook-id": "one"})
        assert receiver.line()[3] == "one"
        assert receiver.end()[0] == 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_with_a_summary_when_it_is_asked_to(tmp_path: Path, how: signal.Signals) -> None:
    with receiving("--answer", "503,200", at=tmp_path) as receiver:
        for _ in range(3):
            receiver.send()
            receiver.line()
        assert receiver.end(how) == (
            0,
            "requests: 3, answered 200: 2, answered 503: 1, signature none: 3\n",
        )


def test_it_ends_when_its_reader_is_gone(tmp_path: Path) -> None:
    with receiving(at=tmp_path) as receiver:
        receiver.out.close()
        assert receiver.process.wait(PATIENCE_SECONDS) == 0


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with receiving(at=tmp_path) as receiver:
        port = str(receiver.connection.port)
        ran = dispatcher("receive", "--port", port, "--json", at=tmp_path)
    assert (ran.code, ran.error["code"]) == (2, "usage")
    assert f"port {port}" in ran.error["message"]


def test_on_a_terminal_arrivals_stand_under_their_names(tmp_path: Path) -> None:
    with on_terminal("receive", "--port", "0", at=tmp_path) as (process, terminal):
        found = re.search(r":(\d+)", terminal.read_until("until Ctrl-C"))
        assert found
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=PATIENCE_SECONDS)
        connection.request("POST", "/hook", b"{}", {"webhook-id": "one"})
        connection.getresponse().read()
        connection.close()
        seen = terminal.read_until("{}")
        process.send_signal(signal.SIGINT)
        assert "requests: 1" in terminal.read_all()
        assert process.wait() == 0
    assert seen.index("event_id") < seen.index("one")
