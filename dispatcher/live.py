"""`Dispatcher`: events in, for real endpoints, in real time."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec

from dispatcher.audit import history as audit_history
from dispatcher.audit import standing
from dispatcher.core.decide import revivable
from dispatcher.core.entries import Ordering
from dispatcher.core.operations import Cancel, Disable, Enable, Enqueue, Register, Revive, Update
from dispatcher.core.policy import PROMISED, RetryPolicy
from dispatcher.delivery.accepting import body_of, check_fields, check_name, new_event_id
from dispatcher.delivery.authentication import Authentication, authentication_header
from dispatcher.delivery.guard import Guard, check_url
from dispatcher.delivery.headers import check_headers
from dispatcher.delivery.settings import Payload, Secret, Settings, decode_settings, encode
from dispatcher.delivery.signing import new_secret, parse_signer
from dispatcher.delivery.transport import Method, Transport
from dispatcher.errors import Refused, UnsupportedDatabase, WrongKind
from dispatcher.log import claims
from dispatcher.log.clock import Clock, ProcessClock
from dispatcher.log.commit import Commit, Committer
from dispatcher.log.open import Database, Target, sqlite_path
from dispatcher.log.read import log_kind
from dispatcher.log.seal import Keyring
from dispatcher.log.vault import SealedPayload, Vault
from dispatcher.worker.worker import Worker

UNITS_PER_SECOND = 1000
REVIVED_AT_ONCE = 500
CHANGEABLE = frozenset({"policy", "order", "concurrency", "disable_when_gone"})


class Dispatcher:
    """Live delivery over one database. Thread-safe; close it, or use it in `with`.

    Every call that changes something returns once that is durable. What the rules do not allow raises
    Refused with the rule's code; wrong values raise a UsageError. Times are milliseconds since 1970.
    """

    def __init__(
        self,
        database: Target,
        *,
        keyring: Keyring | None = None,
        clock: Clock | None = None,
        open_networks: Iterable[str] = (),
        transport: Transport | None = None,
    ) -> None:
        """The key ring comes from the environment unless given; `open_networks` are called, public or not."""
        self._guard = Guard(open_networks)
        self._transport = transport
        if sqlite_path(database) is None:
            raise UnsupportedDatabase("live delivery needs a database that lasts", "Name a file.")
        self._database = Database(database, lasting=True)
        keyring = Keyring.from_environment() if keyring is None else keyring
        with self._database.write() as connection:
            found = log_kind(connection)
            if found not in (None, "live"):
                raise WrongKind(f"{self._database.place} holds a {found} log, not a live one")
            self._vault = Vault.open(connection, keyring)
        self._committer = Committer(self._database, ProcessClock() if clock is None else clock)
        self._committer.start()

    def close(self) -> None:
        self._committer.stop()
        self._database.close()

    def __enter__(self) -> Dispatcher:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def register(
        self,
        endpoint_id: str,
        url: str,
        *,
        tenant: str = "default",
        method: Method = "POST",
        secret: str | None = None,
        headers: Sequence[tuple[str, str]] = (),
        auth: Authentication | None = None,
        policy: RetryPolicy = PROMISED,
        order: Ordering = "strict",
        concurrency: int = 8,
        disable_when_gone: bool = False,
        actor: str | None = None,
    ) -> str:
        """Register an endpoint; returns its signing secret, a new one unless given."""
        secret = new_secret() if secret is None else secret
        settings = self._checked(
            Settings(
                url=url, method=method, headers=tuple(headers), authentication=auth, secrets=(Secret(secret),)
            )
        )
        name = check_name(tenant, endpoint_id)
        operation = Register(
            endpoint_id=name,
            url=check_url(url, self._guard).origin,
            url_digest=self._vault.digest("url", url),
            policy=policy.scaled(UNITS_PER_SECOND),
            order=order,
            concurrency=concurrency,
            disable_when_gone=disable_when_gone,
            actor=actor,
        )
        check_fields(operation)

        def work(commit: Commit) -> None:
            commit.apply(operation)
            self._vault.write_endpoint(commit.connection, name, encode(settings))

        self._committer.submit(work).result()
        return secret

    def update(
        self,
        endpoint_id: str,
        *,
        tenant: str = "default",
        url: str | None = None,
        method: Method | None = None,
        headers: Sequence[tuple[str, str]] | None = None,
        auth: Authentication | None = None,
        actor: str | None = None,
        **settings: Any,
    ) -> None:
        """Change what is named: also policy, order, concurrency, disable_when_gone."""
        if unknown := settings.keys() - CHANGEABLE:
            raise TypeError(f"update() takes no {', '.join(sorted(unknown))}")
        name = check_name(tenant, endpoint_id)
        changed: dict[str, Any] = {"url": url, "method": method, "authentication": auth}
        changed["headers"] = None if headers is None else tuple(headers)
        changed = {key: value for key, value in changed.items() if value is not None}
        if "policy" in settings:
            settings["policy"] = settings["policy"].scaled(UNITS_PER_SECOND)
        if url is not None:
            settings["url"] = check_url(url, self._guard).origin
            settings["url_digest"] = self._vault.digest("url", url)
        operation = Update(endpoint_id=name, actor=actor, **settings)
        check_fields(operation)

        def work(commit: Commit) -> None:
            if commit.state.endpoint(name) is None:
                raise Refused("unknown_endpoint")
            before = decode_settings(self._vault.read_endpoint(commit.connection, name))
            after = self._checked(msgspec.structs.replace(before, **changed))
            commit.apply(operation)
            self._vault.write_endpoint(commit.connection, name, encode(after))

        self._committer.submit(work).result()

    def rotate_secret(
        self,
        endpoint_id: str,
        *,
        tenant: str = "default",
        secret: str | None = None,
        keep_for: int = 24 * 3600,
    ) -> str:
        """Sign with a new secret, for `keep_for` seconds with those before as well; returns the new one."""
        name, fresh = check_name(tenant, endpoint_id), new_secret() if secret is None else secret
        parse_signer(fresh)

        def work(commit: Commit) -> None:
            commit.apply(Update(endpoint_id=name))
            settings = decode_settings(self._vault.read_endpoint(commit.connection, name))
            until = commit.now + keep_for * UNITS_PER_SECOND
            kept = (Secret(old.text, until if old.until is None else old.until) for old in settings.secrets)
            rotated = (
                Secret(fresh),
                *(old for old in kept if old.until is not None and old.until > commit.now),
            )
            self._vault.write_endpoint(
                commit.connection, name, encode(msgspec.structs.replace(settings, secrets=rotated))
            )

        self._committer.submit(work).result()
        return fresh

    def enqueue(
        self,
        endpoint_id: str,
        payload: Any,
        *,
        tenant: str = "default",
        event_id: str | None = None,
        content_type: str | None = None,
        headers: Sequence[tuple[str, str]] = (),
        order_key: str | None = None,
        actor: str | None = None,
    ) -> str:
        """Accept an event for delivery; returns its id, once it is durable.

        The payload is sent as it is when it is bytes, in UTF-8 when it is a str, else as JSON. A known id
        with the same content is answered as the first time; with other content it is refused:
        `duplicate_event`.
        """
        work = self._enqueueing(
            endpoint_id, payload, tenant, event_id, content_type, tuple(headers), order_key, actor
        )
        return self._committer.submit(work).result()

    async def aenqueue(self, endpoint_id: str, payload: Any, **options: Any) -> str:
        """`enqueue`, for coroutines."""
        return await asyncio.to_thread(self.enqueue, endpoint_id, payload, **options)

    def enqueue_many(self, events: Iterable[tuple[str, Any]], *, tenant: str = "default") -> list[str]:
        """Accept (endpoint_id, payload) pairs in one transaction, all or none; returns their ids."""
        events = list(events)
        works = [
            self._enqueueing(endpoint_id, payload, tenant, None, None, (), None, None)
            for endpoint_id, payload in events
        ]

        endpoints = {check_name(tenant, endpoint_id) for endpoint_id, _ in events}

        def work(commit: Commit) -> list[str]:
            # Before the first one changes anything; new ids are refused for no other reason.
            if any(commit.state.endpoint(name) is None for name in endpoints):
                raise Refused("unknown_endpoint")
            return [one(commit) for one in works]

        return self._committer.submit(work).result()

    def status(self, endpoint_id: str, event_id: str, *, tenant: str = "default") -> dict[str, Any]:
        """How an event stands: state, attempts, when the next is due, what it waits behind. NotFound."""
        found = standing.status(self._database.path, check_name(tenant, endpoint_id, event_id))
        return _without_tenant(found)

    def history(self, endpoint_id: str, event_id: str, *, tenant: str = "default") -> list[dict[str, Any]]:
        """Every entry about an event, as JSON values. Raises NotFound."""
        rows = audit_history.history(self._database.path, check_name(tenant, endpoint_id, event_id))
        return [_without_tenant(audit_history.as_json(row)) for row in rows]

    def dead_letters(self, endpoint_id: str, *, tenant: str = "default") -> list[dict[str, Any]]:
        """An endpoint's dead events, in the order of their latest death. Raises NotFound."""
        found = standing.dead_letters(self._database.path, check_name(tenant, endpoint_id))
        return [_without_tenant(letter) for letter in found]

    def disable(self, endpoint_id: str, reason: str = "requested", *, tenant: str = "default") -> None:
        self._apply(Disable(check_name(tenant, endpoint_id), reason))

    def enable(self, endpoint_id: str, *, replay_dead: bool = False, tenant: str = "default") -> None:
        name = check_name(tenant, endpoint_id)
        if replay_dead:
            self._revive_all(name, while_disabled=True)
        self._apply(Enable(name, replay_dead))

    def revive(
        self, endpoint_id: str, event_ids: Sequence[str] | None = None, *, tenant: str = "default"
    ) -> int:
        """Revive dead events, these or all of an endpoint, in transactions of bounded size; how many."""
        name = check_name(tenant, endpoint_id)
        if event_ids is not None:
            ids = tuple(check_name(tenant, endpoint_id, event_id) for event_id in event_ids)
            return self._apply(Revive(name, ids))
        return self._revive_all(name)

    def _revive_all(self, name: str, *, while_disabled: bool = False) -> int:
        """Revive what is dead now; what dies again meanwhile stays so."""

        def dead(commit: Commit) -> list[str]:
            endpoint = commit.state.endpoint(name)
            if endpoint is None:
                raise Refused("unknown_endpoint")
            if while_disabled and endpoint.disabled is None:
                raise Refused("not_disabled")
            return [delivery.id for delivery in revivable(commit.state, endpoint)]

        ids = self._committer.submit(dead).result()

        def work(commit: Commit, some: list[str]) -> int:
            found = (commit.state.delivery(delivery_id) for delivery_id in some)
            still = (one.id for one in found if one is not None and one.state == "dead" and not one.erased)
            return len(commit.apply(Revive(name, tuple(still))))

        return sum(
            self._committer.submit(partial(work, some=ids[n : n + REVIVED_AT_ONCE])).result()
            for n in range(0, len(ids), REVIVED_AT_ONCE)
        )

    def cancel(self, endpoint_id: str, event_id: str, *, tenant: str = "default") -> None:
        name = check_name(tenant, endpoint_id, event_id)

        def work(commit: Commit) -> None:
            commit.apply(Cancel(name, in_flight=claims.is_claimed(commit.connection, name)))

        self._committer.submit(work).result()

    @contextmanager
    def worker(self, **options: Any) -> Iterator[Worker]:
        """Deliver in the background of this process for the length of a block.

        Raises, when the block has ended, what made the worker stop by itself.
        """
        worker = Worker(self._committer, self._vault, self._new_transport(), **options)
        worker.start()
        try:
            yield worker
        finally:
            worker.stop()
        if worker.failure is not None:
            raise worker.failure

    def _new_transport(self) -> Transport:
        if self._transport is not None:
            return self._transport
        from dispatcher.delivery.http import HttpTransport

        return HttpTransport(self._guard)

    def _apply(self, operation: Disable | Enable | Revive) -> int:
        check_fields(operation)
        return self._committer.submit(lambda commit: len(commit.apply(operation))).result()

    def _checked(self, settings: Settings) -> Settings:
        """Settings that can be sent with. Raises what says why not."""
        if isinstance(settings.url, str):
            check_url(settings.url, self._guard)
        check_fields(settings)
        check_headers(settings.headers)
        if settings.authentication is not None:
            authentication_header(settings.authentication)
        for secret in settings.secrets:
            parse_signer(secret.text)
        return settings

    def _enqueueing(
        self,
        endpoint_id: str,
        payload: Any,
        tenant: str,
        event_id: str | None,
        content_type: str | None,
        headers: tuple[tuple[str, str], ...],
        order_key: str | None,
        actor: str | None,
    ) -> Callable[[Commit], str]:
        """The work of accepting one event: encoded, checked and encrypted before the log's lock is taken."""
        event_id = new_event_id() if event_id is None else event_id
        endpoint, delivery = check_name(tenant, endpoint_id), check_name(tenant, endpoint_id, event_id)
        if content_type is not None:
            headers = (("Content-Type", content_type), *headers)
        content = Payload(body=body_of(payload), headers=check_headers(headers))
        plain = encode(content)
        sealed: SealedPayload = self._vault.seal_payload(delivery, plain)
        operation = Enqueue(
            endpoint,
            delivery,
            None,
            None if order_key is None else self._vault.digest("order key", order_key),
            secrets.randbits(62),
            sealed.digest,
            actor,
        )
        check_fields(operation)

        def work(commit: Commit) -> str:
            known = commit.state.delivery(delivery)
            if known is not None:
                commit.flush()
                if known.erased or known.digest != self._vault.digest_as_in(
                    commit.connection, known.order, plain
                ):
                    raise Refused("duplicate_event")
                return event_id
            commit.apply(operation)
            self._vault.write_payloads(commit.insert, [(commit.state.position, sealed)])
            return event_id

        return work


def _without_tenant(shown: dict[str, Any]) -> dict[str, Any]:
    """Ids as the caller gave them: the log's hold tenant and endpoint, too."""
    names = ("endpoint_id", "event_id", "delivery_id", "waits_behind")
    return shown | {name: shown[name].rpartition("/")[2] for name in names if shown.get(name) is not None}
