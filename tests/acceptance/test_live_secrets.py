"""What is secret is nowhere but in requests: not in the file, not in the log, not in messages."""

from __future__ import annotations

import base64
import logging
import os
import subprocess
import traceback
from pathlib import Path
from typing import Any

import pytest

from dispatcher.delivery.authentication import BearerToken
from dispatcher.errors import DispatcherError, MasterKeyInvalid, MasterKeyMissing
from dispatcher.live import Dispatcher
from dispatcher.log.seal import Keyring
from tests.acceptance.lively import OPEN, QUICK, MovedClock, eventually, eventually_is, rows
from tests.acceptance.receiver import Receiver, Reply

KEY = base64.b64encode(b"canary-of-the-signing-secret-kkk").decode()
CANARIES = {
    "user": "canaryUser",
    "password": "canaryPassword",
    "path": "canaryPath",
    "query": "canaryQuery",
    "token": "canaryToken",
    "header": "canaryHeader",
    "event header": "canaryEventHeader",
    "payload": "canaryPayload",
    "order key": "canaryOrderKey",
    "response": "canaryResponse",
    "secret": KEY,
    "key": "canary-of-the-signing-secret-kkk",
}
LOGIN = base64.b64encode(f"{CANARIES['user']}:{CANARIES['password']}".encode()).decode()


def canary_url(address: str) -> str:
    login = f"{CANARIES['user']}:{CANARIES['password']}"
    return f"http://{login}@{address}/{CANARIES['path']}?key={CANARIES['query']}"


def leaked(text: bytes) -> list[str]:
    """The canaries in a text, in any case."""
    lower = text.lower()
    return [name for name, value in {**CANARIES, "login": LOGIN}.items() if value.lower().encode() in lower]


def everything(database: Path) -> bytes:
    """The bytes of the database's files, and the values in its tables and views."""
    # Read by another process: one that closes a file which it has open elsewhere gives up its locks on it.
    files = subprocess.run(["cat", *sorted(database.parent.iterdir())], capture_output=True, check=True)
    return files.stdout + contents(database)


def contents(database: Path) -> bytes:
    names = rows(database, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    return repr([rows(database, f"SELECT * FROM {name}") for (name,) in names]).encode()


def use(live: Dispatcher, receiver: Receiver, clock: MovedClock) -> None:
    """Everything that a secret goes through: failures, answers, revival, rotation, a closed port."""
    live.register(
        "shop",
        canary_url(receiver.address),
        secret=f"whsec_{KEY}",
        headers=[("X-Canary", CANARIES["header"])],
        policy=QUICK,
    )
    live.register("token", receiver.url, auth=BearerToken(token=CANARIES["token"]))
    live.register("closed", canary_url("127.0.0.2:1"))
    live.register("unknown", canary_url("no-such-host.invalid"))
    for endpoint_id in ("shop", "token", "closed", "unknown"):
        live.enqueue(
            endpoint_id,
            {"name": CANARIES["payload"]},
            event_id=f"at-{endpoint_id}",
            headers=[("X-Event", CANARIES["event header"])],
            order_key=CANARIES["order key"],
        )
    body = CANARIES["response"].encode() * 10
    receiver.answer(
        "at-shop", Reply(503, (("Retry-After", CANARIES["response"]),), body), Reply(404, (), body), 200
    )
    with live.worker():
        for endpoint_id in ("closed", "unknown"):
            _until_attempted(live, endpoint_id)
        eventually_is(live, "at-shop", "pending", attempts=1)
        clock.move(10)
        eventually_is(live, "at-shop", "dead", attempts=2)
        live.rotate_secret("shop")
        live.update("shop", url=canary_url(receiver.address) + "&more=1")
        live.revive("shop")
        eventually_is(live, "at-shop", "delivered", attempts=1)


def _until_attempted(live: Dispatcher, endpoint_id: str) -> None:
    eventually(lambda: live.status(endpoint_id, f"at-{endpoint_id}")["attempts"])


@pytest.mark.parametrize("protected", [True, False])
def test_no_secret_is_in_the_file_nor_in_what_was_logged(
    database: Path, receiver: Receiver, clock: MovedClock, caplog: pytest.LogCaptureFixture, protected: bool
) -> None:
    keyring = Keyring([os.urandom(32)] if protected else [])
    caplog.set_level(logging.DEBUG)
    with Dispatcher(database, keyring=keyring, clock=clock, open_networks=OPEN) as live:
        use(live, receiver, clock)
        assert leaked(everything(database)) == [], "while it is open"
        shown = [live.status("shop", "at-shop"), live.history("shop", "at-shop"), live.dead_letters("shop")]
        assert leaked(repr(shown).encode()) == []
    assert leaked(everything(database)) == [], "after it was closed"
    sent = repr(receiver.seen).encode()
    missing = (
        set(CANARIES) - {"order key", "response", "secret", "key", "user", "password"} - set(leaked(sent))
    )
    assert not missing, "they went out, and so could have stayed"
    messages = [repr(vars(record)) + record.getMessage() for record in caplog.records]
    assert leaked("\n".join(messages).encode()) == []
    assert "url" in repr(rows(database, "SELECT data FROM dispatcher_log"))
    assert receiver.address in repr(rows(database, "SELECT url FROM dispatcher_endpoints"))


def test_no_refusal_repeats_what_was_refused(
    live: Dispatcher, receiver: Receiver, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    live.register("shop", canary_url(receiver.address), secret=f"whsec_{KEY}")
    live.enqueue("shop", CANARIES["payload"], event_id="evt")
    secret, url = f"whsec_{KEY}", canary_url(receiver.address)
    header = (CANARIES["header"], CANARIES["token"] + "\r\n")
    calls: list[Any] = [
        lambda: live.register("shop", url, secret=secret),
        lambda: live.register("new", canary_url("10.0.0.1")),
        lambda: live.register("new", canary_url("a b")),
        lambda: live.register("new", url.replace("http", "gopher")),
        lambda: live.register("new", url, secret=secret + "!"),
        lambda: live.register("new", url, secret=KEY[:8]),
        lambda: live.register("new", url, headers=[("X-A", header[1])]),
        lambda: live.register("new", url, auth=BearerToken(token=CANARIES["token"] + " ")),
        lambda: live.register("new", url, auth=CANARIES["token"]),  # type: ignore[arg-type]
        lambda: live.register("new", url, method=CANARIES["token"]),  # type: ignore[arg-type]
        lambda: live.enqueue("shop", CANARIES["payload"] + "other", event_id="evt"),
        lambda: live.enqueue("shop", [CANARIES["payload"], object()]),
        lambda: live.enqueue("shop", [CANARIES["payload"], float("nan")]),
        lambda: live.enqueue("shop", CANARIES["payload"] * 30_000),
        lambda: live.enqueue("shop", CANARIES["payload"] + "\ud800"),
        lambda: live.enqueue("shop", 1, headers=[("X-A", header[1])]),
        lambda: live.enqueue("shop", 1, event_id=CANARIES["payload"] + " "),
        lambda: live.rotate_secret("shop", secret=secret + "!"),
    ]
    for call in calls:
        with pytest.raises(DispatcherError) as refused:
            call()
        error = refused.value
        told = [str(error), repr(error), error.remedy, repr(error.__cause__)]
        told.append("".join(traceback.format_exception_only(error)))
        if not error.__suppress_context__:
            told.append(repr(error.__context__))
        assert leaked("\n".join(told).encode()) == []
    assert leaked("\n".join(record.getMessage() for record in caplog.records).encode()) == []
    assert leaked(everything(database)) == []


@pytest.mark.parametrize("other", [[], [os.urandom(32)]])
def test_under_another_master_key_nothing_is_opened_and_nothing_is_sent(
    database: Path, receiver: Receiver, clock: MovedClock, other: list[bytes]
) -> None:
    master = os.urandom(32)
    with Dispatcher(database, keyring=Keyring([master]), clock=clock, open_networks=OPEN) as live:
        live.register("shop", receiver.url)
        live.enqueue("shop", 1, event_id="one")
    before = contents(database)
    with pytest.raises(MasterKeyMissing):
        Dispatcher(database, keyring=Keyring(other), clock=clock, open_networks=OPEN)
    assert contents(database) == before
    assert receiver.seen == []
    keys = Keyring([os.urandom(32), master])
    with Dispatcher(database, keyring=keys, clock=clock, open_networks=OPEN) as live, live.worker():
        assert receiver.next().event == "one"
        eventually_is(live, "one", "delivered")


def test_the_master_key_comes_from_the_environment(
    database: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPATCHER_MASTER_KEY", base64.b64encode(os.urandom(32)).decode())
    with Dispatcher(database, open_networks=OPEN) as live:
        live.register("shop", receiver.url)
    monkeypatch.delenv("DISPATCHER_MASTER_KEY")
    with pytest.raises(MasterKeyMissing):
        Dispatcher(database)
    monkeypatch.setenv("DISPATCHER_MASTER_KEY", "canaryPassword")
    with pytest.raises(MasterKeyInvalid) as refused:
        Dispatcher(database)
    assert leaked(str(refused.value).encode()) == []
