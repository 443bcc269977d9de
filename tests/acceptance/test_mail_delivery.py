"""Events that are delivered by mail."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dispatcher.delivery.authentication import BearerToken
from dispatcher.delivery.refusals import InvalidMailbox, InvalidSubject, MailNotConfigured, NotOfThisKind
from dispatcher.delivery.smtp_settings import SENDER_VARIABLE, URL_VARIABLE, MailSettings
from dispatcher.errors import Refused
from dispatcher.live import Dispatcher
from dispatcher.worker.worker import MAILS_AT_ONCE
from tests.acceptance.conftest import Command
from tests.acceptance.lively import OPEN, QUICK, MovedClock, attempts, eventually, eventually_is, rows, state
from tests.acceptance.receiver import Receiver
from tests.acceptance.test_live_secrets import everything
from tests.mailserver import SENDER, MailServer

TO = "mailto:you.there@shop.example"
HTTP = "http://127.0.0.1:1/"


@pytest.fixture(autouse=True)
def no_server_of_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (URL_VARIABLE, SENDER_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[MailServer]:
    with MailServer() as server:
        yield server


@pytest.fixture
def mailing(database: Path, clock: MovedClock, server: MailServer) -> Iterator[Dispatcher]:
    """A dispatcher with a mail server, and an endpoint `shop` of mail."""
    with Dispatcher(database, clock=clock, open_networks=OPEN, mail=server.settings()) as live:
        live.register("shop", TO, policy=QUICK, subject="[shop] {type} {event_id}")
        yield live


def test_an_event_is_a_mail(mailing: Dispatcher, server: MailServer) -> None:
    with mailing.worker():
        mailing.enqueue("shop", {"n": 1}, event_id="one", type="invoice.paid")
        eventually_is(mailing, "one", "delivered", attempts=1)
    (mail,) = server.taken
    assert (mail.sender, mail.recipients) == (SENDER, ["you.there@shop.example"])
    assert mail.message["subject"] == "[shop] invoice.paid one"
    assert mail.text == '{"n":1}'
    assert attempts(mailing, "one") == [(250, None)]


def test_it_has_the_same_id_on_every_attempt_and_after_revival(
    mailing: Dispatcher, server: MailServer, clock: MovedClock
) -> None:
    server.replies[""] = ["250 ok"]
    ids = []
    with mailing.worker():
        mailing.enqueue("shop", 1, event_id="one")
        ids.append(server.take(1)[0].message["message-id"])
        eventually_is(mailing, "one", "delivered")
        server.replies["you.there@shop.example"] = ["450 busy", "550 gone"]
        mailing.enqueue("shop", 1, event_id="two")
        eventually_is(mailing, "two", "pending", attempts=1)
        assert mailing.status("shop", "two")["last_error"] == "smtp_4yz"
        clock.move(10)
        eventually_is(mailing, "two", "dead", attempts=2)
        assert attempts(mailing, "two") == [(450, "smtp_4yz"), (550, "smtp_5yz")]
        mailing.revive("shop", ["two"])
        ids.append(server.take(2)[1].message["message-id"])
    assert ids[0].startswith("<one.")
    assert ids[1].startswith("<two.")


def test_a_mail_dropped_after_its_end_is_sent_again_under_the_same_id(
    mailing: Dispatcher, server: MailServer, clock: MovedClock
) -> None:
    server.replies[""] = ["451 try later"]
    with mailing.worker():
        mailing.enqueue("shop", 1, event_id="one")
        eventually_is(mailing, "one", "pending", attempts=1)
        clock.move(10)
        eventually_is(mailing, "one", "delivered", attempts=2)
    assert [mail.message["webhook-id"] for mail in server.taken] == ["one"]


def test_recipients_fail_each_for_themselves(mailing: Dispatcher, server: MailServer) -> None:
    server.replies["bad@shop.example"] = ["550 nobody"]
    mailing.register("bad", "mailto:bad@shop.example")
    mailing.register("unicode", "mailto:zoë@exämple.org")
    with mailing.worker():
        assert mailing.publish("invoice.paid", 1, event_id="one").endpoints == ("shop", "bad", "unicode")
        eventually(lambda: state(mailing, "one", "bad") == "dead")
        eventually(lambda: state(mailing, "one") == state(mailing, "one", "unicode") == "delivered")
    assert {mail.recipients[0] for mail in server.taken} == {
        "you.there@shop.example",
        "zoë@xn--exmple-cua.org",
    }


@contextmanager
def hanging_server() -> Iterator[MailSettings]:
    """Takes connections, and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        port = listening.getsockname()[1]
        yield MailSettings(host="127.0.0.1", port=port, sender=SENDER, security="none")


@pytest.mark.parametrize(
    ("concurrency", "per_tenant", "mailed"),
    [(2 * MAILS_AT_ONCE, 64, MAILS_AT_ONCE), (4, 64, 2), (64, 2, 3)],
    ids=["32", "half of the worker's", "half of each tenant's"],
)
def test_a_mail_server_that_hangs_delays_nothing_else(
    database: Path, clock: MovedClock, receiver: Receiver, concurrency: int, per_tenant: int, mailed: int
) -> None:
    mails = MAILS_AT_ONCE + 10
    with (
        hanging_server() as settings,
        Dispatcher(database, clock=clock, open_networks=OPEN, mail=settings) as live,
    ):
        for n in range(mails):
            live.register(f"mail-{n}", TO, tenant=f"tenant-{n % 3}")
            live.enqueue(f"mail-{n}", 1, event_id="hangs", tenant=f"tenant-{n % 3}")
        live.register("shop", receiver.url, tenant="tenant-0")
        with live.worker(concurrency=concurrency, per_tenant=per_tenant, grace=0):
            in_flight = "SELECT count(*) FROM dispatcher_claims"
            eventually(lambda: rows(database, in_flight) == [(mailed,)])
            for n in range(5):
                live.enqueue("shop", n, event_id=f"evt-{n}", tenant="tenant-0")
            assert [arrival.event for arrival in receiver.take(5)] == [f"evt-{n}" for n in range(5)]
            eventually(lambda: live.status("shop", "evt-4", tenant="tenant-0")["state"] == "delivered")
            assert rows(database, in_flight) == [(mailed,)]
    released = "SELECT count(*) FROM dispatcher_log WHERE type = 'AttemptReleased'"
    assert rows(database, released) == [(mailed,)]


def test_a_worker_without_a_mail_server_says_so_and_leaves_mails_to_others(
    mailing: Dispatcher,
    live: Dispatcher,
    receiver: Receiver,
    server: MailServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    live.register("http", receiver.url)
    with caplog.at_level(logging.WARNING, "dispatcher"), live.worker():
        mailing.enqueue("shop", 1, event_id="one")
        live.enqueue("http", 1, event_id="two")
        receiver.next()
        eventually(lambda: state(live, "two", "http") == "delivered")
        assert attempts(live, "one") == []
    assert [record.getMessage() for record in caplog.records].count(
        "endpoints of mail are left to other workers: no mail server is configured"
    ) == 1
    with mailing.worker():
        assert server.take()[0].message["webhook-id"] == "one"


def test_nothing_but_the_vault_knows_the_address(
    mailing: Dispatcher, server: MailServer, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.replies["you.there@shop.example"] = ["550 no you.there@shop.example here"]
    with mailing.worker():
        mailing.enqueue("shop", 1, event_id="one")
        eventually_is(mailing, "one", "dead")
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("dispatcher")]
    assert ours
    assert "you.there" not in "".join(ours)
    assert "you.there" not in repr(mailing.status("shop", "one")) + repr(mailing.history("shop", "one"))
    assert rows(database, "SELECT url FROM dispatcher_endpoints") == [("mailto:",)]
    mailing.close()
    assert b"you.there" not in everything(database)


def test_it_has_no_secret_and_takes_only_the_settings_of_its_kind(mailing: Dispatcher) -> None:
    assert mailing.register("ops", TO) == ""
    wrong: list[dict[str, Any]] = [
        {"method": "PUT"},
        {"headers": [("X-A", "b")]},
        {"auth": BearerToken(token="t")},
        {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
        {"disable_when_gone": True},
    ]
    for settings in wrong:
        with pytest.raises(NotOfThisKind):
            mailing.register("other", TO, **settings)
        if "secret" not in settings:
            with pytest.raises(NotOfThisKind):
                mailing.update("ops", **settings)
    with pytest.raises(NotOfThisKind):
        mailing.rotate_secret("ops")
    with pytest.raises(NotOfThisKind):
        mailing.register("http", HTTP, subject="x")
    mailing.register("http", HTTP)
    changes: list[tuple[str, dict[str, Any]]]
    changes = [("http", {"url": TO}), ("ops", {"url": HTTP}), ("http", {"subject": "x"})]
    for endpoint_id, change in changes:
        with pytest.raises(NotOfThisKind):
            mailing.update(endpoint_id, **change)
    with pytest.raises(Refused, match="unknown endpoint"):
        mailing.rotate_secret("nobody")


def test_an_address_or_a_subject_that_is_none_is_refused(mailing: Dispatcher) -> None:
    with pytest.raises(InvalidMailbox):
        mailing.register("other", "mailto:a@shop.example?bcc=b@shop.example")
    with pytest.raises(InvalidSubject):
        mailing.register("other", TO, subject="x\r\nBcc: a@b.c")
    with pytest.raises(InvalidSubject):
        mailing.update("shop", subject="{url}")


def test_its_address_and_its_subject_can_be_changed(mailing: Dispatcher, server: MailServer) -> None:
    mailing.update("shop", url="mailto:other@shop.example", subject="{event_id}!")
    with mailing.worker():
        mailing.enqueue("shop", 1, event_id="one")
        (mail,) = server.take()
    assert (mail.recipients, mail.message["subject"]) == (["other@shop.example"], "one!")


def test_a_test_is_a_mail(mailing: Dispatcher, server: MailServer, live: Dispatcher) -> None:
    assert mailing.test("shop")["ok"]
    (mail,) = server.take()
    assert mail.text == '{"type":"dispatcher.test"}'
    assert mail.message["subject"].startswith("[shop] dispatcher.test test_")
    server.replies[""] = ["451 not now"]
    found = mailing.test("shop", as_tenant=True)
    assert (found["ok"], found["status"], found["error"]) == (False, 451, "smtp_4yz")
    with pytest.raises(MailNotConfigured) as missing:
        live.test("shop")
    assert URL_VARIABLE in missing.value.remedy


def test_on_the_command_line(command: Command, live: Dispatcher, server: MailServer) -> None:
    added = command("endpoint", "add", "ops", TO, "--subject", "{type}!")
    assert (added.code, added.lines) == (0, [["endpoint_id", "ops"]])
    assert command("enqueue", "ops", "hello", "--type", "greeting", "--content-type", "text/plain").code == 0
    without = command("work", "--until-idle")
    assert (without.code, "no mail server is configured" in without.err) == (0, True)
    environment = {URL_VARIABLE: f"smtp://127.0.0.1:{server.port}?starttls=off", SENDER_VARIABLE: SENDER}
    assert command("work", "--until-idle", **environment).code == 0
    (mail,) = server.taken
    assert (mail.message["subject"], mail.text.strip()) == ("greeting!", "hello")
    assert command("endpoint", "test", "ops", **environment).code == 0
    wrong = command("work", "--until-idle", **{URL_VARIABLE: "smtp://u:s3cr3t@h?x", SENDER_VARIABLE: SENDER})
    assert (wrong.code, "s3cr3t" in wrong.err) == (2, False)
