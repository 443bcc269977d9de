"""What the log may not hold: urls, headers, secrets, payloads, answers, each sealed with a key of its own."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Collection, Iterable
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, Table

from dispatcher.errors import PayloadErased, VaultDamaged
from dispatcher.log.rows import Row, fetch_at_once
from dispatcher.log.schema import payload_keys
from dispatcher.log.schema import payloads as payloads_table
from dispatcher.log.seal import WRAPPED, Keyring, new_key, seal, unseal

DIGEST_KEY = "digest"
ERASED = bytes(WRAPPED)


Insert = Callable[[Table, list[Row]], None]


class SealedRow(NamedTuple):
    """What is stored under a key of its own, and that key, wrapped."""

    wrapped: bytes
    sealed: bytes

    def __repr__(self) -> str:
        return "SealedRow()"  # Without a master key, `wrapped` is the key itself.


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
        rows = self.endpoint_rows(connection, [endpoint_id])
        if not rows:
            raise _missing()
        return self.unseal_endpoint(endpoint_id, rows[endpoint_id])

    def endpoint_rows(self, connection: Connection, ids: Collection[str]) -> dict[str, SealedRow]:
        """What is stored about endpoints, to be unsealed outside the transaction."""
        table = "dispatcher_vault_endpoints WHERE endpoint_id"
        return _rows(connection, "endpoint_id, hex(key), hex(sealed)", table, ids)

    def unseal_endpoint(self, endpoint_id: str, row: SealedRow) -> bytes:
        return unseal(self._keyring.unwrap(row.wrapped), row.sealed, f"endpoint {endpoint_id}")

    def seal_payload(self, delivery_id: str, plain: bytes, content: bytes | None = None) -> SealedPayload:
        """Its digest is that of the content that tells a repeat: of itself unless that is given."""
        key = new_key()
        sealed = seal(key, plain, f"payload {delivery_id}")
        digest = content_digest(key, plain if content is None else content)
        return SealedPayload(self._keyring.wrap(key), sealed, digest)

    def write_payloads(self, insert: Insert, payloads: Iterable[tuple[int, SealedPayload]]) -> None:
        """Payloads by the position of their Enqueued entries; `insert` takes a table and rows of it."""
        rows = list(payloads)
        insert(payload_keys, [(n, payload.wrapped) for n, payload in rows])
        insert(payloads_table, [(n, payload.sealed) for n, payload in rows])

    def payload_rows(self, connection: Connection, positions: Collection[int]) -> dict[int, SealedRow]:
        """The payloads of these positions, to be unsealed outside the transaction."""
        table = "dispatcher_payload_keys AS k JOIN dispatcher_payloads AS p ON p.n = k.n WHERE k.n"
        return _rows(connection, "k.n, hex(k.key), hex(p.sealed)", table, positions)

    def payload_key(self, wrapped: bytes) -> bytes:
        """Raises PayloadErased when it was destroyed."""
        if wrapped == ERASED:
            raise PayloadErased("the payload's key was destroyed")
        return self._keyring.unwrap(wrapped)

    def unseal_payload(self, delivery_id: str, key: bytes, sealed: bytes) -> bytes:
        return unseal(key, sealed, f"payload {delivery_id}")

    def digest_as_in(self, connection: Connection, n: int, plain: bytes) -> str:
        """The digest that this content would have as the payload of position n. Raises PayloadErased."""
        (wrapped,) = _only_row(connection, "SELECT key FROM dispatcher_payload_keys WHERE n = ?", n)
        return content_digest(self.payload_key(wrapped), plain)

    def write_response(self, connection: Connection, position: int, n: int, key: bytes, body: bytes) -> None:
        """What came back on the attempt at `position`, under the key of the payload of position n."""
        sealed = seal(key, body, f"response {position}")
        connection.exec_driver_sql("INSERT INTO dispatcher_responses VALUES (?, ?, ?)", (position, n, sealed))


def _only_row(connection: Connection, statement: str, of: int | str) -> Any:
    row = connection.exec_driver_sql(statement, (of,)).first()
    if row is None:
        raise _missing()
    return row


def _missing() -> VaultDamaged:
    return VaultDamaged("what should be stored here is missing")


def _rows(connection: Connection, columns: str, table: str, ids: Collection[Any]) -> dict[Any, SealedRow]:
    """Rows of (id, wrapped key, sealed) by id; ids without one are left out."""
    if not ids:
        return {}
    given = (json.dumps(list(ids)),)
    found = fetch_at_once(connection, columns, f"{table} IN (SELECT value FROM json_each(?))", given)
    return {i: SealedRow(bytes.fromhex(wrapped), bytes.fromhex(sealed)) for i, wrapped, sealed in found}


def content_digest(key: bytes, plain: bytes) -> str:
    return hmac.digest(key, b"content\0" + plain, sha256).hex()[:32]
