"""How the operator's mail server is reached, and who sends."""

from __future__ import annotations

import os
from collections.abc import Mapping
from email.headerregistry import Address
from email.utils import parseaddr
from typing import Final, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from msgspec import Struct

from dispatcher.delivery.mailbox import Mailbox, check_address
from dispatcher.delivery.refusals import InvalidMailbox, InvalidMailSettings

URL_VARIABLE: Final = "DISPATCHER_SMTP_URL"
SENDER_VARIABLE: Final = "DISPATCHER_MAIL_FROM"

Security = Literal["starttls", "starttls_if_offered", "tls", "none"]
_PORTS: Final[Mapping[str, int]] = {"smtp": 587, "smtps": 465}
_STARTTLS: Final[Mapping[str, Security]] = {
    "required": "starttls",
    "optional": "starttls_if_offered",
    "off": "none",
}
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")


class MailSettings(Struct, frozen=True, kw_only=True):
    """A mail server, and the sender of every mail."""

    host: str
    port: int
    sender: str
    """An address."""
    sender_name: str = ""
    username: str | None = None
    password: str = ""
    security: Security = "starttls"

    @property
    def sender_domain(self) -> str:
        return self.sender.rpartition("@")[2]

    @property
    def sent_from(self) -> Address:
        return Address(self.sender_name, addr_spec=self.sender)

    def __repr__(self) -> str:
        return f"MailSettings({self.host}:{self.port}, {self.security})"

    @classmethod
    def parse(cls, url: str, sender: str) -> MailSettings:
        """`smtp://USER:PASSWORD@HOST:PORT` or `smtps://…`; `ops@shop.example` or `Shop <ops@shop.example>`.

        `smtp` asks for STARTTLS and sends nothing without it, unless the url ends in `?starttls=optional`
        or `?starttls=off`; then a password is sent to this machine only. Raises InvalidMailSettings.
        """
        try:
            parts = urlsplit(url)
            host, port, query = parts.hostname, parts.port, parse_qs(parts.query, strict_parsing=True)
        except ValueError:
            raise InvalidMailSettings("the mail server's URL is none") from None
        if (
            parts.scheme not in _PORTS
            or not host
            or not host.isascii()
            or not host.isprintable()
            or " " in host
        ):
            raise InvalidMailSettings("the mail server's URL is not smtp:// or smtps:// and a host")
        if parts.path not in ("", "/") or parts.fragment or port == 0:
            raise InvalidMailSettings("the mail server's URL holds more than a host and a port")
        chosen = query.pop("starttls", ["required"])
        if (
            query
            or len(chosen) != 1
            or chosen[0] not in _STARTTLS
            or (parts.query and parts.scheme == "smtps")
        ):
            raise InvalidMailSettings(
                "after ? only starttls=required, optional or off can be said of smtp://"
            )
        security: Security = "tls" if parts.scheme == "smtps" else _STARTTLS[chosen[0]]
        username = unquote(parts.username) if parts.username else None
        if username is not None and security not in ("tls", "starttls") and host not in _THIS_MACHINE:
            raise InvalidMailSettings("a password is not sent to another machine without TLS")
        name, mailbox = _sender(sender)
        return cls(
            host=host,
            port=port or _PORTS[parts.scheme],
            sender=mailbox.address,
            sender_name=name,
            username=username,
            password=unquote(parts.password or ""),
            security=security,
        )

    @classmethod
    def from_environment(cls) -> MailSettings | None:
        """None where neither variable is set. Raises InvalidMailSettings."""
        url, sender = os.environ.get(URL_VARIABLE, ""), os.environ.get(SENDER_VARIABLE, "")
        if not url and not sender:
            return None
        for given, variable in ((url, URL_VARIABLE), (sender, SENDER_VARIABLE)):
            if not given:
                raise InvalidMailSettings(f"{variable} is not set, though the other variable of mail is")
        return cls.parse(url, sender)


def _sender(text: str) -> tuple[str, Mailbox]:
    if not text.isprintable():
        raise InvalidMailSettings("the sender of mails is no mail address")
    name, address = parseaddr(text) if "<" in text else ("", text)
    try:
        mailbox = check_address(address)
    except InvalidMailbox:
        raise InvalidMailSettings("the sender of mails is no mail address") from None
    if not mailbox.local.isascii():
        raise InvalidMailSettings("what stands before the @ of the sender of mails is not ASCII")
    return name, mailbox
