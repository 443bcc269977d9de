"""A real mail server on 127.0.0.1, which answers as a test tells it, and keeps what it took."""

from __future__ import annotations

import asyncio
import ssl
import threading
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, NamedTuple

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from dispatcher.delivery.smtp_settings import MailSettings

PATIENCE_SECONDS = 20
SENDER = "dispatcher@sender.example"


class Taken(NamedTuple):
    """A mail that a server took."""

    sender: str
    recipients: list[str]
    message: EmailMessage
    raw: bytes
    login: str | None
    over_tls: bool

    @property
    def text(self) -> str:
        content = self.message.get_content()
        return content if isinstance(content, str) else content.decode()


class _OnAnyPort(Controller):
    def _trigger_server(self) -> None:
        assert isinstance(self.server, asyncio.Server)
        self.port = int(self.server.sockets[0].getsockname()[1])
        super()._trigger_server()  # type: ignore[no-untyped-call]


class MailServer:
    """Close it, or use it in `with`."""

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        login: tuple[str, str] | None = None,
        smtputf8: bool = True,
        insist_on_tls: bool = True,
    ) -> None:
        self.taken: list[Taken] = []
        self.replies: dict[str, list[str]] = {}
        """What is replied to RCPT for an address, or to the end of a mail (under ""), one after the other."""
        self._changed = threading.Condition()
        self._login = login
        options: dict[str, Any] = {"enable_SMTPUTF8": smtputf8, "ident": "a server"}
        if tls is not None:
            options |= {"tls_context": tls, "require_starttls": insist_on_tls}
        if login is not None:
            options |= {"authenticator": self._authenticate, "auth_required": True}
            options |= {"auth_require_tls": tls is not None}
        self._controller = _OnAnyPort(self, hostname="127.0.0.1", port=0, **options)
        self._controller.start()
        self.port = self._controller.port

    def settings(self, **changed: Any) -> MailSettings:
        """How it is reached: without TLS unless told otherwise."""
        given: dict[str, Any] = {"host": "127.0.0.1", "port": self.port, "sender": SENDER, "security": "none"}
        return MailSettings(**given | changed)

    def take(self, count: int = 1) -> list[Taken]:
        """Wait until so many mails were taken; all of them."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.taken) >= count, PATIENCE_SECONDS)
            return list(self.taken)

    def __enter__(self) -> MailServer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._controller.stop()

    def _authenticate(
        self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        right = (data.login.decode(), data.password.decode()) == self._login
        return AuthResult(success=right, handled=False, auth_data=data.login.decode())

    async def handle_RCPT(
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        reply = self._reply(address)
        if reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        reply = self._reply("")
        if reply.startswith("250"):
            message = message_from_bytes(envelope.content, policy=default)
            assert isinstance(message, EmailMessage)
            taken = Taken(
                envelope.mail_from,
                envelope.rcpt_tos,
                message,
                envelope.content,
                session.auth_data if session.authenticated else None,
                session.ssl is not None,
            )
            with self._changed:
                self.taken.append(taken)
                self._changed.notify_all()
        return reply

    def _reply(self, to: str) -> str:
        replies = self.replies.get(to)
        return replies.pop(0) if replies else "250 OK"
