"""`Dispatcher`: events in, for real endpoints, in real time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from dispatcher.audit.names import stored
from dispatcher.core.operations import Cancel, Revive
from dispatcher.delivery.accepting import check_fields, check_name, check_whole
from dispatcher.delivery.envelope import check_source
from dispatcher.delivery.guard import Guard
from dispatcher.delivery.settings import encode
from dispatcher.delivery.smtp_settings import MailSettings
from dispatcher.delivery.transport import Transport
from dispatcher.errors import Refused, UnsupportedDatabase, WrongKind
from dispatcher.live.endpoints import Endpoints
from dispatcher.live.erasure import Eraser
from dispatcher.live.events import accept, prepare
from dispatcher.live.inbox import Inbox, Intake, enqueued, published, put, within
from dispatcher.live.publishing import Published, fan_out, prepare_for, publication
from dispatcher.live.revival import revive_described, revive_named
from dispatcher.live.settings import EndpointSettings
from dispatcher.log import claims
from dispatcher.log.clock import Clock, ProcessClock
from dispatcher.log.commit import Commit, Committer
from dispatcher.log.open import Database, Target, sqlite_path
from dispatcher.log.read import first_since, log_kind
from dispatcher.log.seal import Keyring
from dispatcher.log.vault import Vault
from dispatcher.worker.worker import MAILS_AT_ONCE, Worker


class Dispatcher(Endpoints, Eraser, Inbox):
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
        mail: MailSettings | None = None,
        source: str | None = None,
        create: bool = True,
    ) -> None:
        """The key ring and the mail server come from the environment unless given; `open_networks` are
        called, public or not.

        `source` is the URI, or a reference to one, that CloudEvents say they come from: unless given, that
        of the environment's DISPATCHER_SOURCE, or /dispatcher/TENANT.
        Without `create` a database that is not there raises DatabaseMissing.
        """
        self._guard = Guard(open_networks)
        self._transport = transport
        self._mail = mail
        self._source = check_source(source)
        path = sqlite_path(database)
        if path is None:
            raise UnsupportedDatabase("live delivery needs a database that lasts", "Name a file.")
        self._file = os.path.abspath(path)
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
        self._committer = Committer(self._database, self._clock, Intake(self._vault).take)
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
        type: str | None = None,
        actor: str | None = None,
        connection: Any = None,
    ) -> str:
        """Accept an event for delivery; returns its id, once it is durable.

        The payload is sent as it is when it is bytes, in UTF-8 when it is a str, else as JSON; a type is
        kept with it, and changes nothing of that. A known id with the same content (type, payload, headers)
        is answered as the first time; with other content it is refused: `duplicate_event`.

        With a connection to the same database (one of SQLAlchemy or its Session, of Django, or the driver's
        own) it is accepted within the transaction that this is in, and if and only if that commits. It is
        taken into the log afterwards: what is refused then is kept in the inbox.
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
            type=type,
            actor=actor,
        )
        if connection is not None:
            put(connection, self._file, enqueued(event, self._committer.now()), event.sealed)
            return event.event_id
        # Loaded together with those of other callers that wait for the same transaction.
        about = (event.operation.delivery_id,)
        return self._do(partial(accept, vault=self._vault, events=(event,)), about)[0]

    async def aenqueue(
        self, endpoint_id: str, payload: Any, *, connection: Any = None, **options: Any
    ) -> str:
        """`enqueue`, for coroutines; a connection may be SQLAlchemy's AsyncConnection or AsyncSession."""
        accept = partial(self.enqueue, endpoint_id, payload, **options)
        return await (asyncio.to_thread(accept) if connection is None else within(connection, accept))

    def publish(
        self,
        type: str,
        payload: Any,
        *,
        tenant: str = "default",
        event_id: str | None = None,
        content_type: str | None = None,
        headers: Sequence[tuple[str, str]] = (),
        order_key: str | None = None,
        actor: str | None = None,
        connection: Any = None,
    ) -> Published:
        """Accept an event for each endpoint of a tenant that wants its type; durable when it returns.

        The payload is what `enqueue` takes; each endpoint is sent it in its body format. That is `standard`
        for JSON alone: else nobody gets the event, `payload_not_json`. Disabled endpoints hold it, those that
        keep no order do so without the order key. An event that nobody wants is kept nowhere.

        A known id with the same content (type, payload, headers) is answered as the first time, and comes to
        the endpoints that have come to want it since. With other content at one of those that want it, it
        is refused, and changes nothing: `duplicate_event`.

        A connection is what `enqueue` takes; who wants the event is found out once that has committed.
        """
        event = publication(
            self._vault,
            type,
            payload,
            at=self._committer.now(),
            source=self._source,
            tenant=tenant,
            event_id=event_id,
            content_type=content_type,
            headers=headers,
            order_key=order_key,
            actor=actor,
        )
        if connection is not None:
            sealed = self._vault.seal_payload(f"{tenant}/{event.event_id}", encode(event))
            put(connection, self._file, published(event), sealed)
            return Published(event.event_id, None)
        with self._standing() as state:
            wanting = stored(state).subscribers(tenant, type)
        try:
            prepared = prepare_for(self._vault, event, wanting)
        except Refused:
            prepared = {}  # It may be a repeat, or wanted otherwise by now: the log says so, under its lock.
        about = tuple(one.operation.delivery_id for one in prepared.values())
        return self._do(partial(fan_out, vault=self._vault, event=event, prepared=prepared), about)

    async def apublish(self, type: str, payload: Any, *, connection: Any = None, **options: Any) -> Published:
        """`publish`, for coroutines; a connection is what `aenqueue` takes."""
        accept = partial(self.publish, type, payload, **options)
        return await (asyncio.to_thread(accept) if connection is None else within(connection, accept))

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

    @contextmanager
    def worker(self, **options: Any) -> Iterator[Worker]:
        """Deliver in the background of this process for the length of a block.

        Without a mail server what is for endpoints of mail is left to other workers. Raises, when the block
        has ended, what made the worker stop by itself.
        """
        mails = MAILS_AT_ONCE if self._sends_mail() else 0
        worker = Worker(self._committer, self._vault, self._new_transport(), mails=mails, **options)
        worker.start()
        try:
            yield worker
        finally:
            worker.stop()
        if worker.failure is not None:
            raise worker.failure
