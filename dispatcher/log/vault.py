"""What the log may not hold: urls, headers, secrets, payloads, answers, each sealed with a key of its own."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection

from dispatcher.errors import PayloadErased, VaultDamaged
from dispatcher.log.seal import WRAPPED, Keyring, new_key, seal, unseal

DIGEST_KEY = "digest"
ERASED = bytes(WRAPPED)


class SealedPayload(Struct, frozen=True):
    """A payload, encrypted before the log's lock is taken."""

    wrapped: bytes
    sealed: bytes
    digest: str
    """Recognises a repeat of the same content, and tells nothing once the key is gone."""

    def __repr__(self) -> str:
        return "SealedPayload()"  # Without a master key, `wrapped` is the key itself.


class Vault:
    """Seals and unseals bytes; what they mean is the caller's."""

    def __init__(self, keyring: Keyring, digest_key: bytes) -> None:
        self._keyring = keyring
        self._digest_key = digest_key

    @classmethod
    def open(cls, connection: Connection, keyring: Keyring) -> Vault:
        """A database's vault, made on first use. Raises MasterKeyMissing when it is under another key."""
        found = connection.exec_driver_sql(
            "SELECT key FROM dispatcher_vault_keys WHERE name = ?", (DIGEST_KEY,)
        ).scalar()
        if found is not None:
            return cls(keyring, keyring.unwrap(found))
        key = new_key()
        connection.exec_driver_sql(
            "INSERT INTO dispatcher_vault_keys VALUES (?, ?)", (DIGEST_KEY, keyring.wrap(key))
        )
        return cls(keyring, key)

    def digest(self, kind: str, text: str) -> str:
        """A digest that only this database can make: it tells equal things from others, and nothing else."""
        return hmac.digest(self._digest_key, f"{kind}\0{text}".encode(), sha256).hex()[:32]

    def write_endpoint(self, connection: Connection, endpoint_id: str, plain: bytes) -> None:
        key = new_key()
        connection.exec_driver_sql(
            "INSERT OR REPLACE INTO dispatcher_vault_endpoints VALUES (?, ?, ?)",
            (endpoint_id, self._keyring.wrap(key), seal(key, plain, f"endpoint {endpoint_id}")),
        )

    def read_endpoint(self, connection: Connection, endpoint_id: str) -> bytes:
        """Raises VaultDamaged when there is nothing about it."""
        wrapped, sealed = _only_row(
            connection,
            "SELECT key, sealed FROM dispatcher_vault_endpoints WHERE endpoint_id = ?",
            endpoint_id,
        )
        return unseal(self._keyring.unwrap(wrapped), sealed, f"endpoint {endpoint_id}")

    def seal_payload(self, delivery_id: str, plain: bytes) -> SealedPayload:
        key = new_key()
        sealed = seal(key, plain, f"payload {delivery_id}")
        return SealedPayload(self._keyring.wrap(key), sealed, content_digest(key, plain))

    def write_payloads(self, connection: Connection, payloads: Iterable[tuple[int, SealedPayload]]) -> None:
        """Payloads by the position of their Enqueued entries."""
        rows = list(payloads)
        if not rows:
            return
        connection.exec_driver_sql(
            "INSERT INTO dispatcher_payload_keys VALUES (?, ?)", [(n, payload.wrapped) for n, payload in rows]
        )
        connection.exec_driver_sql(
            "INSERT INTO dispatcher_payloads VALUES (?, ?)", [(n, payload.sealed) for n, payload in rows]
        )

    def read_sealed(self, connection: Connection, n: int) -> tuple[bytes, bytes]:
        """The wrapped key and the sealed payload of position n, to be unsealed outside the transaction."""
        wrapped, sealed = _only_row(
            connection,
            "SELECT k.key, p.sealed FROM dispatcher_payload_keys AS k"
            " JOIN dispatcher_payloads AS p ON p.n = k.n WHERE k.n = ?",
            n,
        )
        return wrapped, sealed

    def unseal_payload(self, delivery_id: str, wrapped: bytes, sealed: bytes) -> bytes:
        """Raises PayloadErased when its key was destroyed."""
        return unseal(self._key(wrapped), sealed, f"payload {delivery_id}")

    def digest_as_in(self, connection: Connection, n: int, plain: bytes) -> str:
        """The digest that this content would have as the payload of position n. Raises PayloadErased."""
        return content_digest(self._payload_key(connection, n), plain)

    def write_response(self, connection: Connection, position: int, n: int, body: bytes) -> None:
        """What came back on the attempt at `position`, under the key of the payload of position n."""
        sealed = seal(self._payload_key(connection, n), body, f"response {position}")
        connection.exec_driver_sql("INSERT INTO dispatcher_responses VALUES (?, ?, ?)", (position, n, sealed))

    def _payload_key(self, connection: Connection, n: int) -> bytes:
        (wrapped,) = _only_row(connection, "SELECT key FROM dispatcher_payload_keys WHERE n = ?", n)
        return self._key(wrapped)

    def _key(self, wrapped: bytes) -> bytes:
        if wrapped == ERASED:
            raise PayloadErased("the payload's key was destroyed")
        return self._keyring.unwrap(wrapped)


def _only_row(connection: Connection, statement: str, of: int | str) -> Any:
    row = connection.exec_driver_sql(statement, (of,)).first()
    if row is None:
        raise VaultDamaged("what should be stored here is missing")
    return row


def content_digest(key: bytes, plain: bytes) -> str:
    return hmac.digest(key, b"content\0" + plain, sha256).hex()[:32]
