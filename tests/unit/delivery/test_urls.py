"""Which URLs may be registered, and that nothing hides in their spelling."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.delivery.guard import Guard, check_url
from dispatcher.delivery.refusals import HostNotAllowed, InvalidUrl, UnsupportedScheme, UrlRefused
from dispatcher.delivery.transport import Answer
from tests.unit.delivery.receivers import request, send_once

GUARD = Guard()


def _wide(text: str) -> str:
    """In the full-width forms that East Asian keyboards type."""
    return "".join(chr(ord(char) + 0xFEE0) for char in text)


BLOCKED_HOSTS = """
127.0.0.1 127.1 127.0.1 0x7f.1 0x7f000001 0X7F.0.0.1 2130706433 017700000001 0177.0.0.1 0177.1 127.0.0.1.
0 0.0.0.0 0x 00 1.2.3.4.5 256.1.1.1 010.8.8.8 08.8.8.8 4294967296 99999999999999999999 8.8.8.8.
example.0x7f a.1 127。0。0。1 127｡0｡0｡1 ⑫7.0.0.1 ①②⑦.⓪.⓪.① 127.0.0\u00ad.1 0\uff587f.1
169.254.169.254 10.0.0.1 192.168.0.1 172.16.0.1 100.64.0.1 224.0.0.1 198.18.0.1 255.255.255.255
[::] [::1] [::ffff:169.254.169.254] [::ffff:7f00:1] [64:ff9b::a9fe:a9fe] [2002:7f00:1::] [::127.0.0.1]
[fe80::1%25eth0] [fe80::1%eth0] [2606:4700::1111%25lo] [fc00::1] [ff02::1] [2001::1] [0:0:0:0:0:0:0:1]
[0000:0000:0000:0000:0000:FFFF:7F00:0001]
"""


def _code(url: str) -> str | None:
    try:
        check_url(url, GUARD)
    except UrlRefused as refused:
        return refused.code
    return None


@pytest.mark.parametrize("host", [*BLOCKED_HOSTS.split(), _wide("127.0.0.1"), _wide("169") + ".254.169.254"])
@pytest.mark.parametrize("shape", ["http://{}/", "https://good.example@{}:8443/x?y", "HTTP://u:p@{}"])
def test_a_blocked_literal_is_refused_in_every_spelling(host: str, shape: str) -> None:
    with pytest.raises(HostNotAllowed):
        check_url(shape.format(host), GUARD)


def test_a_blocked_literal_that_was_stored_is_permanent() -> None:
    answer = asyncio.run(send_once(request("http://[::ffff:10.0.0.1]/")))
    assert answer == Answer(status=0, error="host_not_allowed", outcome="permanent")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "shop.example/hooks",
        "//shop.example/",
        "http:",
        "http:/",
        "http://",
        "http:///path",
        "http://?query",
        "http:shop.example",
        "http://shop.example:0/",
        "http://shop.example:65536/",
        "http://shop.example:/",
        "http://shop.example:8_0/",
        "http://shop.example:٨٠/",
        "http://shop.example:80:80/",
        "http://[::1]x/",
        "http://[::1",
        "http://[]/",
        "http://[1.1.1.1]/",
        "http://[::g]/",
        "http://::1/",
        "http://a@b@shop.example/",
        "http://good.example\\@127.0.0.1/",
        "http://127.0.0.1\\.good.example/",
        "http://shop.example/a b",
        " http://shop.example/",
        "http://shop.example/\r\nX: y",
        "http://shop\t.example/",
        "http://sh\0op.example/",
        "http://%31%32%37.0.0.1/",
        "http://shop..example/",
        "http://.example/",
        "http://-shop.example/",
        "http://shop.example-/",
        "http://" + "a" * 64 + ".example/",
        "http://" + "a." * 130 + "example/",
        "http://shop.example/" + "x" * 2048,
        "http://\ud800.example/",
        "http://shop.example/\ud800",
        "http://\u200b/",
        "http://shop,example/",
        "http://shop.example;@127.0.0.1:80@evil.example/",
    ],
)
def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidUrl):
        check_url(url, GUARD)


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "ftp://shop.example/", "file:///etc/passwd", "mailto:a@b.example", "httpx://a/"],
)
def test_other_schemes_are_refused(url: str) -> None:
    with pytest.raises(UnsupportedScheme):
        check_url(url, GUARD)


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://shop.example", "https://shop.example/"),
        ("HTTPS://Shop.Example:443/A", "https://shop.example/A"),
        ("http://shop.example:8080?a#b", "http://shop.example:8080/?a"),
        ("https://u:p@shop.example/x", "https://shop.example/x"),
        ("https://shop.example/a@b:c//d", "https://shop.example/a@b:c//d"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        ("https://BÜCHER。example/", "https://xn--bcher-kva.example/"),
        ("https://_a.b-c.example/", "https://_a.b-c.example/"),
        ("https://shop.example./", "https://shop.example./"),
        ("https://8.8.8.8:8443/", "https://8.8.8.8:8443/"),
        ("https://[2606:4700:0::1111]/", "https://[2606:4700::1111]/"),
        ("https://localhost/", "https://localhost/"),
        ("https://127.0.0.1.nip.example/", "https://127.0.0.1.nip.example/"),
        ('https://shop.example/<">', "https://shop.example/%3C%22%3E"),
    ],
)
def test_a_url_is_sent_in_one_spelling(url: str, sent: str) -> None:
    target = check_url(url, GUARD)
    assert target.url == sent
    assert check_url(sent, GUARD).url == sent


def test_userinfo_is_taken_out_and_decoded() -> None:
    target = check_url("https://us%40er:p:%C3%A4@shop.example/", GUARD)
    assert target.userinfo == ("us@er", "p:ä")
    assert "us" not in target.url + target.origin + repr(target)


def test_a_refusal_never_repeats_the_url() -> None:
    for url in (
        "http://u:s3cr3t@10.0.0.1/T0KEN",
        "s3cr3t",
        "s3cr3t://x",
        "http://s3cr3t/ ",
        "http://s3cr3t:x/",
    ):
        with pytest.raises(UrlRefused) as caught:
            check_url(url, GUARD)
        assert "s3cr3t" not in str(caught.value) + caught.value.remedy


def test_an_opened_network_is_allowed_in_its_plain_spelling_only() -> None:
    guard = Guard(["127.0.0.0/8"])
    assert check_url("http://127.0.0.1/", guard).host == "127.0.0.1"
    with pytest.raises(HostNotAllowed):
        check_url("http://127.1/", guard)


@given(st.text(max_size=40) | st.text("abc:/@.[]%0x127\\?# \uff11。", max_size=40))
def test_any_text_is_refused_or_has_one_spelling(text: str) -> None:
    for url in (text, "http://" + text):
        try:
            target = check_url(url, GUARD)
        except UrlRefused:
            continue
        again = check_url(target.url, GUARD)
        assert (again.host, again.port, again.path) == (target.host, target.port, target.path)
        assert target.url.isascii()
        assert target.address is None or GUARD.allows(target.address)


@given(st.integers(0, 2**32 - 1), st.sampled_from("dxo"), st.integers(1, 4))
def test_a_number_in_any_base_and_split_never_names_a_host(number: int, base: str, parts: int) -> None:
    octets = [number >> 24, number >> 16 & 255, number >> 8 & 255, number & 255]
    leading = octets[: parts - 1]
    last = number & (1 << 8 * (5 - parts)) - 1
    prefix = {"d": "", "x": "0x", "o": "0"}[base]
    spelled = ".".join(prefix + format(part, base) for part in [*leading, last])
    expected = (
        None
        if base == "d" and parts == 4 and GUARD.allows(".".join(map(str, octets)))
        else "host_not_allowed"
    )
    assert _code(f"http://{spelled}/") == expected
