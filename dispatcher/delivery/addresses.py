"""Which addresses are on the public internet."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

Address = IPv4Address | IPv6Address

# Written out, since the standard library's idea of "global" changes from release to release, and was
# never ours: it calls multicast, NAT64 and 6to4 global.
# https://www.iana.org/assignments/iana-ipv4-special-registry, plus multicast and everything above.
CLOSED_V4: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carriers' NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # multicast tunnels
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/3",  # multicast, reserved, broadcast
    )
)
# https://www.iana.org/assignments/ipv6-unicast-address-assignments: of IPv6 only this is given out, so
# the rest (::/8, the NAT64 networks, fc00::/7, fe80::/10, ff00::/8, 5f00::/16) is closed unnamed.
OPEN_V6: Final = IPv6Network("2000::/3")
# https://www.iana.org/assignments/iana-ipv6-special-registry, within that.
CLOSED_V6: Final = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: ends at the IPv4 address inside, by way of a relay nobody chose
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_NAT64: Final = IPv6Network("64:ff9b::/96")


def mapped_address(address: Address) -> IPv4Address | None:
    """The IPv4 address that the operating system itself connects to for `::ffff:a.b.c.d`."""
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _MAPPED else None


def is_global(address: Address) -> bool:
    """Whether traffic to an address ends on the public internet.

    NAT64 (64:ff9b::/96) is how a host with IPv6 alone reaches IPv4: such an address is as global as the
    one inside it.
    """
    if isinstance(address, IPv4Address):
        return not any(address in network for network in CLOSED_V4)
    if address.scope_id is not None:
        return False
    if address in _MAPPED or address in _NAT64:
        return is_global(IPv4Address(int(address) & 0xFFFFFFFF))
    return address in OPEN_V6 and not any(address in network for network in CLOSED_V6)
