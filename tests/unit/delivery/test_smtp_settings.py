"""How a mail server is named."""

from __future__ import annotations

import pytest

from dispatcher.delivery.refusals import InvalidMailSettings
from dispatcher.delivery.smtp_settings import SENDER_VARIABLE, URL_VARIABLE, MailSettings

SENDER = "ops@shop.example"


def test_it_is_reached_over_starttls_unless_told_otherwise() -> None:
    settings = MailSettings.parse("smtp://us%40er:p%2Fw@mail.example", SENDER)
    assert (settings.host, settings.port, settings.security) == ("mail.example", 587, "starttls")
    assert (settings.username, settings.password) == ("us@er", "p/w")
    assert (settings.sender, settings.sender_name, settings.sender_domain) == (SENDER, "", "shop.example")
    assert MailSettings.parse("smtps://mail.example", SENDER).security == "tls"
    assert MailSettings.parse("smtps://mail.example:2465", SENDER).port == 2465
    assert (
        MailSettings.parse("smtp://mail.example?starttls=optional", SENDER).security == "starttls_if_offered"
    )
    assert MailSettings.parse("smtp://[::1]:25?starttls=off", SENDER).host == "::1"


def test_the_sender_may_have_a_name() -> None:
    settings = MailSettings.parse("smtp://mail.example", "Zoë's Shop <ops@exämple.org>")
    assert (settings.sender_name, settings.sender) == ("Zoë's Shop", "ops@xn--exmple-cua.org")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mail.example",
        "http://mail.example",
        "smtp://",
        "smtp://mail.example/path",
        "smtp://mail.example#x",
        "smtp://mail.example:0",
        "smtp://mail.example:99999",
        "smtp://mail.example?starttls=maybe",
        "smtp://mail.example?starttls=off&starttls=off",
        "smtp://mail.example?tls=off",
        "smtps://mail.example?starttls=off",
        "smtp://user:s3cr3t@mail.example?starttls=off",
        "smtp://user:s3cr3t@mail.example?starttls=optional",
    ],
)
def test_a_url_that_is_none_or_unsafe_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidMailSettings) as refused:
        MailSettings.parse(url, SENDER)
    assert "s3cr3t" not in str(refused.value)
    assert "DISPATCHER_SMTP_URL" in refused.value.remedy


@pytest.mark.parametrize(
    "sender", ["", "ops", "a@b.example, c@d.example", "zoë@shop.example", "a\r\nb <a@b.c>"]
)
def test_a_sender_that_is_none_is_refused(sender: str) -> None:
    with pytest.raises(InvalidMailSettings):
        MailSettings.parse("smtp://mail.example", sender)


def test_both_variables_are_set_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    monkeypatch.delenv(SENDER_VARIABLE, raising=False)
    assert MailSettings.from_environment() is None
    monkeypatch.setenv(URL_VARIABLE, "smtp://mail.example")
    with pytest.raises(InvalidMailSettings, match=SENDER_VARIABLE):
        MailSettings.from_environment()
    monkeypatch.setenv(SENDER_VARIABLE, SENDER)
    assert MailSettings.from_environment() == MailSettings.parse("smtp://mail.example", SENDER)


def test_no_password_is_shown() -> None:
    shown = repr(MailSettings.parse("smtp://user:s3cr3t@mail.example", SENDER))
    assert "s3cr3t" not in shown
    assert "user" not in shown
