"""Signatures as Standard Webhooks defines them: `v1` (HMAC-SHA256) and `v1a` (ed25519)."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Iterable
from hashlib import sha256
from typing import Final, Protocol

from dispatcher.delivery.refusals import InvalidSecret

SHORTEST_KEY: Final = 24
LONGEST_KEY: Final = 64
"""Bytes of a shared secret."""


class Verifier(Protocol):
    """What a receiver knows of a secret."""

    def accepts(self, message: bytes, signature: str) -> bool:
        """Whether one signature (`v1,…` or `v1a,…`) is this secret's, for this message."""


class Signer(Verifier, Protocol):
    """A secret, ready to sign."""

    def sign(self, message: bytes) -> str:
        """One signature: its version, a comma, base64."""


class HmacKey:
    """A secret shared with the receiver."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, message: bytes) -> str:
        return "v1," + base64.b64encode(hmac.digest(self._key, message, sha256)).decode()

    def accepts(self, message: bytes, signature: str) -> bool:
        # "replace": what cannot be encoded was never signed, and must not be an error of its own.
        return hmac.compare_digest(self.sign(message).encode(), signature.encode(errors="replace"))


class Ed25519PublicKey:
    """The half of an ed25519 key that only verifies."""

    def __init__(self, raw: bytes) -> None:
        # Deferred, here and below: most secrets are shared ones and need no cryptography.
        from cryptography.hazmat.primitives.asymmetric import ed25519

        self._key = ed25519.Ed25519PublicKey.from_public_bytes(raw)

    def accepts(self, message: bytes, signature: str) -> bool:
        from cryptography.exceptions import InvalidSignature

        version, _, encoded = signature.partition(",")
        if version != "v1a":
            return False
        try:
            self._key.verify(base64.b64decode(encoded, validate=True), message)
        except (InvalidSignature, ValueError):
            return False
        return True


class Ed25519Key:
    """A private key; the receiver needs only its public half."""

    def __init__(self, seed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public_bytes = self._key.public_key().public_bytes_raw()

    @property
    def public(self) -> str:
        """What the receiver is told: `whpk_` and base64."""
        return "whpk_" + base64.b64encode(self.public_bytes).decode()

    def sign(self, message: bytes) -> str:
        return "v1a," + base64.b64encode(self._key.sign(message)).decode()

    def accepts(self, message: bytes, signature: str) -> bool:
        return Ed25519PublicKey(self.public_bytes).accepts(message, signature)


def new_secret() -> str:
    """A fresh shared secret of 32 random bytes."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def parse_signer(secret: str) -> HmacKey | Ed25519Key:
    """`whsec_` (or no prefix) and base64 of 24 to 64 bytes, or `whsk_` and base64 of an ed25519 key.

    Raises InvalidSecret: a secret is never used undecoded, never empty and never shortened.
    """
    if secret.startswith("whpk_"):
        raise InvalidSecret("a public key cannot sign")
    if secret.startswith("whsk_"):
        raw = _decode(secret.removeprefix("whsk_"))
        if len(raw) not in (32, 64):
            raise InvalidSecret("an ed25519 secret is whsk_ and base64 of 32 or 64 bytes")
        key = Ed25519Key(raw[:32])
        # Of 64 bytes the second half is the public key; another one there is a secret pasted wrongly.
        if raw[32:] not in (b"", key.public_bytes):
            raise InvalidSecret("the halves of the ed25519 secret do not belong together")
        return key
    raw = _decode(secret.removeprefix("whsec_"))
    if not SHORTEST_KEY <= len(raw) <= LONGEST_KEY:
        raise InvalidSecret(f"a signing secret is whsec_ and base64 of {SHORTEST_KEY} to {LONGEST_KEY} bytes")
    return HmacKey(raw)


def parse_verifier(secret: str) -> Verifier:
    """A secret as `parse_signer` takes it, or a public key: `whpk_` and base64 of 32 bytes."""
    if not secret.startswith("whpk_"):
        return parse_signer(secret)
    raw = _decode(secret.removeprefix("whpk_"))
    if len(raw) != 32:
        raise InvalidSecret("a public key is whpk_ and base64 of 32 bytes")
    return Ed25519PublicKey(raw)


def signed_message(event_id: str, timestamp: int, body: bytes) -> bytes:
    """What is signed: id, timestamp (seconds since 1970) and body, apart by dots.

    Raises ValueError for an id with a dot: id and timestamp could then be read in two ways.
    """
    if not event_id or "." in event_id:
        raise ValueError("a signed id is not empty and holds no dot")
    return b"%s.%d.%s" % (event_id.encode(), timestamp, body)


def signature_header(signers: Iterable[Signer], event_id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`: one signature for each secret that is valid now, apart by spaces."""
    message = signed_message(event_id, timestamp, body)
    return " ".join(signer.sign(message) for signer in signers)


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        # `from None`: the cause would hold the secret.
        raise InvalidSecret("the signing secret is no base64") from None
