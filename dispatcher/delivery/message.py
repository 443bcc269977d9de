"""A mail, from what is to be said to the bytes that a server takes."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from hashlib import sha256
from typing import Final

from msgspec import UNSET

from dispatcher.delivery.mailbox import Mailbox
from dispatcher.delivery.refusals import InvalidSubject
from dispatcher.delivery.settings import Payload
from dispatcher.delivery.smtp_settings import MailSettings
from dispatcher.delivery.transport import DEFAULT_DEADLINE, Request

MAX_SUBJECT: Final = 200
DEFAULT_SUBJECT: Final = "{type}: {event_id}"
NO_TYPE: Final = "event"
"""What stands for the type of an event that has none."""
_PLACEHOLDER = re.compile(r"\{(type|event_id)\}")
_MESSAGE_KEY: Final = "Message-Key"


def check_subject(template: str) -> None:
    """Raises InvalidSubject for what is no template of subjects."""
    if not isinstance(template, str) or len(template) > MAX_SUBJECT or not template.isprintable():
        raise InvalidSubject("the subject is too long, or holds what no subject may")
    if "{" in (rest := _PLACEHOLDER.sub("", template)) or "}" in rest:
        raise InvalidSubject("the subject holds a placeholder that is none")


def mail_request(
    *,
    url: str,
    subject: str | None,
    endpoint_id: str,
    event_id: str,
    timestamp: int,
    payload: Payload,
    deadline: float = DEFAULT_DEADLINE,
) -> Request:
    """A mail as a request to the transport: its headers are those of the mail that depend on the event.

    Equal on every attempt but for the date, which is `timestamp`, in seconds since 1970.
    """
    filled = {"type": NO_TYPE if payload.type is UNSET else payload.type, "event_id": event_id}
    headers = [
        ("Subject", _PLACEHOLDER.sub(lambda found: filled[found[1]], subject or DEFAULT_SUBJECT)),
        # Equal event ids of two endpoints are two mails.
        (_MESSAGE_KEY, f"{event_id}.{sha256(endpoint_id.encode()).hexdigest()[:16]}"),
        ("Date", str(timestamp)),
        ("webhook-id", event_id),
    ]
    headers += [header for header in payload.headers if header[0].lower() == "content-type"]
    return Request(method="POST", url=url, headers=tuple(headers), body=payload.body, deadline=deadline)


def message(request: Request, to: Mailbox, settings: MailSettings) -> bytes:
    """The mail. Raises ValueError for what would not stay within its header."""
    given = {name.lower(): value for name, value in request.headers}
    mail = EmailMessage(policy=SMTP if to.local.isascii() else SMTPUTF8)
    mail["From"] = settings.sent_from
    mail["To"] = Address(username=to.local, domain=to.domain)
    mail["Subject"] = given["subject"]
    mail["Date"] = datetime.fromtimestamp(int(given["date"]), UTC)
    mail["Message-ID"] = f"<{given[_MESSAGE_KEY.lower()]}@{settings.sender_domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["webhook-id"] = given["webhook-id"]
    _fill(mail, request.body, given.get("content-type", ""))
    return mail.as_bytes()


def _fill(mail: EmailMessage, body: bytes, content_type: str) -> None:
    """Text as text, JSON too, since it is to be read; anything else as a file."""
    kind = content_type.partition(";")[0].strip().lower()
    main, _, sub = kind.partition("/")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or not (main == "text" or kind in ("", "application/json") or kind.endswith("+json")):
        mail.set_content(body, "application", "octet-stream", filename="event")
        return
    subtype = "html" if (main, sub) == ("text", "html") else "plain"
    # In base64 it arrives byte for byte: line ends and long lines too.
    mail.set_content(body, "text", subtype, params={"charset": "utf-8"})
