"""`Dispatcher`: events in, for real endpoints, in real time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from dispatcher.audit.names import stored
from dispatcher.audit.tenant_view import status_for_tenant
from dispatcher.core.entries import Erasing, Ordering
from dispatcher.core.operations import Cancel, Disable, Enable, Register, Revive, Update
from dispatcher.core.policy import PROMISED, RetryPolicy
from dispatcher.delivery.accepting import check_fields, check_name, check_whole
from dispatcher.delivery.authentication import Authentication
from dispatcher.delivery.guard import Guard
from dispatcher.delivery.settings import Secret, Settings, decode_settings
from dispatcher.delivery.signing import new_secret, parse_signer
from dispatcher.delivery.transport import Method, Transport
from dispatcher.errors import Refused, UnsupportedDatabase, WrongKind
from dispatcher.live.erasure import Eraser
from dispatcher.live.events import accept, prepare
from dispatcher.live.probe import probe, probe_request
from dispatcher.live.revival import revive_described, revive_named
from dispatcher.live.settings import UNITS_PER_SECOND, EndpointSettings
from dispatcher.log import claims
from dispatcher.log.clock import Clock, ProcessClock
from dispatcher.log.commit import Commit, Committer
from dispatcher.log.open import Database, Target, sqlite_path
from dispatcher.log.read import first_since, log_kind
from dispatcher.log.seal import Keyring
from dispatcher.log.vault import Vault
from dispatcher.worker.worker import Worker

T = TypeVar("T")

CHANGEABLE = frozenset({"policy", "order", "concurrency", "disable_when_gone", "erase"})


class Dispatcher(Eraser):
    """Live delivery over one database. Thread-safe; close it, or use it in `with`.

    Every call that changes something returns once that is durable, and takes an `actor`: opaque text, kept
    in the log, that says who wanted it. What the rules do not allow raises Refused with the rule's code;
    wrong values raise a UsageError. Times are milliseconds since 1970. What is shown is an operator's view;
    `as_tenant` leaves out what the tenant may not know.
    """

    def __init__(
        self,
        database: Target,
        *,
        keyring: Keyring | None = None,
        clock: Clock | None = None,
        open_networks: Iterable[str] = (),
        transport: Transport | None = None,
        create: bool = True,
    ) -> None:
        """The key ring comes from the environment unless given; `open_networks` are called, public or not.

        Without `create` a database that is not there raises DatabaseMissing.
        """
        self._guard = Guard(open_networks)
        self._transport = transport
        if sqlite_path(database) is None:
            raise UnsupportedDatabase("live delivery needs a database that lasts", "Name a file.")
        keyring = Keyring.from_environment() if keyring is None else keyring
        self._database = Database(database, "create" if create else "write", lasting=True)
        try:
            with self._database.write() as connection:
                found = log_kind(connection)
                if found not in (None, "live"):
                    raise WrongKind(f"{self._database.place} holds a {found} log, not a live one")
                self._vault = Vault.open(connection, keyring)
            super().__init__(database)
        except BaseException:
            self._database.close()
            raise
        self._settings = EndpointSettings(self._vault, self._guard)
        self._clock = ProcessClock() if clock is None else clock
        self._committer = Committer(self._database, self._clock)
        self._committer.start()

    def close(self) -> None:
        self._committer.stop()
        super().close()
        # Last: only who may write takes the files beside the database away.
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
        erase: Erasing = "never",
        actor: str | None = None,
    ) -> str:
        """Register an endpoint; returns its signing secret, a new one unless given.

        Its events' payloads are erased `on_delivery`, `on_final` (delivered or dead), or `never` by
        themselves.
        """
        secret = new_secret() if secret is None else secret
        settings = Settings(
            url=url, method=method, headers=tuple(headers), authentication=auth, secrets=(Secret(secret),)
        )
        name = check_name(tenant, endpoint_id)
        origin, digest = self._settings.in_the_log(url)
        self._settings.check(settings)
        operation = Register(
            endpoint_id=name,
            url=origin,
            url_digest=digest,
            policy=policy.scaled(UNITS_PER_SECOND),
            order=order,
            concurrency=concurrency,
            disable_when_gone=disable_when_gone,
            erase=erase,
            actor=actor,
        )
        check_fields(operation)
        self._do(partial(self._settings.register, operation=operation, settings=settings))
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
        """Change what is named: also policy, order, concurrency, disable_when_gone, erase."""
        if unknown := settings.keys() - CHANGEABLE:
            raise TypeError(f"update() takes no {', '.join(sorted(unknown))}")
        name = check_name(tenant, endpoint_id)
        changed: dict[str, Any] = {"url": url, "method": method, "authentication": auth}
        changed["headers"] = None if headers is None else tuple(headers)
        changed = {key: value for key, value in changed.items() if value is not None}
        if "policy" in settings:
            settings["policy"] = settings["policy"].scaled(UNITS_PER_SECOND)
        if url is not None:
            settings["url"], settings["url_digest"] = self._settings.in_the_log(url)
        operation = Update(endpoint_id=name, actor=actor, **settings)
        check_fields(operation)
        self._do(partial(self._settings.update, operation=operation, changed=changed))

    def rotate_secret(
        self,
        endpoint_id: str,
        *,
        tenant: str = "default",
        secret: str | None = None,
        keep_for: int = 24 * 3600,
        actor: str | None = None,
    ) -> str:
        """Sign with a new secret, for `keep_for` seconds with those before as well; returns the new one."""
        fresh = new_secret() if secret is None else secret
        parse_signer(fresh)
        check_whole(keep_for, "keep_for")
        operation = Update(endpoint_id=check_name(tenant, endpoint_id), actor=actor)
        check_fields(operation)
        self._do(partial(self._settings.rotate, operation=operation, fresh=fresh, keep_for=keep_for))
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
        event = prepare(
            self._vault,
            endpoint_id,
            payload,
            tenant=tenant,
            event_id=event_id,
            content_type=content_type,
            headers=headers,
            order_key=order_key,
            actor=actor,
        )
        # Loaded together with those of other callers that wait for the same transaction.
        about = (event.operation.delivery_id,)
        return self._do(partial(accept, vault=self._vault, events=(event,)), about)[0]

    async def aenqueue(self, endpoint_id: str, payload: Any, **options: Any) -> str:
        """`enqueue`, for coroutines."""
        return await asyncio.to_thread(self.enqueue, endpoint_id, payload, **options)

    def enqueue_many(
        self,
        events: Iterable[tuple[str, Any] | Mapping[str, Any]],
        *,
        tenant: str = "default",
        actor: str | None = None,
    ) -> list[str]:
        """Accept events in one transaction, all or none; returns their ids.

        Each is a pair (endpoint_id, payload), or a mapping of what `enqueue` takes.
        """
        shared: dict[str, Any] = {"tenant": tenant, "actor": actor}
        prepared = [
            prepare(self._vault, **{**shared, **event})
            if isinstance(event, Mapping)
            else prepare(self._vault, *event, **shared)
            for event in events
        ]
        return self._do(partial(accept, vault=self._vault, events=prepared))

    def disable(
        self,
        endpoint_id: str,
        reason: str = "requested",
        *,
        tenant: str = "default",
        actor: str | None = None,
    ) -> None:
        self._apply(Disable(check_name(tenant, endpoint_id), reason, actor))

    def enable(
        self,
        endpoint_id: str,
        *,
        replay_dead: bool = False,
        tenant: str = "default",
        actor: str | None = None,
    ) -> int:
        """Resume deliveries; with `replay_dead` its dead events are revived before. How many were revived."""
        enable = Enable(check_name(tenant, endpoint_id), replay_dead, actor)
        check_fields(enable)
        revived = 0
        if replay_dead:

            def is_disabled(commit: Commit) -> None:
                endpoint = commit.state.endpoint(enable.endpoint_id)
                if endpoint is not None and endpoint.disabled is None:
                    raise Refused("not_disabled")

            revive = Revive(enable.endpoint_id, actor=actor)
            revived = revive_described(self._committer, revive, is_disabled)
        # Whatever died while those were revived comes back with this one.
        return revived + self._apply(enable) - 1

    def revive(
        self,
        endpoint_id: str,
        event_ids: Sequence[str] | None = None,
        *,
        died_since: int | None = None,
        died_until: int | None = None,
        tenant: str = "default",
        actor: str | None = None,
    ) -> int:
        """Revive dead events, in transactions of bounded size; how many.

        Those named; else all that are dead now, or those of them that died at `died_since` or later, and
        before `died_until`. What dies again meanwhile stays so.
        """
        name = check_name(tenant, endpoint_id)
        if event_ids is not None:
            if died_since is not None or died_until is not None:
                raise Refused("invalid_argument", "event ids and a span of time are not given together")
            ids = tuple(check_name(tenant, endpoint_id, event_id) for event_id in event_ids)
            named = Revive(name, ids, actor=actor)
            check_fields(named)
            return revive_named(self._committer, named)
        for span_name, limit in (("died_since", died_since), ("died_until", died_until)):
            if limit is not None:
                check_whole(limit, span_name)
        with self._standing() as state:
            connection = stored(state).connection
            span = Revive(
                name,
                actor=actor,
                died_from=0 if died_since is None else first_since(connection, died_since),
                died_before=state.position + 1 if died_until is None else first_since(connection, died_until),
            )
        check_fields(span)
        return revive_described(self._committer, span)

    def cancel(
        self, endpoint_id: str, event_id: str, *, tenant: str = "default", actor: str | None = None
    ) -> None:
        """Give up a pending event. Refused while its request is under way: `in_flight`."""
        cancel = Cancel(check_name(tenant, endpoint_id, event_id), actor=actor)
        check_fields(cancel)

        def work(commit: Commit) -> None:
            in_flight = claims.claimed(commit.connection, [cancel.delivery_id])
            commit.apply(Cancel(cancel.delivery_id, bool(in_flight), actor))

        self._do(work)

    def test(self, endpoint_id: str, *, tenant: str = "default", as_tenant: bool = False) -> dict[str, Any]:
        """Send one signed `{"type":"dispatcher.test"}` now, past queue and order, to a disabled endpoint too.

        Nothing is written. `ok`, `status`, `error`, `duration_ms`, and `body_bytes`: how much of the answer's
        body would be kept.
        """
        name = check_name(tenant, endpoint_id)
        with self._standing() as state:
            endpoint = state.endpoint(name)
            if endpoint is None:
                raise Refused("unknown_endpoint")
            sealed = self._vault.read_endpoint(stored(state).connection, name)
            request = probe_request(decode_settings(sealed), self._clock.now(state.ts))
        found = probe(self._new_transport(), request, endpoint.policy)
        return status_for_tenant(found) if as_tenant else found

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

    def _do(self, work: Callable[[Commit], T], about: Sequence[str] = ()) -> T:
        return self._committer.submit(work, about).result()

    def _apply(self, operation: Disable | Enable) -> int:
        check_fields(operation)
        return self._do(lambda commit: len(commit.apply(operation)))
