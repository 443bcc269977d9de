"""Mails to real servers, good and bad."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.delivery.mail import MailTransport
from dispatcher.delivery.message import mail_request
from dispatcher.delivery.settings import Payload
from dispatcher.delivery.smtp_settings import MailSettings
from dispatcher.delivery.transport import Answer, tenant_code
from tests.mailserver import SENDER, MailServer
from tests.unit.delivery.certificates import make_contexts
from tests.unit.delivery.receivers import BRIEF, PATIENT, Connection, Receiver, Script

TO = "mailto:you@shop.example"


@pytest.fixture
def server() -> Iterator[MailServer]:
    with MailServer() as server:
        yield server


def send(
    settings: MailSettings, url: str = TO, deadline: float = PATIENT, ssl_context: Any = None, **changed: Any
) -> Answer:
    given: dict[str, Any] = {"subject": None, "endpoint_id": "default/ops", "event_id": "evt_1"}
    given |= {"timestamp": 1_700_000_000, "payload": Payload(body=b'{"n":1}')}
    request = mail_request(url=url, deadline=deadline, **given)

    async def sent() -> Answer:
        transport = MailTransport(settings, ssl_context=ssl_context)
        answer = await transport.send(replace(request, **changed))
        await transport.close()
        assert await transport.send(request) == Answer(status=0, error="aborted")
        return answer

    return asyncio.run(sent())


def test_a_mail_that_is_taken_is_a_success(server: MailServer) -> None:
    assert send(server.settings()) == Answer(status=250, outcome="success")
    (mail,) = server.taken
    assert (mail.sender, mail.recipients, mail.text) == (SENDER, ["you@shop.example"], '{"n":1}')


@pytest.mark.parametrize("to", ["you@shop.example", ""], ids=["at RCPT", "at the end"])
@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("450 busy", Answer(status=450, error="smtp_4yz", outcome="retryable")),
        ("421 going down", Answer(status=421, error="smtp_4yz", outcome="retryable")),
        ("550 nobody here", Answer(status=550, error="smtp_5yz", outcome="permanent")),
        ("552 too long", Answer(status=552, error="smtp_5yz", outcome="permanent")),
    ],
)
def test_what_the_server_says_of_it_decides(server: MailServer, to: str, reply: str, answer: Answer) -> None:
    server.replies[to] = [reply]
    assert send(server.settings()) == answer
    assert tenant_code(answer.error) == answer.error
    assert server.taken == []


def test_starttls_is_wanted_and_checked(tmp_path: Path) -> None:
    serving, trusting = make_contexts(tmp_path, "127.0.0.1")
    with MailServer(tls=serving) as server:
        assert send(server.settings(security="starttls")) == Answer(status=0, error="tls_failed")
        assert server.taken == []
        assert send(server.settings(security="starttls"), ssl_context=trusting).outcome == "success"
        assert server.taken[0].over_tls
        assert (
            send(server.settings(security="starttls_if_offered"), ssl_context=trusting).outcome == "success"
        )
        assert server.taken[1].over_tls
    serving, trusting = make_contexts(tmp_path, "mail.example")
    with MailServer(tls=serving) as server:
        answer = send(server.settings(security="starttls"), ssl_context=trusting)
        assert answer == Answer(status=0, error="tls_failed"), "the name in the certificate is another one"


def test_without_starttls_nothing_is_sent_where_it_is_wanted(server: MailServer) -> None:
    assert send(server.settings(security="starttls")) == Answer(status=0, error="tls_failed")
    assert server.taken == []
    assert send(server.settings(security="starttls_if_offered")).outcome == "success"


def test_it_logs_in(tmp_path: Path) -> None:
    serving, trusting = make_contexts(tmp_path, "127.0.0.1")
    with MailServer(tls=serving, login=("user", "right")) as server:
        given = {"security": "starttls", "username": "user"}
        answer = send(server.settings(**given, password="right"), ssl_context=trusting)
        assert answer.outcome == "success"
        assert server.taken[0].login == "user"
        refused = Answer(status=0, error="mail_login_refused")
        assert send(server.settings(**given, password="wrong"), ssl_context=trusting) == refused
        assert send(server.settings(security="starttls"), ssl_context=trusting) == refused
        assert tenant_code(refused.error) == "mail_failed"


def test_addresses_beyond_ascii_arrive_where_the_server_knows_them(server: MailServer) -> None:
    assert send(server.settings(), "mailto:zoë@exämple.org").outcome == "success"
    assert server.taken[0].recipients == ["zoë@xn--exmple-cua.org"]
    assert server.taken[0].message["to"] == "zoë@xn--exmple-cua.org"
    with MailServer(smtputf8=False) as old:
        assert send(old.settings(), "mailto:zoe@exämple.org").outcome == "success"
        answer = send(old.settings(), "mailto:zoë@exämple.org")
        assert answer == Answer(status=0, error="smtputf8_missing", outcome="permanent")


def test_what_was_stored_wrong_is_never_sent(server: MailServer) -> None:
    assert send(server.settings(), "mailto:nobody") == Answer(
        status=0, error="invalid_url", outcome="permanent"
    )
    headers = (("Subject", "x\r\nBcc: a@b.c"), ("Message-Key", "k"), ("Date", "1"), ("webhook-id", "e"))
    answer = send(server.settings(), headers=headers)
    assert answer == Answer(status=0, error="invalid_headers", outcome="permanent")
    assert server.taken == []


def test_where_nobody_listens_it_is_refused() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        settings = MailSettings(host="127.0.0.1", port=free.getsockname()[1], sender=SENDER, security="none")
        assert send(settings) == Answer(status=0, error="connection_refused")


def talking(*replies: bytes, then: Script | None = None) -> Script:
    """Says each reply, the first one unasked, the others to a line each."""

    async def script(connection: Connection) -> None:
        for number, reply in enumerate(replies):
            if number:
                await connection.reader.readline()
            await connection.write(reply)
        if then is not None:
            await then(connection)

    return script


async def silent(connection: Connection) -> None:
    await connection.until_left()


async def drop_after_the_dot(connection: Connection) -> None:
    while await connection.reader.readline() != b".\r\n":
        pass


async def endless(connection: Connection) -> None:
    while True:
        await connection.write(b"220-" + b"x" * 400 + b"\r\n")


async def endless_line(connection: Connection) -> None:
    while True:
        await connection.write(b"x" * 4096)


GREETED = (b"220 hello\r\n", b"250-here\r\n250 8BITMIME\r\n")
HEARD = (*GREETED, b"250 sender ok\r\n", b"250 recipient ok\r\n", b"354 go on\r\n")


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (silent, "deadline"),
        (talking(*GREETED, then=silent), "deadline"),
        (talking(*HEARD, then=silent), "deadline"),
        (endless, "mail_server_refused"),
        (endless_line, "mail_server_refused"),
        (talking(b"garbage\r\n"), "mail_server_refused"),
        (talking(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "mail_server_refused"),
        (talking(b"\xff\xfe\r\n"), "mail_server_refused"),
        (talking(b"554 go away\r\n"), "mail_server_refused"),
        (talking(), "connection_failed"),
        (talking(*GREETED), "connection_closed"),
        (talking(*HEARD, then=drop_after_the_dot), "connection_closed"),
        (talking(*HEARD[:2], b"999 what\r\n"), "invalid_response"),
        (talking(*HEARD[:2], b"530 log in first\r\n"), "mail_login_refused"),
        (talking(*HEARD[:4], b"250 what mail?\r\n"), "invalid_response"),
    ],
)
def test_a_server_that_is_broken_is_no_answer_and_worth_another_try(script: Script, error: str) -> None:
    async def send_to_it() -> Answer:
        async with Receiver(script) as receiver:
            settings = MailSettings(host="127.0.0.1", port=receiver.port, sender=SENDER, security="none")
            deadline = BRIEF if error == "deadline" else PATIENT
            answer = await asyncio.to_thread(send, settings, deadline=deadline)
            await receiver.left.wait()
            return answer

    assert asyncio.run(send_to_it()) == Answer(status=0, error=error)


@pytest.mark.parametrize("code", [250, 251, 252, 299])
def test_once_it_is_taken_nobody_waits_for_the_server(code: int) -> None:
    """Any 2yz will do, for the recipient too; and there is no good-bye that a shutdown could cut off."""

    async def send_to_it() -> Answer:
        async def taking(connection: Connection) -> None:
            await drop_after_the_dot(connection)
            await connection.write(b"%d taken\r\n" % code)
            await connection.until_left()

        heard = (*HEARD[:3], b"%d recipient will do\r\n" % code, HEARD[4])
        async with Receiver(talking(*heard, then=taking)) as receiver:
            settings = MailSettings(host="127.0.0.1", port=receiver.port, sender=SENDER, security="none")
            return await asyncio.to_thread(send, settings, deadline=60)

    assert asyncio.run(send_to_it()) == Answer(status=code, outcome="success")


def test_dots_arrive_as_they_are(server: MailServer) -> None:
    body = b".\n..\n.x\r\n\r\n.\r\n"
    assert send(server.settings(), body=body).outcome == "success"
    assert server.taken[0].message.get_payload(decode=True) == body
