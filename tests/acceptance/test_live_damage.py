"""What is stored and cannot be sent stops nobody else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher.delivery.settings import Settings, encode
from dispatcher.live import Dispatcher
from dispatcher.log.open import Database
from dispatcher.log.seal import Keyring
from dispatcher.log.vault import Vault
from tests.acceptance.lively import attempts, eventually, eventually_is, state
from tests.acceptance.receiver import Receiver


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        (Settings(url="http://127.0.0.1:1/", headers=(("X-A", "a\r\nX-Evil: 1"),)), "invalid_headers"),
        (Settings(url="http://127.0.0.1:1/", headers=(("webhook-id", "a"),)), "invalid_headers"),
        (Settings(url="http://10.0.0.1/"), "host_not_allowed"),
        (Settings(url="gopher://127.0.0.1/"), "unsupported_scheme"),
    ],
)
def test_what_was_stored_before_a_rule_existed_ends_its_events_and_no_others(
    live: Dispatcher, receiver: Receiver, database: Path, settings: Settings, code: str
) -> None:
    for endpoint_id in ("shop", "other"):
        live.register(endpoint_id, receiver.url)
        live.enqueue(endpoint_id, 1, event_id="one")
    with Database(database, "write") as opened, opened.write() as connection:
        Vault.open(connection, Keyring()).write_endpoint(connection, "default/shop", encode(settings))
    with live.worker():
        eventually(lambda: state(live, "one", "other") == "delivered")
        eventually_is(live, "one", "dead", attempts=1)
    assert attempts(live, "one") == [(0, code)]
    assert len(receiver.seen) == 1


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE dispatcher_vault_endpoints SET sealed = zeroblob(64) WHERE endpoint_id = 'default/shop'",
        "UPDATE dispatcher_vault_endpoints SET key = zeroblob(69) WHERE endpoint_id = 'default/shop'",
        "DELETE FROM dispatcher_vault_endpoints WHERE endpoint_id = 'default/shop'",
        "UPDATE dispatcher_payloads SET sealed = zeroblob(64) WHERE n = 3",
        "UPDATE dispatcher_payload_keys SET key = zeroblob(69) WHERE n = 3",
        "DELETE FROM dispatcher_payloads WHERE n = 3",
    ],
)
def test_what_cannot_be_decrypted_holds_up_nobody_else(
    live: Dispatcher, receiver: Receiver, database: Path, damage: str
) -> None:
    live.register("shop", receiver.url)
    live.enqueue("shop", 1, event_id="one")
    live.register("other", receiver.url)
    live.enqueue("other", 1, event_id="fine")
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute(damage).rowcount == 1
    with live.worker():
        eventually(lambda: state(live, "fine", "other") == "delivered")
        live.enqueue("other", 1, event_id="later")
        eventually(lambda: state(live, "later", "other") == "delivered")
        eventually(lambda: live.status("shop", "one")["attempts"] or state(live, "one") == "dead")
    assert state(live, "one") in ("pending", "dead")
    assert {arrival.event for arrival in receiver.seen} == {"fine", "later"}
    with closing(sqlite3.connect(database)) as connection, connection:
        # A key of zeros would be found: nobody has erased it.
        connection.execute("UPDATE dispatcher_payload_keys SET key = randomblob(69) WHERE n = 3")
