"""What the vault gives back, what it forgets, and what never lies in the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from dispatcher.errors import MasterKeyMissing, PayloadErased, VaultDamaged
from dispatcher.log.open import Database
from dispatcher.log.rows import insert_rows
from dispatcher.log.seal import Keyring, unseal
from dispatcher.log.vault import ERASED, SealedPayload, SealedRow, Vault

MASTER = bytes(range(32))
CANARY = b"canary-in-plain-text"


@pytest.fixture(params=[(), (MASTER,)], ids=["no master key", "a master key"])
def keyring(request: pytest.FixtureRequest) -> Keyring:
    return Keyring(request.param)


@pytest.fixture
def database(memory_folder: Path) -> Iterator[Database]:
    with closing(Database(memory_folder / "live.db")) as database:
        yield database


@pytest.fixture
def vault(database: Database, keyring: Keyring) -> Vault:
    return _opened(database, keyring)


def _opened(database: Database, keyring: Keyring) -> Vault:
    with database.write() as connection:
        return Vault.open(connection, keyring)


def _stored(database: Database, vault: Vault, n: int, plain: bytes) -> SealedPayload:
    payload = vault.seal_payload(f"m{n}", plain)
    with database.write() as connection:
        vault.write_payloads(partial(insert_rows, connection), [(n, payload)])
    return payload


def _plain(vault: Vault, delivery_id: str, row: SealedRow) -> bytes:
    return vault.unseal_payload(delivery_id, vault.payload_key(row.wrapped), row.sealed)


def _erase(database: Database, n: int) -> None:
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE dispatcher_payload_keys SET key = ? WHERE n = ?", (ERASED, n))


def test_an_endpoint_comes_back_as_it_was_last_written(
    database: Database, vault: Vault, keyring: Keyring
) -> None:
    with database.write() as connection:
        vault.write_endpoint(connection, "default/shop", b"before")
        vault.write_endpoint(connection, "default/shop", b"after")
        vault.write_endpoint(connection, "default/mail", b"other")
    with Database(str(database.path), "read") as reopened, reopened.read() as connection:
        again = Vault.open(connection, keyring)
        assert again.read_endpoint(connection, "default/shop") == b"after"
        assert again.read_endpoint(connection, "default/mail") == b"other"


def test_a_payload_comes_back_to_its_delivery_only(database: Database, vault: Vault) -> None:
    payloads = [(n, vault.seal_payload(f"m{n}", b"%d" % n)) for n in (3, 5)]
    with database.write() as connection:
        vault.write_payloads(partial(insert_rows, connection), payloads)
        vault.write_payloads(partial(insert_rows, connection), [])
    with database.read() as connection:
        rows = vault.payload_rows(connection, [3, 4, 5])
    assert rows.keys() == {3, 5}, "what is missing is left out"
    assert _plain(vault, "m3", rows[3]) == b"3"
    assert _plain(vault, "m5", rows[5]) == b"5"
    with pytest.raises(VaultDamaged):
        _plain(vault, "m5", rows[3])


def test_one_endpoints_secrets_are_not_read_as_anothers(database: Database, vault: Vault) -> None:
    with database.write() as connection:
        vault.write_endpoint(connection, "default/shop", b"secrets")
        connection.exec_driver_sql("UPDATE dispatcher_vault_endpoints SET endpoint_id = 'other/shop'")
        with pytest.raises(VaultDamaged):
            vault.read_endpoint(connection, "other/shop")


def test_what_is_missing_is_said_to_be(database: Database, vault: Vault) -> None:
    with database.write() as connection:
        for read in (
            lambda: vault.read_endpoint(connection, "default/shop"),
            lambda: vault.digest_as_in(connection, 3, b""),
        ):
            with pytest.raises(VaultDamaged, match="missing"):
                read()


def test_digests_tell_a_repeat_and_nothing_to_others(database: Database, vault: Vault) -> None:
    first = _stored(database, vault, 3, b"content")
    second = _stored(database, vault, 5, b"content")
    assert first.digest != second.digest, "each is made with the key of its payload"
    with database.read() as connection:
        assert vault.digest_as_in(connection, 3, b"content") == first.digest
        assert vault.digest_as_in(connection, 5, b"content") == second.digest
        assert vault.digest_as_in(connection, 3, b"other") != first.digest


def test_without_its_key_a_payload_is_erased(database: Database, vault: Vault) -> None:
    _stored(database, vault, 3, b"content")
    _stored(database, vault, 5, b"kept")
    _erase(database, 3)
    with database.write() as connection:
        rows = vault.payload_rows(connection, [3, 5])
        with pytest.raises(PayloadErased):
            vault.payload_key(rows[3].wrapped)
        with pytest.raises(PayloadErased):
            vault.digest_as_in(connection, 3, b"content")
        assert _plain(vault, "m5", rows[5]) == b"kept"


def test_a_response_goes_with_its_payload(database: Database, vault: Vault) -> None:
    """It is sealed with the payload's key: one erasure is enough for both."""
    payload = _stored(database, vault, 3, b"content")
    key = vault.payload_key(payload.wrapped)
    with database.write() as connection:
        vault.write_response(connection, 4, 3, key, CANARY)
        (row,) = connection.exec_driver_sql("SELECT n, payload, sealed FROM dispatcher_responses")
    assert (row.n, row.payload) == (4, 3)
    assert unseal(key, row.sealed, "response 4") == CANARY


def test_digests_of_names_last_as_long_as_the_database_and_are_its_own(
    database: Database, vault: Vault, keyring: Keyring, tmp_path: Path
) -> None:
    digest = vault.digest("url", "https://shop.example")
    assert _opened(database, keyring).digest("url", "https://shop.example") == digest
    assert vault.digest("order key", "https://shop.example") != digest
    with Database(tmp_path / "other.db") as other:
        assert _opened(other, keyring).digest("url", "https://shop.example") != digest


def test_a_vault_does_not_open_without_its_master_key(database: Database) -> None:
    _opened(database, Keyring([MASTER]))
    for wrong in (Keyring(), Keyring([MASTER[::-1]])):
        with pytest.raises(MasterKeyMissing):
            _opened(database, wrong)


def test_a_master_key_may_come_later_and_change(database: Database) -> None:
    payload = _stored(database, _opened(database, Keyring()), 3, b"content")
    row = SealedRow(payload.wrapped, payload.sealed)
    assert _plain(_opened(database, Keyring([MASTER])), "m3", row) == b"content"
    with database.write() as connection:
        _opened_vault = Vault.open(connection, Keyring([MASTER[::-1], MASTER]))
        assert _opened_vault.digest_as_in(connection, 3, b"content") == payload.digest


def test_no_plain_byte_lies_in_any_file(tmp_path: Path, keyring: Keyring) -> None:
    with closing(Database(tmp_path / "live.db")) as database, database.write() as connection:
        vault = Vault.open(connection, keyring)
        vault.write_endpoint(connection, "default/shop", b"secret " + CANARY)
        payload = vault.seal_payload("m3", b"payload " + CANARY)
        vault.write_payloads(partial(insert_rows, connection), [(3, payload)])
        vault.write_response(connection, 4, 3, vault.payload_key(payload.wrapped), b"answer " + CANARY)
        connection.exec_driver_sql(
            "UPDATE dispatcher_vault_keys SET name = name || ? || ?",
            (vault.digest("url", CANARY.decode()), vault.seal_payload("m4", CANARY).digest),
        )
        _assert_without_canary(tmp_path)
    _assert_without_canary(tmp_path)


def _assert_without_canary(folder: Path) -> None:
    """While it is being written, with its WAL, and afterwards."""
    files = list(folder.iterdir())
    assert files
    assert not [file for file in files if CANARY in file.read_bytes()]


def test_with_a_master_key_no_payload_key_lies_in_the_file_either(database: Database) -> None:
    vault = _opened(database, Keyring([MASTER]))
    payload = _stored(database, vault, 3, b"content")
    key = Keyring([MASTER]).unwrap(payload.wrapped)
    assert not [file for file in Path(str(database.path)).parent.iterdir() if key in file.read_bytes()]


def test_neither_a_vault_nor_a_payload_shows_what_it_knows(database: Database) -> None:
    vault = _opened(database, Keyring())
    payload = vault.seal_payload("m3", CANARY)
    key = Keyring().unwrap(payload.wrapped)
    shown = f"{vault!r} {payload!r} {payload} {[payload]}"
    assert not any(form in shown for form in (repr(key)[2:-1], key.hex(), CANARY.decode()))
