"""Nothing inside is reached: not by an address in any form, by a name, a redirect, or the environment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dispatcher.core.policy import RetryPolicy
from dispatcher.delivery.guard import Guard
from dispatcher.delivery.http import HttpTransport
from dispatcher.delivery.settings import Settings, encode
from dispatcher.delivery.transport import tenant_code
from dispatcher.errors import UsageError
from dispatcher.live import Dispatcher
from dispatcher.log.open import Database
from dispatcher.log.seal import Keyring
from dispatcher.log.vault import Vault
from tests.acceptance.lively import (
    OPEN,
    QUICK,
    MovedClock,
    attempts,
    enqueue,
    eventually,
    eventually_is,
    state,
)
from tests.acceptance.receiver import Receiver, Reply
from tests.acceptance.test_live_secrets import contents
from tests.unit.delivery.receivers import Names

ADDRESSES = """
0.0.0.0 10.0.0.1 100.64.0.1 127.0.0.1 169.254.169.254 172.16.0.1 192.0.0.1 192.0.0.192 192.0.2.1 192.168.0.1
198.18.0.1 198.19.255.254 198.51.100.1 203.0.113.1 224.0.0.1 255.255.255.255
:: ::1 ::127.0.0.1 ::ffff:169.254.169.254 ::ffff:7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::7f00:1 2002:7f00:1::
2001:0:7f00:1:0:ffff:80ff:fffe 2001:db8::1 fc00::1 fe80::1 ff02::1
"""
SPELLINGS = """
2130706433 0177.0.0.1 0x7f.1 0x7f000001 127.1 127.0.1 017700000001 127.0.0.1. [fe80::1%25eth0] [::1%25lo]
shop.example@127.0.0.1 shop.example:80@127.0.0.1 u:p@[::1] 127。0。0。1
"""


def bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def literals(port: str) -> list[str]:
    """URLs of what is inside; many lead to the port on this machine."""
    hosts = [*map(bracketed, ADDRESSES.split()), *SPELLINGS.split()]
    return [f"http://{host}:{port}/" for host in hosts] + [f"http://127.0.0.1:{port}#@shop.example/"]


def port_of(receiver: Receiver) -> str:
    return receiver.address.rpartition(":")[2]


@contextmanager
def guarded(database: Path, clock: MovedClock, names: Names | None = None) -> Iterator[Dispatcher]:
    """A dispatcher that has opened no network."""
    with Dispatcher(
        database, clock=clock, transport=HttpTransport(Guard(), lookup=names or Names({}))
    ) as live:
        yield live


def test_no_address_inside_is_registered_in_any_form(
    database: Path, clock: MovedClock, receiver: Receiver
) -> None:
    with guarded(database, clock) as live:
        live.register("shop", "https://shop.example/")
        before = contents(database)
        for url in literals(port_of(receiver)):
            for call in (lambda: live.register("new", url), lambda: live.update("shop", url=url)):  # noqa: B023
                with pytest.raises(UsageError) as refused:
                    call()
                assert refused.value.code == "host_not_allowed", url
        assert contents(database) == before


def test_an_address_inside_that_is_stored_is_dead_at_once_and_not_called(
    database: Path, clock: MovedClock, receiver: Receiver
) -> None:
    urls = literals(port_of(receiver))
    with guarded(database, clock) as live:
        for number in range(len(urls)):
            live.register(f"shop-{number}", "https://shop.example/")
            live.enqueue(f"shop-{number}", 1, event_id="one")
        with Database(database, "write") as opened, opened.write() as connection:
            vault = Vault.open(connection, Keyring())
            for number, url in enumerate(urls):
                vault.write_endpoint(connection, f"default/shop-{number}", encode(Settings(url=url)))
        with live.worker():
            for number, url in enumerate(urls):
                eventually(lambda: state(live, "one", f"shop-{number}") == "dead")  # noqa: B023
                assert attempts(live, "one", f"shop-{number}") == [(0, "host_not_allowed")], url
    receiver.assert_quiet()


def test_what_was_opened_once_is_closed_to_a_worker_that_has_not_opened_it(
    live: Dispatcher, database: Path, clock: MovedClock, receiver: Receiver
) -> None:
    live.register("shop", receiver.url)
    enqueue(live, "one")
    with guarded(database, clock) as other, other.worker():
        eventually_is(other, "one", "dead", attempts=1)
    receiver.assert_quiet()


def test_a_name_that_leads_inside_is_tried_again_and_shows_what_an_unknown_one_shows(
    database: Path, clock: MovedClock, receiver: Receiver
) -> None:
    """However many of its records are public."""
    port = port_of(receiver)
    names = {f"n{number}.example": [address] for number, address in enumerate(ADDRESSES.split())}
    names |= {"mixed.example": ["8.8.8.8", "127.0.0.1"], "other.example": ["::1", "2606:4700::1111"]}
    hosts = [*names, "unknown.example"]
    with guarded(database, clock, Names(dict(names))) as live:
        for number, host in enumerate(hosts):
            live.register(f"shop-{number}", f"http://{host}:{port}/", policy=QUICK)
            live.enqueue(f"shop-{number}", 1, event_id="one")
        with live.worker():
            for number in range(len(hosts)):
                eventually(lambda: attempts(live, "one", f"shop-{number}"))  # noqa: B023
        shown = [live.status(f"shop-{number}", "one") for number in range(len(hosts))]
    assert [one["last_error"] for one in shown] == ["address_blocked"] * len(names) + ["dns_failed"]
    alike = {
        (
            one["state"],
            one["attempts"],
            one["next_attempt_at"],
            one["last_status"],
            tenant_code(one["last_error"]),
        )
        for one in shown
    }
    assert alike == {("pending", 1, clock.ms + 10_000, 0, "unreachable")}
    receiver.assert_quiet()


def test_a_name_that_is_repointed_inside_between_two_attempts_is_not_followed_there(
    database: Path, clock: MovedClock, receiver: Receiver
) -> None:
    """127.0.0.1 stands for an address outside here, 127.0.0.2 for one inside."""
    names = Names({"shop.example": ["127.0.0.1"]})
    transport = HttpTransport(Guard(["127.0.0.1/32"]), lookup=names)
    policy = RetryPolicy(max_attempts=4, waits=(10,), retryable=((0, 0), (500, 599)))
    receiver.answer("one", 503, 200)
    with Dispatcher(database, clock=clock, transport=transport) as live:
        live.register("shop", f"http://shop.example:{port_of(receiver)}/", policy=policy)
        enqueue(live, "one")
        with live.worker():
            eventually_is(live, "one", "pending", attempts=1)
            for inside in (["127.0.0.2"], ["127.0.0.1", "127.0.0.2"]):
                names.names["shop.example"] = inside
                before = len(attempts(live, "one"))
                clock.move(10)
                eventually_is(live, "one", "pending", attempts=before + 1)
            assert receiver.events == ["one"]
            names.names["shop.example"] = ["127.0.0.1"]
            clock.move(10)
            eventually_is(live, "one", "delivered", attempts=4)
        blocked = (0, "address_blocked")
        assert attempts(live, "one") == [(503, None), blocked, blocked, (200, None)]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_the_end_and_is_not_followed(live: Dispatcher, receiver: Receiver, status: int) -> None:
    """Neither to where nobody may go nor to where everybody may."""
    live.register("shop", receiver.url, order="none")
    for event_id, location in (
        ("in", "http://169.254.169.254/"),
        ("out", f"http://{receiver.address}/moved"),
    ):
        receiver.answer(event_id, Reply(status, (("Location", location),)))
        enqueue(live, event_id)
    with live.worker():
        for event_id in ("in", "out"):
            eventually_is(live, event_id, "dead", attempts=1)
            assert attempts(live, event_id) == [(status, None)]
    assert [arrival.path for arrival in receiver.seen] == ["/hook", "/hook"]


def test_proxies_and_logins_of_the_environment_are_ignored(
    database: Path,
    clock: MovedClock,
    receiver: Receiver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login a password b\ndefault login a password b\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    proxy = Receiver()
    try:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, f"http://{proxy.address}")
            monkeypatch.setenv(name.upper(), f"http://{proxy.address}")
        with Dispatcher(database, clock=clock, open_networks=OPEN) as live, live.worker():
            live.register("shop", receiver.url)
            live.register("closed", "https://127.0.0.1:1/")
            enqueue(live, "one")
            enqueue(live, "two", endpoint_id="closed")
            assert "authorization" not in receiver.next().headers
            eventually(lambda: attempts(live, "two", "closed"))
            assert attempts(live, "two", "closed") == [(0, "connection_refused")]
    finally:
        proxy.close()
    proxy.assert_quiet()
