"""Headers: which may be registered, and who wins."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.delivery.attempt import signed_request
from dispatcher.delivery.authentication import (
    Authentication,
    BasicLogin,
    BearerToken,
    SecretHeader,
    authentication_header,
)
from dispatcher.delivery.headers import MAX_HEADER_BYTES, MAX_HEADERS, check_headers
from dispatcher.delivery.refusals import InvalidHeaders
from dispatcher.delivery.signing import parse_signer
from dispatcher.delivery.transport import Request

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def _request(
    headers: list[tuple[str, str]] | None = None, authentication: Authentication | None = None
) -> Request:
    return signed_request(
        url="https://shop.example/",
        event_id="evt-1",
        timestamp=1614265330,
        body=b"{}",
        signers=[parse_signer(SECRET)],
        headers=headers or [],
        authentication=authentication,
    )


def _sent(
    headers: list[tuple[str, str]] | None = None, authentication: Authentication | None = None
) -> dict[str, str]:
    sent = _request(headers, authentication).headers
    folded = {name.lower(): value for name, value in sent}
    assert len(folded) == len(sent)
    return folded


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-A", "a\r\nX-Evil: 1"),
        ("X-A", "a\nb"),
        ("X-A", "a\rb"),
        ("X-A", "a\0b"),
        ("X-A", "a\x7f"),
        ("X-A", "a\n"),
        ("X-B", "é"),
        ("X-B", "😱"),
        ("X-B", "\ud800"),
        ("", "a"),
        ("X A", "a"),
        ("X-A:", "a"),
        ("X-A\n", "a"),
        ("X-A\r\nX-Evil: 1", "a"),
        ("X-É", "a"),
        ("(X)", "a"),
        ("webhook-id", "a"),
        ("Webhook-Signature", "a"),
        ("WEBHOOK-TIMESTAMP", "1"),
        ("webhook-anything", "a"),
        ("Host", "evil.example"),
        ("Content-Length", "0"),
        ("Transfer-Encoding", "chunked"),
        ("connection", "keep-alive"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "close"),
        ("Proxy-Authorization", "x"),
        ("Upgrade", "h2c"),
        ("HTTP2-Settings", "x"),
        ("TE", "trailers"),
        ("Trailer", "X-A"),
        ("EXPECT", "100-continue"),
    ],
)
def test_what_no_caller_may_set(name: str, value: str) -> None:
    for refuse in (
        lambda: check_headers([("X-Fine", "1"), (name, value)]),
        lambda: authentication_header(SecretHeader(name=name, value=value)),
        lambda: _request([(name, value)]),
    ):
        with pytest.raises(InvalidHeaders) as caught:
            refuse()
        assert "\n" not in str(caught.value)
        assert len(value) < 3 or value not in str(caught.value)


def test_too_many_and_too_long() -> None:
    check_headers((f"X-{n}", "") for n in range(MAX_HEADERS))
    with pytest.raises(InvalidHeaders):
        check_headers((f"X-{n}", "") for n in range(MAX_HEADERS + 1))
    check_headers([("X", "a" * (MAX_HEADER_BYTES - 1))])
    with pytest.raises(InvalidHeaders):
        check_headers([("X", "a" * MAX_HEADER_BYTES)])


def test_names_merge_without_regard_to_case() -> None:
    assert check_headers([("X-A", "1"), ("x-a", "2"), ("X-B", "a\tb")]) == (("x-a", "2"), ("X-B", "a\tb"))


def test_defaults() -> None:
    assert _sent() == {
        "user-agent": "webhook-dispatcher",
        "content-type": "application/json",
        "idempotency-key": "evt-1",
        "webhook-id": "evt-1",
        "webhook-timestamp": "1614265330",
        "webhook-signature": parse_signer(SECRET).sign(b"evt-1.1614265330.{}"),
    }


def test_a_caller_beats_the_defaults() -> None:
    sent = _sent([("content-type", "text/plain"), ("IDEMPOTENCY-KEY", "k"), ("User-agent", "shop")])
    assert (sent["content-type"], sent["idempotency-key"], sent["user-agent"]) == ("text/plain", "k", "shop")


@pytest.mark.parametrize(
    ("authentication", "name", "value"),
    [
        (BearerToken(token="t0k"), "authorization", "Bearer t0k"),
        (
            BasicLogin(username="Aladdin", password="open sesame"),
            "authorization",
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        ),
        (BasicLogin(username="é", password=":"), "authorization", "Basic w6k6Og=="),
        (SecretHeader(name="X-API-Key", value="k"), "x-api-key", "k"),
    ],
)
def test_authentication_beats_a_caller(authentication: Authentication, name: str, value: str) -> None:
    assert _sent([(name.title(), "forged")], authentication)[name] == value
    assert "t0k" not in repr(authentication)
    assert "sesame" not in repr(authentication)
    again = msgspec.json.decode(msgspec.json.encode(authentication), type=Authentication)
    assert again == authentication


@pytest.mark.parametrize(
    "authentication",
    [
        BearerToken(token=""),
        BearerToken(token="a b"),
        BearerToken(token="a\r\nX: y"),
        BearerToken(token="é"),
        BasicLogin(username="a:b", password=""),
        BasicLogin(username="\ud800", password=""),
    ],
)
def test_what_no_header_can_carry(authentication: Authentication) -> None:
    with pytest.raises(InvalidHeaders):
        authentication_header(authentication)


def test_without_secrets_there_is_no_signature() -> None:
    sent = signed_request(url="u", event_id="e", timestamp=1, body=b"", method="PUT", deadline=3.0)
    assert "webhook-signature" not in dict(sent.headers)
    assert (sent.method, sent.deadline, dict(sent.headers)["webhook-id"]) == ("PUT", 3.0, "e")


def test_attempts_differ_in_time_and_signature_only() -> None:
    first, second = (
        signed_request(url="u", event_id="e", timestamp=timestamp, body=b"x", signers=[parse_signer(SECRET)])
        for timestamp in (1, 2)
    )
    assert {name for name, value in set(first.headers) ^ set(second.headers)} == {
        "webhook-timestamp",
        "webhook-signature",
    }


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=4))
def test_whatever_passes_fits_on_one_line(headers: list[tuple[str, str]]) -> None:
    try:
        checked = check_headers(headers)
    except InvalidHeaders:
        return
    for name, value in checked:
        line = f"{name}: {value}"
        assert line.isascii()
        assert line.partition(": ")[0] == name
        assert len(line.splitlines()) == 1
