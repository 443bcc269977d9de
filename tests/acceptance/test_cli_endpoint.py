"""`endpoint add`, `set`, `enable`, `disable`, `test` and `rotate-secret`, as an operator uses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dispatcher import run
from dispatcher.delivery.verify import verify_webhook
from dispatcher.live import Dispatcher
from tests.acceptance.cli import dispatcher
from tests.acceptance.conftest import Command, Opened
from tests.acceptance.lively import MovedClock, bury, enqueue, log_length, rows, state
from tests.acceptance.receiver import Receiver, Reply

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_add_makes_a_database_and_prints_the_secret_that_signs(
    command: Command, receiver: Receiver, opened: Opened, clock: MovedClock
) -> None:
    ran = command("endpoint", "add", "shop", receiver.url)
    assert ran.code == 0
    fields = dict(ran.lines)
    assert fields["endpoint_id"] == "shop"
    assert "not shown again" in ran.err
    live = opened()
    enqueue(live, "one")
    with live.worker():
        arrival = receiver.next()
    verify_webhook(arrival.body, arrival.headers, fields["secret"], now=clock.ms / 1000)
    for question in (["endpoint", "show", "shop"], ["endpoint", "list"], ["log", "tail"]):
        assert fields["secret"] not in command(*question).out


def test_add_prints_json_and_never_a_secret_that_was_given(command: Command, receiver: Receiver) -> None:
    made = command("endpoint", "add", "shop", receiver.url, "--json")
    assert (made.code, made.err) == (0, "")
    assert made.json == {"tenant": "default", "endpoint_id": "shop", "secret": made.json["secret"]}
    assert made.json["secret"].startswith("whsec_")
    given = command("endpoint", "add", "mail", receiver.url, "--secret", "@-", stdin=SECRET + "\n")
    assert given == (0, "endpoint_id\tmail\n", "")


def test_settings_are_those_of_the_requests_and_what_is_not_named_stays(
    command: Command, receiver: Receiver, opened: Opened, tmp_path: Path
) -> None:
    policy = {"max_attempts": 2, "waits": [7], "retryable": [[500, 599]]}
    (tmp_path / "policy.json").write_text(json.dumps(policy))
    settings = ["--method", "PUT", "--header", "X-A: b: c", "--bearer", "t0ken", "--order", "none"]
    ran = command(
        *("endpoint", "add", "shop", receiver.url, *settings, "--policy", "policy.json"),
        *("--concurrency", "3", "--disable-when-gone", "--actor", "me"),
    )
    assert ran.code == 0
    shown = command("endpoint", "show", "shop", "--json").json
    assert (shown["order"], shown["concurrency"], shown["disable_when_gone"]) == ("none", 3, True)
    assert (shown["policy"]["max_attempts"], shown["policy"]["waits"]) == (2, [7000])
    ran = command(
        *("endpoint", "set", "shop", "--auth-header", "X-Key: k", "--policy", "standard"),
        *("--no-disable-when-gone", "--json"),
    )
    assert ran.json == {
        "tenant": "default",
        "endpoint_id": "shop",
        "changed": ["auth", "disable_when_gone", "policy"],
    }
    shown = command("endpoint", "show", "shop").lines
    assert ["waits", "5s 5m 30m 2h 5h 10h 14h 20h 1d"] in shown
    assert ["concurrency", "3"] in shown
    assert ["disable_when_gone", "no"] in shown
    live = opened()
    enqueue(live, "one")
    with live.worker():
        arrival = receiver.next()
    assert arrival.method == "PUT"
    assert (arrival.headers["x-a"], arrival.headers["x-key"]) == ("b: c", "k")
    assert "authorization" not in arrival.headers


def test_an_endpoint_is_paused_and_resumed(command: Command, live: Dispatcher, database: Path) -> None:
    live.register("shop", "http://127.0.0.1:1/hook")
    enqueue(live, "dead", "one")
    bury(live, "dead")
    ran = command("endpoint", "disable", "shop", "--reason", "too slow", "--actor", "me")
    assert ran == (0, "shop is disabled: too slow\n", "")
    assert dict(command("status", "one").lines)["held because"] == "its endpoint is disabled: too slow"
    again = command("endpoint", "disable", "shop", "--json")
    assert (again.code, again.error["code"]) == (2, "already_disabled")
    ran = command("endpoint", "enable", "shop", "--replay-dead", "--actor", "me")
    assert ran == (0, "shop is enabled, dead events revived: 1\n", "")
    assert state(live, "dead") == state(live, "one") == "pending"
    assert rows(database, 'SELECT count(*) FROM dispatcher_log WHERE data LIKE \'%"actor":"me"%\'') == [(3,)]
    assert command("endpoint", "disable", "shop", "--json").json["disabled"] == "requested"
    assert command("endpoint", "enable", "shop", "--json").json["revived"] == 0


def test_a_test_request_tells_whether_it_was_taken(
    command: Command, live: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live.register("shop", receiver.url)
    live.disable("shop")
    length = log_length(database)
    ran = command("endpoint", "test", "shop")
    assert (ran.code, ran.err) == (0, "")
    assert [line[:2] for line in ran.lines if line[0] != "after"] == [
        ["result", "delivered"],
        ["answer", "200"],
        ["body kept", "0 bytes"],
    ]
    receiver.otherwise = Reply(503, (), b"busy")
    ran = command("endpoint", "test", "shop", "--json")
    assert (ran.code, ran.json["ok"], ran.json["status"], ran.json["body_bytes"]) == (1, False, 503, 4)
    assert ran.err == ""
    ran = command("endpoint", "test", "shop")
    assert (ran.code, ran.lines[:2]) == (1, [["result", "failed"], ["answer", "503"]])
    assert ran.err.startswith("error: the endpoint did not take the test request\n")
    assert {arrival.body for arrival in receiver.take(3)} == {b'{"type":"dispatcher.test"}'}
    assert log_length(database) == length


def test_a_test_request_goes_only_where_requests_may_go(command: Command, live: Dispatcher) -> None:
    live.register("shop", "http://127.0.0.1:1/hook")
    for more, code in ((["--open-network", "10.0.0.0/8"], "host_not_allowed"), ([], "connection_refused")):
        ran = command("endpoint", "test", "shop", "--json", *more)
        assert (ran.code, ran.json["error"]) == (1, code)


def test_after_a_rotation_both_secrets_sign_for_a_while(
    command: Command, live: Dispatcher, receiver: Receiver, clock: MovedClock
) -> None:
    old = live.register("shop", receiver.url)
    ran = command("endpoint", "rotate-secret", "shop", "--keep-for", "60", "--json")
    assert (ran.code, ran.err) == (0, "")
    live.test("shop")
    clock.move(61)
    live.test("shop")
    both, alone = receiver.take(2)
    for arrival, moved in ((both, 61), (alone, 0)):
        now = clock.ms / 1000 - moved
        verify_webhook(arrival.body, arrival.headers, ran.json["secret"], now=now)
    verify_webhook(both.body, both.headers, old, now=clock.ms / 1000 - 61)
    assert len(alone.headers["webhook-signature"].split()) == 1
    given = command("endpoint", "rotate-secret", "shop", "--secret", SECRET)
    assert given == (0, "endpoint_id\tshop\n", "")


def test_tenants_are_unseen_until_there_are_others(command: Command, live: Dispatcher) -> None:
    live.register("shop", "http://127.0.0.1:1/hook")
    assert [line[0] for line in command("endpoint", "list").lines] == ["shop"]
    ran = command("endpoint", "add", "shop", "http://127.0.0.1:1/hook", "--tenant", "acme")
    assert ran.code == 0
    assert [line[0] for line in command("endpoint", "list").lines] == ["shop", "acme/shop"]
    assert [line[0] for line in command("endpoint", "list", "--tenant", "default").lines] == ["shop"]
    listed = command("endpoint", "list", "--json").json
    assert [(one["tenant"], one["endpoint_id"]) for one in listed] == [("default", "shop"), ("acme", "shop")]
    assert command("endpoint", "show", "shop", "--tenant", "acme").lines[0] == ["endpoint_id", "acme/shop"]
    live.enqueue("shop", 1, tenant="acme", event_id="one")
    assert command("status", "one").code == 3
    assert ["tenant", "acme"] in command("status", "one", "--tenant", "acme").lines


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["endpoint", "add", "shop", "http://127.0.0.1:2/"], "duplicate_endpoint", 2),
        (["endpoint", "add", "a.b", "http://127.0.0.1:2/"], "invalid_id", 2),
        (["endpoint", "add", "new", "http://10.0.0.1/"], "host_not_allowed", 2),
        (["endpoint", "add", "new", "ftp://127.0.0.1/"], "unsupported_scheme", 2),
        (["endpoint", "add", "new", "http://127.0.0.1/", "--header", "webhook-id: x"], "invalid_headers", 2),
        (["endpoint", "add", "new", "http://127.0.0.1/", "--header", "x"], "usage", 2),
        (["endpoint", "add", "new", "http://127.0.0.1/", "--basic", "x"], "usage", 2),
        (["endpoint", "add", "new", "http://127.0.0.1/", "--basic", "x:y", "--bearer", "z"], "usage", 2),
        (["endpoint", "add", "new", "http://127.0.0.1/", "--policy", "none.json"], "usage", 2),
        (["endpoint", "add", "new", "http://127.0.0.1/", "--policy", "."], "usage", 2),
        (["endpoint", "add", "new", "http://127.0.0.1/", "--policy", "bad.json"], "usage", 2),
        (["endpoint", "add", "new", "http://127.0.0.1/", "--concurrency", "0"], "invalid_argument", 2),
        (["endpoint", "add", "new", "http://127.0.0.1/", "--open-network", "10.0.0.1/8"], "usage", 2),
        (["endpoint", "set", "shop"], "usage", 2),
        (["endpoint", "set", "none", "--method", "PUT"], "unknown_endpoint", 3),
        (["endpoint", "disable", "none"], "unknown_endpoint", 3),
        (["endpoint", "enable", "none", "--replay-dead"], "unknown_endpoint", 3),
        (["endpoint", "enable", "shop"], "not_disabled", 2),
        (["endpoint", "test", "none"], "unknown_endpoint", 3),
        (["endpoint", "rotate-secret", "none"], "unknown_endpoint", 3),
        (["endpoint", "show", "none"], "not_found", 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_refused_has_a_code_and_changes_nothing(
    command: Command,
    live: Dispatcher,
    database: Path,
    tmp_path: Path,
    arguments: list[str],
    code: str,
    exit_code: int,
) -> None:
    live.register("shop", "http://127.0.0.1:1/hook")
    (tmp_path / "bad.json").write_text('{"max_attempts": 3}')
    length = log_length(database)
    ran = command(*arguments, "--json")
    assert (ran.code, ran.error["code"]) == (exit_code, code)
    assert log_length(database) == length


@pytest.mark.parametrize(
    "arguments",
    [
        ["endpoint", "add", "x", "https://x.example"],
        ["endpoint", "set", "storefront", "--method", "PUT"],
        ["endpoint", "enable", "storefront"],
        ["endpoint", "disable", "storefront"],
        ["endpoint", "test", "storefront"],
        ["endpoint", "rotate-secret", "storefront"],
        ["enqueue", "storefront", "x"],
        ["revive", "warehouse", "--all"],
        ["cancel", "pick-201"],
        ["db", "rewrap"],
    ],
    ids=" ".join,
)
def test_a_simulated_log_is_left_to_run(arguments: list[str], example: Path) -> None:
    head = dispatcher("log", "head", at=example).out
    ran = dispatcher(*arguments, "--json", at=example)
    assert (ran.code, ran.error["code"]) == (2, "wrong_kind")
    assert dispatcher("log", "head", at=example).out == head


@pytest.mark.parametrize(
    ("arguments", "package"),
    [
        (["enqueue", "shop", "x"], "cryptography"),
        (["endpoint", "test", "shop"], "aiohttp"),
        (["db", "rewrap"], "cryptography"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_without_the_extra_it_says_what_to_install(
    command: Command, live: Dispatcher, tmp_path: Path, arguments: list[str], package: str
) -> None:
    live.register("shop", "http://127.0.0.1:1/hook")
    absent = tmp_path / "absent"
    absent.mkdir()
    (absent / f"{package}.py").write_text(f"raise ModuleNotFoundError('No {package}', name='{package}')")
    path = f"{absent}:{Path(__file__).parents[2]}"
    ran = command(*arguments, PYTHONPATH=path)
    assert (ran.code, ran.out) == (2, "")
    message, remedy = ran.err.splitlines()
    assert package in message
    assert "pip install 'webhook-dispatcher[live]'" in remedy
    for question in (["endpoint", "list"], ["status", "x"]):
        assert command(*question, PYTHONPATH=path).code in (0, 3), "reading needs none of it"


def test_the_master_key_is_changed_on_the_command_line(command: Command, live: Dispatcher) -> None:
    import base64
    import os

    live.register("shop", "http://127.0.0.1:1/hook")
    enqueue(live, "one", "two")
    key = base64.b64encode(os.urandom(32)).decode()
    ran = command("db", "rewrap", DISPATCHER_MASTER_KEY=key)
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines == [
        ["dispatcher_vault_keys", "1", "1"],
        ["dispatcher_vault_endpoints", "1", "1"],
        ["dispatcher_inbox_keys", "0", "0"],
        ["dispatcher_payload_keys", "2", "2"],
    ]
    again = command("db", "rewrap", "--json", DISPATCHER_MASTER_KEY=key).json
    assert again["dispatcher_payload_keys"] == {"keys": 2, "changed": 0}
    assert command("enqueue", "shop", "x", DISPATCHER_MASTER_KEY=key).code == 0
    refused = command("enqueue", "shop", "x", "--json")
    assert (refused.code, refused.error["code"]) == (4, "master_key_missing")


def test_an_operator_who_simulated_before_is_told_so(tmp_path: Path) -> None:
    run([["register", 0, "a", "https://a.example"]], tmp_path / "dispatcher.db")
    ran = dispatcher("status", "x", "--tenant", "acme", at=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "no tenants" in ran.err
