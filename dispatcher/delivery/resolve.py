"""Names to addresses, without waiting in line.

c-ares (aiodns) instead of a thread for each lookup: getaddrinfo cannot be cancelled, so a dead name holds
its thread for up to half a minute. A few tenants' dead names fill any pool and delay everyone; without
a bound they make a thousand threads. A lookup of c-ares is some bytes in one socket, thousands wait at
once, and it ends with its attempt. The price: of nsswitch.conf it knows the hosts file and DNS alone.
Concurrent lookups of one name are not merged, and nothing is remembered here: c-ares keeps records for
their TTL, and every attempt vets what it is about to use.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from aiohttp.abc import AbstractResolver, ResolveResult

from dispatcher.delivery.connection import CURRENT

if TYPE_CHECKING:
    from aiodns import DNSResolver

MAX_ADDRESSES: Final = 8
"""Addresses of one name that are tried; all are vetted."""


class NameNotFound(Exception):
    """A name has no address, or nobody answers for it."""


class Lookup(Protocol):
    """Where addresses come from."""

    async def addresses(self, host: str) -> Sequence[str]:
        """Every IPv4 and IPv6 address of a name. Raises NameNotFound."""

    async def close(self) -> None: ...


class DnsLookup:
    """The hosts file, and the name servers given (`address` or `address:port`) or else this machine's."""

    def __init__(self, nameservers: Sequence[str] | None = None) -> None:
        self._nameservers = nameservers
        self._resolver: DNSResolver | None = None

    async def addresses(self, host: str) -> Sequence[str]:
        from aiodns.error import DNSError

        try:
            # Both families, whatever this machine can reach: a blocked record of either kind counts.
            found = await self._opened().getaddrinfo(host, family=socket.AF_UNSPEC, type=socket.SOCK_STREAM)
        except (DNSError, UnicodeError):
            raise NameNotFound from None
        return [_text(node.addr[0]) for node in found.nodes]

    async def close(self) -> None:
        if self._resolver is not None:
            resolver, self._resolver = self._resolver, None
            await resolver.close()

    def _opened(self) -> DNSResolver:
        if self._resolver is None:
            from aiodns import DNSResolver

            # 2 s, doubled: 6 s with one name server, then the name fails within an attempt's deadline.
            self._resolver = DNSResolver(
                self._nameservers, loop=asyncio.get_running_loop(), timeout=2.0, tries=2
            )
        return self._resolver


class VettingResolver(AbstractResolver):
    """A lookup as aiohttp asks for it. One blocked address makes the whole name blocked.

    A name with a public and a private record is either a mistake or an attack; trying only the public
    one would tell the tenant, by what is tried, which addresses are inside.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Raises NameNotFound or AddressBlocked."""
        addresses = await self._lookup.addresses(host)
        if not addresses:
            raise NameNotFound
        wire = CURRENT.get()
        for address in addresses:
            wire.vet(address)
        return [_result(host, port, address) for address in addresses[:MAX_ADDRESSES]]

    async def close(self) -> None:
        await self._lookup.close()


def _text(address: str | bytes) -> str:
    return address if isinstance(address, str) else address.decode("ascii")


def _result(host: str, port: int, address: str) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET6 if ":" in address else socket.AF_INET,
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
