"""Changing the master key: every key is wrapped anew, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dispatcher import run
from dispatcher.errors import DatabaseMissing, MasterKeyMissing, WrongKind
from dispatcher.log import rewrap as rewrapping
from dispatcher.log.open import Database
from dispatcher.log.rewrap import rewrap
from dispatcher.log.rows import insert_rows
from dispatcher.log.schema import inbox_keys
from dispatcher.log.seal import Keyring
from dispatcher.log.vault import ERASED, Vault

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
BOTH = Keyring([NEW, OLD])
PAYLOADS = 1_200


@pytest.fixture(params=[(), (OLD,)], ids=["no master key before", "an old one"])
def before(request: pytest.FixtureRequest) -> Keyring:
    return Keyring(request.param)


@pytest.fixture
def database(memory_folder: Path, before: Keyring) -> Iterator[Database]:
    """A vault with 2 endpoints, 2 events in the inbox, and 1,200 payloads, the third of which was erased."""
    with closing(Database(memory_folder / "live.db")) as database:
        with database.write() as connection:
            vault = Vault.open(connection, before)
            for name in ("shop", "mail"):
                vault.write_endpoint(connection, f"default/{name}", name.encode())
            payloads = [(n, vault.seal_payload(f"m{n}", b"%d" % n)) for n in range(1, PAYLOADS + 1)]
            vault.write_payloads(partial(insert_rows, connection), payloads)
            waiting = [(n, vault.seal_payload(f"i{n}", b"%d" % n).wrapped) for n in (7, 8)]
            insert_rows(connection, inbox_keys, waiting)
            connection.exec_driver_sql("UPDATE dispatcher_payload_keys SET key = ? WHERE n = 3", (ERASED,))
        yield database


def keys(database: Database) -> dict[Any, bytes]:
    with database.read() as connection:
        return {
            (table, name): key
            for table, column in rewrapping.TABLES
            for name, key in connection.exec_driver_sql(f"SELECT {column}, key FROM {table}")
        }


def check(database: Database, keyring: Keyring) -> None:
    with database.read() as connection:
        vault = Vault.open(connection, keyring)
        assert vault.read_endpoint(connection, "default/shop") == b"shop"
        assert vault.read_endpoint(connection, "default/mail") == b"mail"
        for n, row in vault.payload_rows(connection, (1, 2, 4, PAYLOADS)).items():
            assert vault.unseal_payload(f"m{n}", vault.payload_key(row.wrapped), row.sealed) == b"%d" % n


def test_afterwards_the_new_key_opens_everything_alone(database: Database, before: Keyring) -> None:
    with database.read() as connection:
        digest = Vault.open(connection, before).digest("url", "https://shop.example")
    steps: list[tuple[int, int]] = []
    assert rewrap(database.path, BOTH, lambda *step: steps.append(step)) == {
        "dispatcher_vault_keys": (1, 1),
        "dispatcher_vault_endpoints": (2, 2),
        "dispatcher_inbox_keys": (2, 2),
        "dispatcher_payload_keys": (PAYLOADS - 1, PAYLOADS - 1),
    }
    check(database, Keyring([NEW]))
    with database.read() as connection:
        assert Vault.open(connection, Keyring([NEW])).digest("url", "https://shop.example") == digest
        with pytest.raises(MasterKeyMissing):
            Vault.open(connection, before)
    assert steps == [(1, 1205), (3, 1205), (5, 1205), (505, 1205), (1005, 1205), (1205, 1205)]


def test_erased_keys_stay_as_they_are(database: Database) -> None:
    rewrap(database.path, BOTH)
    assert [name for name, key in keys(database).items() if key == ERASED] == [("dispatcher_payload_keys", 3)]


def test_a_second_run_changes_nothing(database: Database) -> None:
    rewrap(database.path, BOTH)
    first = keys(database)
    for keyring in (BOTH, Keyring([NEW])):
        assert {table.changed for table in rewrap(database.path, keyring).values()} == {0}
    assert keys(database) == first


def test_stopped_on_the_way_it_does_the_rest_next_time(database: Database) -> None:
    def stop(done: int, total: int) -> None:
        if done > 600:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rewrap(database.path, BOTH, stop)
    check(database, BOTH)
    told = rewrap(database.path, BOTH)
    assert told["dispatcher_payload_keys"] == (PAYLOADS - 1, 200)
    check(database, Keyring([NEW]))


def test_others_write_between_its_transactions(database: Database) -> None:
    def beside(done: int, total: int) -> None:
        with Database(database.path) as other, other.write() as connection:
            vault = Vault.open(connection, BOTH)
            n = PAYLOADS + done
            vault.write_payloads(
                partial(insert_rows, connection), [(n, vault.seal_payload(f"m{n}", b"beside"))]
            )

    rewrap(database.path, BOTH, beside)
    assert all(BOTH.is_current(key) for key in keys(database).values() if key != ERASED)


def test_without_the_old_key_nothing_is_changed(database: Database) -> None:
    rewrap(database.path, Keyring([OLD]))
    first = keys(database)
    for keyring in (Keyring([NEW]), Keyring()):
        with pytest.raises(MasterKeyMissing):
            rewrap(database.path, keyring)
    assert keys(database) == first


def test_there_must_be_a_live_database(tmp_path: Path) -> None:
    with pytest.raises(DatabaseMissing):
        rewrap(tmp_path / "none.db", BOTH)
    run([["register", 0, "a", "https://a.example"]], tmp_path / "simulated.db")
    with pytest.raises(WrongKind):
        rewrap(tmp_path / "simulated.db", BOTH)
