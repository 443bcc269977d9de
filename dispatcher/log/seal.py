"""Encryption of what the log may not hold: AES-256-GCM, a key for each thing, wrapped by a master key.

A wrapped key always takes WRAPPED bytes, with a master key or without: so it can be overwritten in place.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dispatcher.errors import MasterKeyInvalid, MasterKeyMissing, VaultDamaged

KEY, NONCE, TAG, NAME = 32, 12, 16, 8
WRAPPED = 1 + NAME + NONCE + KEY + TAG
_BARE, _UNDER_MASTER = b"\x00", b"\x01"


class Keyring:
    """Master keys, the newest first. Without any, keys are stored as they are."""

    def __init__(self, masters: Sequence[bytes] = ()) -> None:
        """Raises MasterKeyInvalid unless each of them is 32 bytes."""
        if any(len(master) != KEY for master in masters):
            raise MasterKeyInvalid("a master key is not 32 bytes")
        self._masters = {sha256(b"master key" + master).digest()[:NAME]: AESGCM(master) for master in masters}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Keyring:
        """The keys in the file that DISPATCHER_MASTER_KEY_FILE names, or else in DISPATCHER_MASTER_KEY.

        Each is 32 bytes in base64, the newest first, apart by white space or commas. Raises MasterKeyInvalid:
        also for a file without any, lest an empty one leave everything unprotected.
        """
        text = environment.get("DISPATCHER_MASTER_KEY", "")
        file = environment.get("DISPATCHER_MASTER_KEY_FILE")
        if file:
            try:
                text = Path(file).read_text(encoding="ascii")
            except (OSError, UnicodeError):
                raise MasterKeyInvalid(
                    "the file named by DISPATCHER_MASTER_KEY_FILE cannot be read"
                ) from None
        words = text.replace(",", " ").split()
        if not words and (text or file):
            raise MasterKeyInvalid("no master key is where one is said to be")
        return cls([_parse(word) for word in words])

    def wrap(self, key: bytes) -> bytes:
        """A key as it is stored: under the newest master key, if there is one."""
        for name, master in self._masters.items():
            nonce = os.urandom(NONCE)
            return _UNDER_MASTER + name + nonce + master.encrypt(nonce, key, None)
        return _BARE + key + bytes(WRAPPED - 1 - KEY)

    def unwrap(self, wrapped: bytes) -> bytes:
        """The key. Raises MasterKeyMissing when none of the master keys is the one it is under.

        Raises VaultDamaged for what `wrap` never makes; a bare key that was changed is not told from another.
        """
        kind, key, rest = wrapped[:1], wrapped[1 : 1 + KEY], wrapped[1 + KEY :]
        if len(wrapped) != WRAPPED or kind not in (_BARE, _UNDER_MASTER):
            raise VaultDamaged("a stored key has not the form of one")
        if kind == _BARE:
            if any(rest) or not any(key):
                raise VaultDamaged("a stored key has not the form of one")
            return key
        master = self._masters.get(wrapped[1 : 1 + NAME])
        if master is None:
            raise MasterKeyMissing(
                "what is stored here was encrypted under a master key that is not configured"
            )
        nonce = wrapped[1 + NAME : 1 + NAME + NONCE]
        try:
            return master.decrypt(nonce, wrapped[1 + NAME + NONCE :], None)
        except InvalidTag:
            raise VaultDamaged("a stored key does not decrypt under its master key") from None

    def is_current(self, wrapped: bytes) -> bool:
        """Whether `wrap` would use the same master key today."""
        newest = next(iter(self._masters), None)
        return wrapped[:1] == _BARE if newest is None else wrapped[: 1 + NAME] == _UNDER_MASTER + newest


def new_key() -> bytes:
    return os.urandom(KEY)


def seal(key: bytes, plain: bytes, context: str) -> bytes:
    """Encrypt; `context` says what it is and whose, and must be the same to `unseal`."""
    nonce = os.urandom(NONCE)
    return nonce + AESGCM(key).encrypt(nonce, plain, context.encode())


def unseal(key: bytes, sealed: bytes, context: str) -> bytes:
    """Decrypt. Raises VaultDamaged when it was changed, or was sealed for something else."""
    try:
        return AESGCM(key).decrypt(sealed[:NONCE], sealed[NONCE:], context.encode())
    except (InvalidTag, ValueError):
        raise VaultDamaged("stored data does not decrypt under its key") from None


def _parse(word: str) -> bytes:
    try:
        key = base64.b64decode(word, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY:
        raise MasterKeyInvalid("a master key is not 32 bytes in base64")
    return key
