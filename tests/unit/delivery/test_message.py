"""Mails, as they are written."""

from __future__ import annotations

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dispatcher.delivery.mailbox import check_mail_url
from dispatcher.delivery.message import check_subject, mail_request, message
from dispatcher.delivery.refusals import InvalidSubject
from dispatcher.delivery.settings import Payload
from dispatcher.delivery.smtp_settings import MailSettings
from dispatcher.delivery.transport import Request

SETTINGS = MailSettings(host="h", port=25, sender="ops@sender.example", sender_name="Zoë, of ops")
URL = "mailto:you@shop.example"
HEADERS = {"from", "to", "subject", "date", "message-id", "auto-submitted", "webhook-id", "mime-version"}
HEADERS |= {"content-type", "content-transfer-encoding"}


def request_of(body: bytes = b"{}", headers: Any = (), **changed: Any) -> Request:
    given: dict[str, Any] = {"url": URL, "subject": None, "endpoint_id": "default/ops", "event_id": "evt_1"}
    given |= {"timestamp": 1_700_000_000, "payload": Payload(body=body, headers=headers, type="invoice.paid")}
    return mail_request(**given | changed)


def written(request: Request) -> EmailMessage:
    raw = message(request, check_mail_url(request.url), SETTINGS)
    parsed = message_from_bytes(raw, policy=default)
    assert isinstance(parsed, EmailMessage)
    assert {name.lower() for name in parsed} - {"content-disposition"} == HEADERS
    return parsed


def test_its_headers_say_who_what_and_when() -> None:
    mail = written(request_of())
    assert mail["to"] == "you@shop.example"
    assert mail["from"] == '"Zoë, of ops" <ops@sender.example>'
    assert mail["subject"] == "invoice.paid: evt_1"
    assert mail["date"] == "Tue, 14 Nov 2023 22:13:20 +0000"
    assert mail["auto-submitted"] == "auto-generated"
    assert mail["webhook-id"] == "evt_1"


def test_its_id_is_the_same_on_every_attempt_and_another_for_each_endpoint() -> None:
    first, later, other = (
        written(request_of(**changed))["message-id"]
        for changed in ({}, {"timestamp": 1_700_009_999}, {"endpoint_id": "tenant/ops"})
    )
    assert first == later != other
    assert first.startswith("<evt_1.")
    assert first.endswith("@sender.example>")


@pytest.mark.parametrize(
    ("body", "content_type", "sent_as"),
    [
        (b'{"n": "\xc3\xa9"}', None, "text/plain"),
        (b'{"n":1}\n', "application/json", "text/plain"),
        (b'{"n":1}', "application/cloudevents+json; charset=utf-8", "text/plain"),
        (b"Dear \xc3\xa9,\r\n\r\n.\r\nyours\n", "text/plain", "text/plain"),
        (b"<p>" + b"x" * 5000, "text/html; charset=utf-8", "text/html"),
        (b"a,b", "text/csv", "text/plain"),
        (b"", None, "text/plain"),
        (b"\xff\x00", None, "application/octet-stream"),
        (b"PK", "application/zip", "application/octet-stream"),
    ],
)
def test_text_and_json_are_read_and_the_rest_is_a_file_byte_for_byte(
    body: bytes, content_type: str | None, sent_as: str
) -> None:
    headers = () if content_type is None else (("content-type", content_type),)
    mail = written(request_of(body, headers))
    assert mail.get_content_type() == sent_as
    assert mail.get_payload(decode=True) == body
    assert mail.is_attachment() == (sent_as == "application/octet-stream")


def test_its_subject_is_the_endpoints_with_what_is_the_events() -> None:
    assert written(request_of(subject="[ops] {type} {event_id} {type}"))["subject"] == (
        "[ops] invoice.paid evt_1 invoice.paid"
    )
    untyped = Payload(body=b"{}")
    assert written(request_of(payload=untyped))["subject"] == "event: evt_1"
    assert written(request_of(subject="Größe 😱 {event_id}"))["subject"] == "Größe 😱 evt_1"


@pytest.mark.parametrize(
    "subject", ["x\r\nBcc: a@b.c", "x\n", "{other}", "{", "}", "{type!r}", "x" * 201, "\x00", 7]
)
def test_a_subject_that_breaks_a_line_or_asks_for_more_is_refused(subject: Any) -> None:
    with pytest.raises(InvalidSubject):
        check_subject(subject)


@given(subject=st.text(max_size=250), body=st.binary(max_size=200), named=st.text(max_size=20))
def test_whatever_the_subject_and_the_body_no_header_is_added(subject: str, body: bytes, named: str) -> None:
    try:
        check_subject(subject)
        mail = written(request_of(body, (("Content-Type", f"text/plain; x={named}"),), subject=subject))
    except (InvalidSubject, ValueError):
        return
    assert mail.get_payload(decode=True) == body


def test_what_was_stored_before_there_was_a_rule_breaks_no_line() -> None:
    request = request_of()
    headers = tuple((n, "x\r\nBcc: a@b.c") if n == "Subject" else (n, v) for n, v in request.headers)
    with pytest.raises(ValueError, match="linefeed"):
        message(replace(request, headers=headers), check_mail_url(URL), SETTINGS)
