"""Which headers a caller may set."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from dispatcher.delivery.refusals import InvalidHeaders

Headers = tuple[tuple[str, str], ...]

MAX_HEADERS: Final = 50
MAX_HEADER_BYTES: Final = 16 * 1024
"""Names and values together; receivers refuse more than 8 to 64 KiB."""

# RFC 9110 section 5.6.2.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
# Printable ASCII, spaces, tabs. Latin-1 is allowed on the wire, but what "é" arrives as depends on the
# receiver; and CR, LF or NUL would begin a header, or a request, of the caller's own.
_VALUE = re.compile(r"[\t\x20-\x7e]*", re.ASCII)

# These say where a request ends and where it goes. A caller who sets one can hide a second request in the
# first, or take the connection for something else.
FRAMING: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def is_wellformed(name: str, value: str) -> bool:
    """Whether a header can be sent at all: its name a token, its value printable ASCII."""
    return _TOKEN.fullmatch(name) is not None and _VALUE.fullmatch(value) is not None


def is_reserved(name: str) -> bool:
    """Whether a header is the transport's or the signature's."""
    lower = name.lower()
    return lower in FRAMING or lower.startswith("webhook-")


def check_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """A caller's headers, each name once, the last value winning without regard to case.

    Raises InvalidHeaders for one that is reserved or cannot be sent; names it only if the name is a token.
    """
    checked: dict[str, tuple[str, str]] = {}
    for name, value in headers:
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise InvalidHeaders("a header's name is empty or holds what no name may")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise InvalidHeaders(f"the value of the header {name[:64]} holds what no value may")
        if is_reserved(name):
            raise InvalidHeaders(f"the header {name[:64]} is reserved")
        checked[name.lower()] = (name, value)
    if len(checked) > MAX_HEADERS:
        raise InvalidHeaders(f"there are more than {MAX_HEADERS} headers")
    if sum(len(name) + len(value) for name, value in checked.values()) > MAX_HEADER_BYTES:
        raise InvalidHeaders(f"the headers hold more than {MAX_HEADER_BYTES} bytes")
    return tuple(checked.values())


def merge(*layers: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Headers of several sources, by lower-case name; a later source beats an earlier one."""
    return {name.lower(): (name, value) for layer in layers for name, value in layer}
