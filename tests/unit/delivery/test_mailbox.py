"""`mailto:` URLs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.delivery.mailbox import Mailbox, check_mail_url, is_mail
from dispatcher.delivery.refusals import InvalidMailbox


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("mailto:ops@shop.example", "ops@shop.example"),
        ("MAILTO:ops@Shop.EXAMPLE", "ops@shop.example"),
        ("mailto:o.p+s%21@shop.example", "o.p+s!@shop.example"),
        ("mailto:zoë@exämple.org", "zoë@xn--exmple-cua.org"),
        ("mailto:zo%C3%AB@ex%C3%A4mple.org", "zoë@xn--exmple-cua.org"),
        ("mailto:ze\u0308ta@a.example", "z\u00ebta@a.example"),
    ],
)
def test_one_address_is_taken(url: str, address: str) -> None:
    assert check_mail_url(url).address == address


@pytest.mark.parametrize(
    "rest",
    [
        "",
        "ops",
        "@shop.example",
        "ops@",
        "ops@shop.example,dev@shop.example",
        "ops@shop.example?subject=x",
        "ops@shop.example?bcc=a@b.example",
        "ops@shop.example#x",
        "//ops@shop.example",
        "a@b@shop.example",
        "ops%0d%0aBcc:x@shop.example",
        "ops\r\nBcc:x@shop.example",
        "ops%00@shop.example",
        "ops%E2%80%8B@shop.example",
        "ops%FF@shop.example",
        "ops%@shop.example",
        "o ps@shop.example",
        '"o ps"@shop.example',
        "Shop <ops@shop.example>",
        ".ops@shop.example",
        "o..ps@shop.example",
        "ops@[127.0.0.1]",
        "ops@127.0.0.1",
        "ops@shop.example.",
        "ops@shop_example/x",
        f"{'x' * 65}@shop.example",
        f"{'ë' * 33}@shop.example",
        f"ops@{'x.' * 130}example",
        f"ops@{'x' * 3000}",
    ],
)
def test_anything_else_is_refused_and_not_repeated(rest: str) -> None:
    with pytest.raises(InvalidMailbox) as refused:
        check_mail_url(f"mailto:{rest}")
    assert refused.value.code == "invalid_url"
    said = f"{refused.value} {refused.value.remedy}".replace("mailto:ops@shop.example", "")
    assert "shop.example" not in said


@given(st.text(max_size=80))
def test_whatever_it_is_it_is_an_address_on_one_line_or_refused(rest: str) -> None:
    try:
        mailbox = check_mail_url(f"mailto:{rest}")
    except InvalidMailbox:
        return
    assert mailbox.address.isprintable()
    assert not set(' ,;:<>()[]\\"') & set(mailbox.address)
    assert mailbox.domain.isascii()


def test_only_urls_of_mail_are_of_mail() -> None:
    assert is_mail("mailto:x")
    assert is_mail("MailTo:")
    assert not is_mail("https://mailto:x@shop.example")


def test_an_address_is_not_shown() -> None:
    assert "ops" not in repr(Mailbox("ops", "shop.example"))
