"""Signatures, against the published vector and another implementation."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
import standardwebhooks
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.delivery.refusals import InvalidSecret, InvalidSignature
from dispatcher.delivery.signing import (
    Ed25519Key,
    new_secret,
    parse_signer,
    parse_verifier,
    signature_header,
    signed_message,
)
from dispatcher.delivery.verify import verify_webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, TIMESTAMP, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
SEED = bytes(range(32))
PRIVATE = "whsk_" + base64.b64encode(SEED).decode()
PUBLIC = "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="


def _headers(signature: str, timestamp: int | str = TIMESTAMP, event_id: str = ID) -> dict[str, str]:
    return {"Webhook-Id": event_id, "WEBHOOK-TIMESTAMP": str(timestamp), "webhook-signature": signature}


def _genuine(
    signature: str, *secrets: str, body: bytes = BODY, now: float = TIMESTAMP, **headers: str
) -> bool:
    try:
        verify_webhook(body, {**_headers(signature), **headers}, secrets, now=now)
    except InvalidSignature:
        return False
    return True


@pytest.mark.parametrize("secret", [SECRET, SECRET.removeprefix("whsec_")])
def test_the_published_vector(secret: str) -> None:
    assert signature_header([parse_signer(secret)], ID, TIMESTAMP, BODY) == SIGNATURE
    assert _genuine(SIGNATURE, secret)


def test_an_asymmetric_signature_needs_only_the_public_key() -> None:
    key = parse_signer(PRIVATE)
    assert isinstance(key, Ed25519Key)
    assert key.public == PUBLIC
    signature = signature_header([key], ID, TIMESTAMP, BODY)
    assert signature.startswith("v1a,")
    assert _genuine(signature, PUBLIC)
    assert _genuine(signature, PRIVATE)
    assert not _genuine(signature, PUBLIC, body=BODY + b" ")
    assert not _genuine(signature.replace("v1a,", "v1,"), PUBLIC)
    assert not _genuine(SIGNATURE.replace("v1,", "v1a,"), PUBLIC)


def test_a_private_key_may_carry_its_public_half() -> None:
    public = base64.b64decode(PUBLIC.removeprefix("whpk_"))
    both = "whsk_" + base64.b64encode(SEED + public).decode()
    signature = signature_header([parse_signer(both)], ID, TIMESTAMP, BODY)
    assert signature == signature_header([parse_signer(PRIVATE)], ID, TIMESTAMP, BODY)
    with pytest.raises(InvalidSecret):
        parse_signer("whsk_" + base64.b64encode(SEED + SEED).decode())


def test_in_a_rotation_either_secret_verifies() -> None:
    fresh = new_secret()
    header = signature_header(
        [parse_signer(SECRET), parse_signer(fresh), parse_signer(PRIVATE)], ID, TIMESTAMP, BODY
    )
    assert header.split(" ")[0] == SIGNATURE
    for secret in (SECRET, fresh, PUBLIC):
        assert _genuine(header, secret)
        assert _genuine(header, new_secret(), secret)
    assert not _genuine(header, new_secret())


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "whsec_!!!!",
        "whsec_" + base64.b64encode(bytes(23)).decode(),
        "whsec_" + base64.b64encode(bytes(65)).decode(),
        SECRET[:-1],
        SECRET + "\n",
        " " + SECRET,
        SECRET.replace("_Mf", "_M-"),
        "whsec_\uff2dfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "\ud800",
        "whsk_" + base64.b64encode(bytes(31)).decode(),
        "whsk_",
        PUBLIC,
    ],
)
def test_a_bad_secret_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(InvalidSecret) as caught:
        parse_signer(secret)
    assert caught.value.__cause__ is None
    assert len(secret) < 8 or secret.strip() not in str(caught.value)


@pytest.mark.parametrize("length", [24, 32, 64])
def test_the_lengths_of_a_secret(length: int) -> None:
    parse_signer("whsec_" + base64.b64encode(bytes(length)).decode())


def test_a_bad_public_key_is_refused() -> None:
    with pytest.raises(InvalidSecret):
        parse_verifier("whpk_" + base64.b64encode(bytes(31)).decode())


@pytest.mark.parametrize("event_id", ["msg.1", "", "."])
def test_an_id_that_could_be_read_in_two_ways_is_never_signed(event_id: str) -> None:
    with pytest.raises(ValueError, match="dot"):
        signed_message(event_id, TIMESTAMP, BODY)


@given(st.text(max_size=200), st.sampled_from([SECRET, new_secret()]))
def test_the_reference_implementation_agrees_both_ways(text: str, secret: str) -> None:
    try:
        body = text.encode()
    except UnicodeEncodeError:
        return
    theirs = standardwebhooks.Webhook(secret)
    now = int(datetime.now(UTC).timestamp())
    ours = signature_header([parse_signer(new_secret()), parse_signer(secret)], ID, now, body)
    headers = {name.lower(): value for name, value in _headers(ours, now).items()}
    theirs.verify(body, headers, json_parse=False)
    signature = theirs.sign(ID, datetime.fromtimestamp(now, UTC), text)
    verify_webhook(body, _headers(signature, now), secret)


class TestVerify:
    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"webhook-id": ID},
            {"webhook-id": ID, "webhook-timestamp": str(TIMESTAMP)},
            {"webhook-timestamp": str(TIMESTAMP), "webhook-signature": SIGNATURE},
            _headers("", TIMESTAMP),
            _headers("v1", TIMESTAMP),
            _headers("v1,", TIMESTAMP),
            _headers(SIGNATURE.removeprefix("v1,"), TIMESTAMP),
            _headers("v2" + SIGNATURE.removeprefix("v1"), TIMESTAMP),
            _headers(SIGNATURE.swapcase(), TIMESTAMP),
            _headers("v1,é\ud800", TIMESTAMP),
            _headers("v1a,!", TIMESTAMP),
            _headers(SIGNATURE, f"+{TIMESTAMP}"),
            _headers(SIGNATURE, f"0{TIMESTAMP}"),
            _headers(SIGNATURE, f" {TIMESTAMP}"),
            _headers(SIGNATURE, f"{TIMESTAMP}.0"),
            _headers(SIGNATURE, "".join(chr(ord(digit) + 0xFEE0) for digit in str(TIMESTAMP))),
            _headers(SIGNATURE, "9" * 5000),
            _headers(SIGNATURE, event_id="msg.1"),
            _headers(SIGNATURE, event_id=ID + "x"),
            _headers("v1,x " * 100 + SIGNATURE),
        ],
    )
    def test_what_is_not_genuine(self, headers: dict[str, str]) -> None:
        with pytest.raises(InvalidSignature) as caught:
            verify_webhook(BODY, headers, [SECRET, PUBLIC], now=TIMESTAMP)
        assert str(caught.value) == str(InvalidSignature())

    def test_a_moved_boundary_between_id_and_timestamp(self) -> None:
        message = f"a.{TIMESTAMP}.{TIMESTAMP}.{{}}"
        signature = parse_signer(SECRET).sign(message.encode())
        with pytest.raises(InvalidSignature):
            verify_webhook(b"{}", _headers(signature, TIMESTAMP, f"a.{TIMESTAMP}"), SECRET, now=TIMESTAMP)

    @pytest.mark.parametrize(
        ("offset", "genuine"), [(300, True), (-300, True), (300.5, False), (-301, False)]
    )
    def test_the_tolerance_counts_both_ways(self, offset: float, genuine: bool) -> None:
        assert _genuine(SIGNATURE, SECRET, now=TIMESTAMP + offset) is genuine

    def test_a_clock_that_is_no_number_lets_nothing_pass(self) -> None:
        assert not _genuine(SIGNATURE, SECRET, now=float("nan"))

    def test_without_a_clock_the_real_one_is_used(self) -> None:
        with pytest.raises(InvalidSignature):
            verify_webhook(BODY, _headers(SIGNATURE), SECRET)

    def test_bytes_of_any_kind(self) -> None:
        for body in (bytearray(BODY), memoryview(BODY)):
            verify_webhook(body, _headers(SIGNATURE), SECRET, now=TIMESTAMP)  # type: ignore[arg-type]

    def test_a_body_that_was_decoded_is_a_mistake(self) -> None:
        with pytest.raises(TypeError):
            verify_webhook(BODY.decode(), _headers(SIGNATURE), SECRET, now=TIMESTAMP)  # type: ignore[arg-type]

    @pytest.mark.parametrize("secrets", [[], "", ["", SECRET]])
    def test_no_secret_lets_nothing_pass(self, secrets: str | list[str]) -> None:
        with pytest.raises(InvalidSecret):
            verify_webhook(BODY, _headers(SIGNATURE), secrets, now=TIMESTAMP)
