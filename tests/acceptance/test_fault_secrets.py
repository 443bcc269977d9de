"""However a delivery fails, no secret is in an output, be it a worker's or a command's, nor in a file."""

from __future__ import annotations

import base64
from pathlib import Path

from dispatcher.delivery.authentication import Authentication, BasicLogin, BearerToken, SecretHeader
from dispatcher.delivery.settings import Settings, encode
from dispatcher.live import Dispatcher
from dispatcher.log.open import Database
from dispatcher.log.seal import Keyring
from dispatcher.log.vault import Vault
from tests.acceptance.aloud import worker_aloud
from tests.acceptance.cli import dispatcher
from tests.acceptance.lively import OPEN, QUICK, MovedClock, attempts, eventually, rows
from tests.acceptance.mob import QUICK as HOSTILE
from tests.acceptance.mob import mob_elsewhere
from tests.acceptance.receiver import Receiver, Reply
from tests.acceptance.test_live_secrets import CANARIES, KEY, canary_url, everything, leaked

MASTER = b"canary-of-the-master-key-kkkkkkk"
MASTER_SPELLINGS = (MASTER, base64.b64encode(MASTER), MASTER.hex().encode())
AUTHENTICATIONS: tuple[Authentication, ...] = (
    BearerToken(token=CANARIES["token"]),
    BasicLogin(username=CANARIES["user"], password=CANARIES["password"]),
    SecretHeader(name="X-Key", value=CANARIES["token"]),
)
COMMANDS = (
    "endpoint list",
    "endpoint show telling",
    "status at-garbage",
    "history at-telling",
    "history at-failing --json",
    "dead-letters",
    "log tail --json",
    "log verify",
    "replay --check",
)
EXPECTED = {
    "refused": (0, "connection_refused"),
    "unknown": (0, "dns_failed"),
    "stored-header": (0, "invalid_headers"),
    "stored-address": (0, "host_not_allowed"),
    "failing": (503, None),
    "endless-body": (200, None),
    "bomb": (200, None),
    "interim": (0, "invalid_response"),
    "reset": (0, "connection_reset"),
    "garbage": (0, "invalid_response"),
    "telling": (500, None),
    "tls": (0, "tls_failed"),
}


def register(live: Dispatcher, endpoint_id: str, url: str, number: int) -> None:
    live.register(
        endpoint_id,
        url,
        secret=f"whsec_{KEY}",
        headers=[("X-Canary", CANARIES["header"])],
        auth=AUTHENTICATIONS[number % len(AUTHENTICATIONS)],
        policy=QUICK,
    )


def test_no_failure_tells_a_secret(
    database: Path, receiver: Receiver, clock: MovedClock, tmp_path: Path
) -> None:
    """Receivers here send back what they were sent; the worker says all that it can."""
    heard = tmp_path / "heard"
    with (
        mob_elsewhere() as mob,
        Dispatcher(database, keyring=Keyring([MASTER]), clock=clock, open_networks=OPEN) as live,
    ):
        urls = {
            "refused": canary_url("127.0.0.2:1"),
            "unknown": canary_url("no-such-host.invalid"),
            "stored-header": canary_url(receiver.address),
            "stored-address": canary_url(receiver.address),
            "failing": canary_url(receiver.address),
        }
        for kind in HOSTILE:
            urls[kind] = canary_url(mob.address(kind)).replace("http", "https" if kind == "tls" else "http")
        canary = CANARIES["response"]
        receiver.answer("at-failing", Reply(503, (("Retry-After", canary), ("X-A", canary)), canary.encode()))
        for number, (endpoint_id, url) in enumerate(urls.items()):
            register(live, endpoint_id, url, number)
            live.enqueue(
                endpoint_id,
                {"name": CANARIES["payload"]},
                event_id=f"at-{endpoint_id}",
                headers=[("X-Event", CANARIES["event header"])],
            )
        with Database(database, "write") as opened, opened.write() as connection:
            vault = Vault.open(connection, Keyring([MASTER]))
            for endpoint_id, settings in (
                ("stored-header", Settings(url=urls["refused"], headers=(("X-A", canary + "\r\nX-B: c"),))),
                ("stored-address", Settings(url=canary_url("10.0.0.1"))),
            ):
                vault.write_endpoint(connection, f"default/{endpoint_id}", encode(settings))

        other = worker_aloud(database, clock, [b"another key, which does not fit!"], heard)
        assert other.ended() == 1, "under another master key nothing is sent"
        worker = worker_aloud(database, clock, [MASTER], heard)
        assert worker.hear() == "ready"
        for endpoint_id in urls:
            eventually(lambda: attempts(live, f"at-{endpoint_id}", endpoint_id))  # noqa: B023
        worker.line.send("stop")
        assert worker.hear() == "stopped"
        assert worker.ended() == 0
        outcomes = {name: attempts(live, f"at-{name}", name)[0] for name in urls}
        assert outcomes == EXPECTED
        assert not _told(everything(database)), "while it is open"
    assert not _told(everything(database)), "after it was closed"
    said = heard.read_bytes()
    assert b"MasterKeyMissing" in said
    assert b"DEBUG" in said
    assert not _told(said)
    sent = set(leaked(repr(receiver.seen).encode()))
    assert sent >= {"path", "query", "header", "event header", "payload"}, (
        "they went out, and could have stayed"
    )
    for command in COMMANDS:
        ran = dispatcher(*command.split(), "--database", str(database), at=tmp_path)
        assert ran.code == 0, ran.err
        assert ran.out
        assert not _told((ran.out + ran.err).encode()), command


def _told(text: bytes) -> list[str]:
    """The secrets in a text."""
    return leaked(text) + ["master key" for spelling in MASTER_SPELLINGS if spelling in text]


def test_a_command_that_fails_on_a_stored_secret_does_not_tell_it(
    database: Path, clock: MovedClock, tmp_path: Path
) -> None:
    with Dispatcher(database, keyring=Keyring([MASTER]), clock=clock, open_networks=OPEN) as live:
        register(live, "shop", canary_url("127.0.0.1:1"), 0)
        live.enqueue("shop", CANARIES["payload"], event_id="one")
    operations = tmp_path / "operations.json"
    operations.write_text('[["register", 0, "a", "https://a.example"]]')
    ran = dispatcher("run", str(operations), "--database", str(database), at=tmp_path)
    assert ran.code == 2, "a live log takes no simulated operations"
    assert not _told((ran.out + ran.err).encode())
    assert rows(database, "SELECT count(*) FROM dispatcher_log") == [(3,)]
