"""Where a request may go: to globally routable addresses, and to networks that the operator opened."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import quote, unquote

from msgspec import Struct

from dispatcher.delivery.addresses import Address, is_global, mapped_address
from dispatcher.delivery.refusals import HostNotAllowed, InvalidUrl, UnsupportedScheme

MAX_URL: Final = 2048
_PORTS: Final = {"http": 80, "https": 443}

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
# Browsers drop or turn these while others do not; two readers of one URL would see two hosts.
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\]")
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*", re.ASCII)
_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
_ALLOWED_IN_PATHS = string.ascii_letters + string.digits + "-._~:/?[]@!$&'()*+,;=%"


class Guard:
    """Decides whether an address may be connected to. Raises ValueError for a network that is none."""

    def __init__(self, open_networks: Iterable[str] = ()) -> None:
        self._open = tuple(ip_network(network) for network in open_networks)

    def allows(self, address: str | Address) -> bool:
        """Whether a socket may be connected to an address; text that is no address is refused."""
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        inner = mapped_address(parsed)
        return is_global(parsed) or self._opened(parsed) or (inner is not None and self._opened(inner))

    def _opened(self, address: Address) -> bool:
        return any(address in network for network in self._open if network.version == address.version)


class Target(Struct, frozen=True, kw_only=True):
    """A URL taken apart; what is sent and looked up is made of these parts, never of the text given."""

    scheme: str
    host: str
    """A name in ASCII, or an address; lower case, without brackets."""
    port: int
    path: str
    """Begins with a slash; holds the query, never a fragment. Escapes stay as given."""
    userinfo: tuple[str, str] | None
    """User and password, decoded."""
    address: Address | None
    """What the host is, when it is no name."""

    @property
    def authority(self) -> str:
        """Host and port; the port only if it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port: the part of a URL that is no secret."""
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """The same URL in one spelling, without userinfo."""
        return self.origin + self.path

    def __repr__(self) -> str:
        return f"Target({self.origin})"


def check_url(url: str, guard: Guard) -> Target:
    """The parts of a URL that may be called, as far as the URL itself can say.

    Raises InvalidUrl, UnsupportedScheme or HostNotAllowed. A name passes: where it leads is decided by
    each attempt anew.
    """
    if len(url) > MAX_URL or _AMBIGUOUS.search(url):
        raise InvalidUrl("the URL is too long, or holds a space, a control character or a backslash")
    matched = _SCHEME.fullmatch(url)
    if matched is None:
        raise InvalidUrl("the URL has no scheme")
    scheme, rest = matched[1].lower(), matched[2]
    if scheme not in _PORTS:
        raise UnsupportedScheme("the URL's scheme is not supported")
    if not rest.startswith("//"):
        raise InvalidUrl("the URL has no host")
    end = next((n for n, char in enumerate(rest) if n > 1 and char in "/?#"), len(rest))
    userinfo, at, location = rest[2:end].rpartition("@")
    if "@" in userinfo:
        raise InvalidUrl("the URL has more than one @ before its path")
    host, port = _split_location(location)
    name, address = _check_host(host, guard)
    return Target(
        scheme=scheme,
        host=name,
        port=_PORTS[scheme] if port is None else port,
        path=_escape(rest[end:]),
        userinfo=_split_userinfo(userinfo) if at else None,
        address=address,
    )


def _split_location(location: str) -> tuple[str, int | None]:
    """Host, brackets included, and port."""
    if location.startswith("["):
        host, bracket, rest = location.partition("]")
        if not bracket:
            raise InvalidUrl("the URL's host is neither a name nor an address")
        host += bracket
    else:
        host, colon, port = location.partition(":")
        rest = colon + port
    if not rest:
        return host, None
    if not rest.startswith(":") or not _PORT.fullmatch(rest[1:]) or not 1 <= int(rest[1:]) <= 65535:
        raise InvalidUrl("the URL's port is none")
    return host, int(rest[1:])


def _split_userinfo(userinfo: str) -> tuple[str, str]:
    user, _, password = userinfo.partition(":")
    return unquote(user), unquote(password)


def _escape(rest: str) -> str:
    """Path and query in ASCII; what is escaped already, or needs no escape, stays as it was given."""
    path = rest.partition("#")[0]
    try:
        escaped = quote(path, safe=_ALLOWED_IN_PATHS)
    except UnicodeEncodeError:
        raise InvalidUrl("the URL is no text") from None
    return escaped if escaped.startswith("/") else "/" + escaped


def _check_host(host: str, guard: Guard) -> tuple[str, Address | None]:
    """The host in one spelling, and the address that it is unless it is a name."""
    address: Address
    if host.startswith("["):
        inside = host[1:-1]
        # A zone (`%25eth0`) names an interface of this machine: such an address is never global.
        if "%" in inside:
            raise HostNotAllowed("the URL's host is not allowed")
        try:
            address = IPv6Address(inside)
        except AddressValueError:
            raise InvalidUrl("the URL's host is neither a name nor an address") from None
    else:
        name = ascii_name(host)
        if not _NUMBER.fullmatch(name.removesuffix(".").rpartition(".")[2]):
            return name, None
        try:
            address = IPv4Address(name)
        except AddressValueError:
            # 127.1, 0x7f.1, 2130706433, 0177.0.0.1: resolvers take these for addresses, and do not agree
            # on which (010.0.0.1 is 8.0.0.1 or 10.0.0.1). No name ends in a number, so none is lost.
            raise HostNotAllowed("the URL's host is not allowed") from None
    if not guard.allows(address):
        raise HostNotAllowed("the URL's host is not allowed")
    return str(address), address


def ascii_name(host: str) -> str:
    """A host as it is looked up. Full-width digits and other dots are folded before anyone judges them."""
    if not host.isascii():
        # Deferred: few hosts need these tables.
        import idna

        try:
            host = idna.uts46_remap(unicodedata.normalize("NFKC", host), std3_rules=False)
            host = host if host.isascii() else idna.encode(host).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            raise InvalidUrl("the URL's host is neither a name nor an address") from None
    labels = host.removesuffix(".").split(".")
    if len(host) > 254 or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidUrl("the URL's host is neither a name nor an address")
    return host.lower()
