"""`mailto:` URLs: one mailbox each, in the one spelling that is sent."""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from dispatcher.core.entries import MAIL_URL
from dispatcher.delivery.guard import MAX_URL, ascii_name
from dispatcher.delivery.refusals import InvalidMailbox, InvalidUrl

MAX_LOCAL: Final = 64
"""Bytes before the @ (RFC 5321)."""
MAX_ADDRESS: Final = 254
"""Bytes of all of it."""
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ATOM = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+", re.ASCII)


class Mailbox(Struct, frozen=True):
    """An address, taken apart."""

    local: str
    """A dot-atom; perhaps not in ASCII, then servers must know SMTPUTF8."""
    domain: str
    """In ASCII, lower case."""

    @property
    def address(self) -> str:
        return f"{self.local}@{self.domain}"

    def __repr__(self) -> str:
        return "Mailbox(…)"


def is_mail(url: str) -> bool:
    """Whether a URL is one of mail, right or wrong."""
    return url[: len(MAIL_URL)].lower() == MAIL_URL


def check_mail_url(url: str) -> Mailbox:
    """The mailbox of a `mailto:` URL. Raises InvalidMailbox, which never names it."""
    rest = url[len(MAIL_URL) :]
    if not is_mail(url) or len(url) > MAX_URL or _BAD_ESCAPE.search(rest):
        raise InvalidMailbox("the mailto URL is too long, or no URL")
    if rest.startswith("/") or "?" in rest or "#" in rest:
        raise InvalidMailbox("the mailto URL holds more than an address")
    if "," in rest:
        raise InvalidMailbox("the mailto URL holds more than one address")
    try:
        return check_address(unquote_to_bytes(rest).decode())
    except UnicodeError:
        raise InvalidMailbox("the mailto URL holds no address") from None


def check_address(address: str) -> Mailbox:
    """The mailbox of an address without a name. Raises InvalidMailbox."""
    given, _, host = address.rpartition("@")
    local = unicodedata.normalize("NFC", given)
    if not all(_is_atom(atom) for atom in local.split(".")):
        raise InvalidMailbox("the mail address is none, or of a kind that is not supported")
    try:
        domain = ascii_name(host)
    except InvalidUrl:
        raise InvalidMailbox("the mail address has no host's name after its @") from None
    if domain.rpartition(".")[2].isdecimal() or domain.endswith("."):
        raise InvalidMailbox("the mail address has no host's name after its @")
    length = len(local.encode())
    if length > MAX_LOCAL or length + 1 + len(domain) > MAX_ADDRESS:
        raise InvalidMailbox("the mail address is too long")
    return Mailbox(local, domain)


def _is_atom(text: str) -> bool:
    """Whether every character stands for itself: none that breaks lines, separates or cannot be seen."""
    ascii_part = "".join(char for char in text if char.isascii())
    others = (char for char in text if not char.isascii())
    return (
        text != ""
        and (ascii_part == "" or _ATOM.fullmatch(ascii_part) is not None)
        and all(char.isprintable() and not char.isspace() for char in others)
    )
