"""Mails, to the operator's server, which may be slow, broken or wrongly set up."""

from __future__ import annotations

import asyncio
import ssl
from functools import lru_cache

import aiosmtplib
from aiosmtplib import SMTP

from dispatcher.delivery.mailbox import Mailbox, check_mail_url
from dispatcher.delivery.message import message
from dispatcher.delivery.refusals import UrlRefused
from dispatcher.delivery.smtp_settings import MailSettings
from dispatcher.delivery.transport import Answer, Request, never_sent, no_answer

# RFC 4954: the server wants another login, or more of one. Not a word about this mail.
_OF_THE_LOGIN = frozenset({530, 534, 535, 538})
MAILBOXES_KNOWN = 4096


class MailTransport:
    """Sends each mail over a connection of its own; of one event loop.

    What the server says of the mail itself, from MAIL FROM on, is the answer. What it says before is the
    operator's business, and the mail waits for another try.
    """

    def __init__(self, settings: MailSettings, *, ssl_context: ssl.SSLContext | None = None) -> None:
        """The context for operators with authorities of their own."""
        self._settings = settings
        self._ssl = ssl_context
        self._mailbox = lru_cache(maxsize=MAILBOXES_KNOWN)(check_mail_url)
        self._closed = False

    async def send(self, request: Request) -> Answer:
        """What came of a mail; raises nothing but CancelledError."""
        if self._closed:
            return no_answer("aborted")
        try:
            to = self._mailbox(request.url)
            mail = message(request, to, self._settings)
        except UrlRefused as refused:
            return never_sent(refused.code)
        except ValueError:
            return never_sent("invalid_headers")
        tls = self._settings.security == "tls"
        client = SMTP(
            hostname=self._settings.host,
            port=self._settings.port,
            use_tls=tls,
            start_tls=False,
            tls_context=self._ssl,
            # The name of this machine is nobody's business.
            local_hostname=self._settings.sender_domain,
            timeout=None,
        )
        try:
            async with asyncio.timeout(request.deadline):
                await self._open(client)
                return await self._hand_over(client, to, mail)
        # Whatever a broken server provokes inside the client is its answer, not our crash.
        except Exception as error:
            return no_answer(_code(error))
        finally:
            _leave(client)

    async def close(self) -> None:
        self._closed = True

    async def _open(self, client: SMTP) -> None:
        """Connected, over TLS as far as is wanted, and logged in."""
        await client.connect()
        security = self._settings.security
        if security in ("starttls", "starttls_if_offered"):
            await client.ehlo()
            if client.supports_extension("starttls"):
                await client.starttls(tls_context=self._ssl)
            elif security == "starttls":
                raise ssl.SSLError("the server offers no STARTTLS")
        if self._settings.username is not None:
            await client.login(self._settings.username, self._settings.password)

    async def _hand_over(self, client: SMTP, to: Mailbox, mail: bytes) -> Answer:
        await client.ehlo()
        options = ""
        if not to.local.isascii():
            if not client.supports_extension("smtputf8"):
                return never_sent("smtputf8_missing")
            options = " SMTPUTF8 BODY=8BITMIME"
        said = (f"MAIL FROM:<{self._settings.sender}>{options}", f"RCPT TO:<{to.address}>")
        for command in said:
            answered = await client.execute_command(command.encode())
            if answered.code // 100 != 2:
                return _refused(answered.code)
        try:
            answered = await client.data(mail)
        except aiosmtplib.SMTPDataError as refused:
            # The library knows 250 alone as a success; as an error that is no answer to the end of the mail.
            if refused.code // 100 != 2 or refused.code == aiosmtplib.SMTPStatus.completed:
                return _refused(refused.code)
            return Answer(status=refused.code, outcome="success")
        return Answer(status=answered.code, outcome="success")


def _leave(client: SMTP) -> None:
    """Say good-bye and let go of the connection at once, whatever the server thinks of that."""
    transport = client.transport
    if isinstance(transport, asyncio.WriteTransport):
        transport.write(b"QUIT\r\n")
        transport.abort()
    client.close()


def _refused(code: int) -> Answer:
    """What a reply to the mail itself says. Of no kind that a reply can have, it is none."""
    if code in _OF_THE_LOGIN:
        return no_answer("mail_login_refused")
    if 400 <= code <= 499:
        return Answer(status=code, error="smtp_4yz", outcome="retryable")
    if 500 <= code <= 599:
        return Answer(status=code, error="smtp_5yz", outcome="permanent")
    return no_answer("invalid_response")


def _code(error: Exception) -> str:
    """An operator's code for what went wrong before the server said anything of the mail."""
    match error:
        case TimeoutError():
            return "deadline"
        case aiosmtplib.SMTPAuthenticationError():
            return "mail_login_refused"
        case aiosmtplib.SMTPResponseException(code=code) if code in _OF_THE_LOGIN:
            return "mail_login_refused"
        case aiosmtplib.SMTPServerDisconnected():
            return "connection_closed"
        case OSError() if _has_cause(error, ssl.SSLError):
            return "tls_failed"
        case OSError() if _has_cause(error, ConnectionRefusedError):
            return "connection_refused"
        case aiosmtplib.SMTPResponseException():
            return "mail_server_refused"
        case OSError():
            return "connection_failed"
    return "mail_server_refused"


def _has_cause(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or error.__context__
    return False
