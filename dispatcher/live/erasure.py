"""Payloads made unreadable for ever: of named events, or of all in bounded transactions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from dispatcher.audit.names import stored
from dispatcher.core.decide import decide
from dispatcher.core.entries import PayloadErased
from dispatcher.core.operations import Erase, Refusal
from dispatcher.delivery.accepting import check_fields, check_name, check_whole
from dispatcher.errors import Refused
from dispatcher.live.views import Views
from dispatcher.log import claims, inbox
from dispatcher.log.commit import Commit, Committer
from dispatcher.log.fold import Progress
from dispatcher.log.read import first_since

ERASED_AT_ONCE = 500


def unseen(done: int, total: int) -> None:
    """Nobody looks how far it has come."""


class Erased(NamedTuple):
    """What came of an erasure."""

    erased: int
    """Payloads; those that were erased before are not counted."""
    in_flight: int = 0
    """Left as they are, since they were being sent: erase again to have them, too."""


class Eraser(Views):
    """The part of a dispatcher that erases."""

    _committer: Committer

    def erase(
        self,
        endpoint_id: str,
        event_ids: Sequence[str] | None = None,
        *,
        older_than: int | None = None,
        tenant: str = "default",
        actor: str | None = None,
        progress: Progress = unseen,
    ) -> Erased:
        """Make payloads of an endpoint, and what was answered to them, unreadable for ever.

        Of the events named: all, or none if one is unknown or `in_flight` (of more than 500, only from the
        beginning). Else of all that are there now, or that were enqueued before `older_than`, 500 in a
        transaction, but for those being sent. A pending event is cancelled with it, other states stay; what
        the inbox refused is given up. Stopped at any time, it does the rest when it is called again.
        """
        name = check_name(tenant, endpoint_id)
        if event_ids is None:
            found = self._erase_all([name], older_than, actor, progress)
            return found._replace(erased=found.erased + self._drop(tenant, name, older_than))
        if older_than is not None:
            raise Refused("invalid_argument", "event ids and a time are not given together")
        ids = list(dict.fromkeys(check_name(tenant, endpoint_id, event_id) for event_id in event_ids))
        check_fields(Erase(name, actor=actor))
        if len(ids) > ERASED_AT_ONCE:
            self._committer.submit(partial(_check, delivery_ids=ids)).result()
        return Erased(sum(self._step(some, actor, named=True).erased for some in _steps(ids)))

    def erase_tenant(
        self,
        tenant: str,
        *,
        older_than: int | None = None,
        actor: str | None = None,
        progress: Progress = unseen,
    ) -> Erased:
        """`erase`, for all endpoints of a tenant."""
        check_name(tenant)
        with self._standing() as state:
            endpoints = stored(state).endpoints_of(tenant)
        if not endpoints:
            raise Refused("unknown_tenant")
        found = self._erase_all(endpoints, older_than, actor, progress)
        return found._replace(erased=found.erased + self._drop(tenant, None, older_than))

    def _erase_all(
        self, endpoints: Sequence[str], older_than: int | None, actor: str | None, progress: Progress
    ) -> Erased:
        if older_than is not None:
            check_whole(older_than, "older_than")
        check_fields(Erase("", actor=actor))
        # What waits in the inbox is taken into the log before this is done.
        self._committer.submit(lambda commit: None).result()
        with self._standing() as state:
            connection = stored(state).connection
            before = state.position + 1 if older_than is None else first_since(connection, older_than)
            if any(state.endpoint(endpoint_id) is None for endpoint_id in endpoints):
                raise Refused("unknown_endpoint")
        erased = in_flight = 0
        for number, endpoint_id in enumerate(endpoints):
            after: int | None = 0
            while after is not None:
                with self._standing() as state:
                    ids, after = stored(state).unerased(endpoint_id, after, before, ERASED_AT_ONCE)
                if ids:
                    step = self._step(ids, actor, named=False)
                    erased += step.erased
                    in_flight += step.in_flight
                # Positions, as the log's are shared by all: of each endpoint it is walked over once.
                progress(number * before + (before if after is None else after), len(endpoints) * before)
        return Erased(erased, in_flight)

    def _drop(self, tenant: str, endpoint_id: str | None, before: int | None) -> int:
        def work(commit: Commit) -> int:
            found = inbox.refused_for(commit.connection, tenant, endpoint_id, before)
            inbox.remove(commit.connection, found)
            return len(found)

        return self._committer.submit(work).result()

    def _step(self, delivery_ids: Sequence[str], actor: str | None, *, named: bool) -> Erased:
        work = partial(_erase, delivery_ids=delivery_ids, actor=actor, named=named)
        return self._committer.submit(work).result()


def _erase(commit: Commit, delivery_ids: Sequence[str], actor: str | None, named: bool) -> Erased:
    """Erase deliveries in one transaction; those in flight are refused when they were named, else left."""
    in_flight = claims.claimed(commit.connection, delivery_ids)
    if named:
        _check(commit, delivery_ids)
    commit.state.load_attempted(delivery_ids)
    erased = 0
    for delivery_id in delivery_ids:
        if delivery_id not in in_flight:
            entries = commit.apply(Erase(delivery_id, actor=actor))
            erased += any(isinstance(entry.body, PayloadErased) for entry in entries)
    return Erased(erased, len(in_flight))


def _check(commit: Commit, delivery_ids: Sequence[str]) -> None:
    """Whether all can be erased; raises Refused, having changed nothing."""
    commit.state.load_deliveries(delivery_ids)
    in_flight = claims.claimed(commit.connection, delivery_ids)
    for delivery_id in delivery_ids:
        decided = decide(commit.state, Erase(delivery_id, delivery_id in in_flight), commit.now)
        if isinstance(decided, Refusal):
            raise Refused(decided.code)


def _steps(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[n : n + ERASED_AT_ONCE] for n in range(0, len(ids), ERASED_AT_ONCE)]
