"""Which addresses may be connected to, against a table written without the code's own lists."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dispatcher.delivery.guard import Guard


def _words(text: str) -> list[str]:
    return text.split()


CLOSED = _words("""
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.255
169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1
198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:7f00:1 ::ffff:10.0.0.1
64:ff9b::a9fe:a9fe 64:ff9b::7f00:1 64:ff9b::10.0.0.1 64:ff9b:1::8.8.8.8 100::1
2001::1 2001:0:7f00:1::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:a9fe:a9fe::1
2002:808:808:: 2620:4f:8000::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 febf::1 fec0::1 ff02::1 ff0e::1
fe80::1%eth0 2606:4700::1111%1
""")
ALLOWED = _words("""
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255
169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255
198.20.0.0 223.255.255.255 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2001:200::1 2001:4860:4860::8888 2606:4700::1111
2a00::1 2003::1 3ffe::1
""")
NO_ADDRESS = [
    "",
    "localhost",
    "127.1",
    "0x7f.0.0.1",
    "1.2.3.4.5",
    "::g",
    "\u0661.\u0661.\u0661.\u0661",
    "1.1.1.1\n",
]


@pytest.mark.parametrize("address", CLOSED)
def test_closed(address: str) -> None:
    assert not Guard().allows(address)


@pytest.mark.parametrize("address", ALLOWED)
def test_allowed(address: str) -> None:
    assert Guard().allows(address)


@pytest.mark.parametrize("text", NO_ADDRESS)
def test_what_is_no_address_is_closed(text: str) -> None:
    assert not Guard(["0.0.0.0/0", "::/0"]).allows(text)


def _naively_global(octets: bytes) -> bool:
    """IPv4, by its octets."""
    a, b, c, _ = octets
    return not (
        a in (0, 10, 127)
        or a >= 224
        or (a, b) in ((169, 254), (192, 168), (198, 18), (198, 19))
        or (a == 100 and b // 64 == 1)
        or (a == 172 and b // 16 == 1)
        or (a, b, c)
        in (
            (192, 0, 0),
            (192, 0, 2),
            (192, 31, 196),
            (192, 52, 193),
            (192, 88, 99),
            (192, 175, 48),
            (198, 51, 100),
            (203, 0, 113),
        )
    )


_EDGES = st.sampled_from([0, 10, 31, 52, 88, 99, 100, 113, 127, 168, 169, 172, 175, 192, 198, 203, 223, 254])
_OCTETS = st.tuples(*[st.integers(0, 255) | _EDGES] * 4).map(bytes)


@given(_OCTETS)
@example(bytes([192, 0, 0, 9]))
def test_ipv4_is_as_its_octets_say_in_every_wrapping(octets: bytes) -> None:
    expected = _naively_global(octets)
    assert Guard().allows(IPv4Address(octets)) == expected
    assert Guard().allows(IPv6Address(bytes(10) + b"\xff\xff" + octets)) == expected
    assert Guard().allows(IPv6Address(b"\x00\x64\xff\x9b" + bytes(8) + octets)) == expected
    # These are closed whatever they hold: compatible, 6to4, Teredo, local NAT64.
    for prefix in (bytes(12), b"\x20\x02", bytes.fromhex("20010000"), bytes.fromhex("0064ff9b0001")):
        assert not Guard().allows(IPv6Address((prefix + octets).ljust(16, b"\x01")[:16]))


@given(st.binary(min_size=16, max_size=16))
def test_of_ipv6_only_what_is_given_out_is_allowed(packed: bytes) -> None:
    if Guard().allows(IPv6Address(packed)):
        wrapped = packed[:12] in (bytes(10) + b"\xff\xff", b"\x00\x64\xff\x9b" + bytes(8))
        assert wrapped or packed[0] >> 5 == 1


class TestOpenNetworks:
    def test_an_opened_network_is_allowed_and_no_other(self) -> None:
        guard = Guard(["10.1.0.0/16", "fd00::/8"])
        assert guard.allows("10.1.2.3")
        assert guard.allows("::ffff:10.1.2.3")
        assert guard.allows("fd12::1")
        assert not guard.allows("10.2.0.1")
        assert not guard.allows("127.0.0.1")
        # By way of a translator that is none of the operator's networks.
        assert not guard.allows("64:ff9b::10.1.2.3")
        assert not guard.allows("2002:a01:203::")

    def test_what_is_no_network_is_refused(self) -> None:
        with pytest.raises(ValueError, match="does not appear"):
            Guard(["localhost"])
