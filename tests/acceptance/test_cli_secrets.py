"""Secrets on the command line: taken from files where wanted, and repeated by nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.live import Dispatcher
from tests.acceptance.cli import Ran
from tests.acceptance.conftest import Command
from tests.acceptance.lively import enqueue
from tests.acceptance.receiver import Receiver

CANARIES = ("s3cr3t", "T0KEN", "K3Y")
URL = "https://u:s3cr3t@127.0.0.1:1/T0KEN?key=K3Y"
BAD = "s3cr3t T0KEN?key=K3Y"

FAILURES = [
    ["endpoint", "add", "shop", URL],
    ["endpoint", "add", "shop", URL.replace("127.0.0.1", "10.0.0.1")],
    ["endpoint", "add", "shop", URL.replace("https", "gopher")],
    ["endpoint", "add", "shop", URL.replace("@", "@@")],
    ["endpoint", "add", "shop", "https://x.example", URL],
    ["endpoint", "add", "shop", "https://x.example", "--secret", BAD],
    ["endpoint", "add", "shop", "https://x.example", "--secret", "@s3cr3t"],
    ["endpoint", "add", "shop", "https://x.example", "--header", BAD],
    ["endpoint", "add", "shop", "https://x.example", "--header", "X-s3cr3t T0KEN: K3Y"],
    ["endpoint", "add", "shop", "https://x.example", "--header", "X-A: s3cr3t\r\nT0KEN: K3Y"],
    ["endpoint", "add", "shop", "https://x.example", "--auth-header", BAD],
    ["endpoint", "add", "shop", "https://x.example", "--bearer", BAD],
    ["endpoint", "add", "shop", "https://x.example", "--basic", BAD.replace(":", "")],
    ["endpoint", "add", "shop", "https://x.example", "--basic", "s3cr3t:T0KEN", "--bearer", "K3Y"],
    ["endpoint", "add", BAD, "https://x.example"],
    ["endpoint", "set", "known", "--url", URL.replace("127.0.0.1", "10.0.0.1")],
    ["endpoint", "set", "known", "--bearer", BAD],
    ["endpoint", "set", "known", "--bearer", "K3Y", "s3cr3t"],
    ["endpoint", "rotate-secret", "known", "--secret", BAD],
    ["endpoint", "rotate-secret", "known", BAD],
    ["endpoint", "test", "known"],
    ["enqueue", "known", "s3cr3t", "T0KEN"],
    ["enqueue", "known", "s3cr3t", "--event-id", "evt"],
    ["enqueue", "known", "s3cr3t", "--header", BAD],
    ["enqueue", "known", "s3cr3t", "--order-key", "K3Y", "--event-id", BAD],
]


def silent(ran: Ran) -> bool:
    return not any(canary in ran.out + ran.err for canary in CANARIES)


@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["in words", "as JSON"])
def test_no_refusal_and_no_answer_repeats_a_secret(
    command: Command, live: Dispatcher, as_json: list[str]
) -> None:
    live.register("known", URL)
    live.register("shop", URL)
    live.enqueue("known", 1, event_id="evt")
    for arguments in FAILURES:
        ran = command(*arguments, *as_json)
        assert ran.code in (1, 2), arguments
        assert silent(ran), arguments
    for question in (
        ["endpoint", "list"],
        ["endpoint", "show", "known"],
        ["status", "evt"],
        ["history", "evt"],
        ["log", "tail"],
    ):
        ran = command(*question, *as_json)
        assert ran.code == 0
        assert silent(ran), question


def test_a_secret_may_stand_in_a_file_or_come_from_standard_input(
    command: Command, live: Dispatcher, receiver: Receiver, tmp_path: Path
) -> None:
    (tmp_path / "url").write_text(receiver.url + "\n")
    (tmp_path / "key").write_bytes(b"X-Key: s3cr3t\r\n")
    added = command(
        "endpoint", "add", "shop", "@url", "--auth-header", "@key", "--basic", "@-", stdin="u:T0KEN"
    )
    assert added.code == 2
    added = command(
        "endpoint", "add", "shop", "@url", "--auth-header", "@key", "--header", "@-", stdin="X-B: T0KEN\n"
    )
    assert added.code == 0
    assert silent(added)
    enqueue(live, "one")
    with live.worker():
        arrival = receiver.next()
    assert (arrival.headers["x-key"], arrival.headers["x-b"]) == ("s3cr3t", "T0KEN")


@pytest.mark.usefixtures("live")
def test_standard_input_is_read_for_one_of_them(command: Command) -> None:
    ran = command("endpoint", "add", "shop", "@-", "--secret", "@-", stdin=URL)
    assert (ran.code, ran.out) == (2, "")
    assert "standard input is read for another option already" in ran.err
    assert silent(ran)


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read: No such file or directory"), (b"\xff\xfe", "holds no text")],
    ids=["no file", "no text"],
)
def test_a_file_that_does_not_serve_is_not_named(
    command: Command, tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "s3cr3t").write_bytes(content)
    ran = command("endpoint", "add", "shop", "https://x.example", "--bearer", "@s3cr3t")
    assert ran.code == 2
    assert said in ran.err
    assert silent(ran)
