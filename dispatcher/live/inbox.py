"""The inbox: events of applications' own transactions, on their way into the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dispatcher.audit.standing import in_inbox
from dispatcher.core.operations import Enqueue
from dispatcher.errors import DispatcherError, Refused, StorageError
from dispatcher.live.events import Prepared, accept, new_seed
from dispatcher.live.publishing import Publication, decode_publication, fan_out
from dispatcher.live.views import Views
from dispatcher.log import inbox
from dispatcher.log.callers import borrowed
from dispatcher.log.commit import Commit, Committer
from dispatcher.log.inbox import Accepted, Waiting
from dispatcher.log.vault import SealedPayload, Vault

T = TypeVar("T")

TAKEN_AT_ONCE = 200
MOST_ENTRIES = 1000
"""Of one transaction: a published event may come to many, and whatever it comes to is not parted."""


def put(connection: Any, file: str, event: Accepted, payload: SealedPayload) -> None:
    """Accept an event within the transaction of a caller's connection. Raises as `borrowed` does."""
    with borrowed(connection, file) as cursor:
        if not inbox.put(cursor, event, payload):
            raise Refused("unknown_endpoint")


def enqueued(event: Prepared, now: int) -> Accepted:
    """An event for one endpoint, as it stands in the inbox."""
    wanted = event.operation
    tenant = wanted.endpoint_id.partition("/")[0]
    return Accepted(
        0, now, tenant, wanted.endpoint_id, event.event_id, wanted.event_type, wanted.order_key, wanted.actor
    )


def published(event: Publication) -> Accepted:
    return Accepted(0, event.at, event.tenant, None, event.event_id, event.type, event.order_key, event.actor)


async def within(connection: Any, accept: Callable[..., T]) -> T:
    """Have `accept` called with a connection; one of asyncio is lent as the one that it stands for."""
    if hasattr(connection, "run_sync"):
        accepted: T = await connection.run_sync(lambda lent: accept(connection=lent))
        return accepted
    return accept(connection=connection)


class Intake:
    """Takes what waits in the inbox into the log, before anything else that a committer does."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def take(self, commit: Commit, upto: int | None) -> int | None:
        """Take some of what waits, the oldest first; up to which number there is more, None if there is none.

        What came after the first of these transactions is left for later: others wait for the log, too.
        """
        if upto is None:
            upto = inbox.last(commit.connection)
            if upto is None:
                return None
        waiting = inbox.waiting(commit.connection, upto, TAKEN_AT_ONCE)
        direct = [one.event for one in waiting if one.event.endpoint_id is not None]
        commit.state.load_endpoints({event.endpoint_id for event in direct if event.endpoint_id is not None})
        commit.state.load_deliveries([_delivery_id(event) for event in direct])
        begun_at = commit.state.position
        taken: list[int] = []
        refused: list[tuple[str, int]] = []
        for one in waiting:
            try:
                self._accept(commit, one)
            except StorageError:
                raise
            except DispatcherError as error:
                refused.append((error.code, one.event.n))
            else:
                taken.append(one.event.n)
            if commit.state.position - begun_at >= MOST_ENTRIES:
                break
        inbox.remove(commit.connection, taken)
        inbox.refuse(commit.connection, refused)
        done = len(taken) + len(refused)
        return None if done == len(waiting) < TAKEN_AT_ONCE else upto

    def _accept(self, commit: Commit, waiting: Waiting) -> None:
        event = waiting.event
        payload = SealedPayload(waiting.wrapped, waiting.sealed, waiting.digest)
        if event.endpoint_id is None:
            wanted = decode_publication(self._unsealed(f"{event.tenant}/{event.event_id}", payload))
            fan_out(commit, self._vault, wanted, {})
            return
        delivery_id = _delivery_id(event)
        # It is compared only with one that is known.
        known = commit.state.delivery(delivery_id) is not None
        content = self._unsealed(delivery_id, payload) if known else b""
        facts = None, event.order_key, new_seed(), payload.digest, event.actor, event.event_type
        operation = Enqueue(event.endpoint_id, delivery_id, *facts)
        accept(commit, self._vault, [Prepared(event.event_id, operation, content, payload)])

    def _unsealed(self, delivery_id: str, payload: SealedPayload) -> bytes:
        key = self._vault.payload_key(payload.wrapped)
        return self._vault.unseal_payload(delivery_id, key, payload.sealed)


def _delivery_id(event: Accepted) -> str:
    return f"{event.endpoint_id}/{event.event_id}"


class Inbox(Views):
    """The part of a dispatcher that looks after its inbox."""

    _committer: Committer

    def inbox(self) -> list[dict[str, Any]]:
        """What applications accepted, and that is not in the log; the oldest first.

        number, accepted_at, tenant, endpoint_id (None of a published one), event_id, event_type, actor, and
        refused: why it could not be taken into the log, or None while it waits.
        """
        with self._standing() as state:
            return in_inbox(state)

    def retry_refused(self, numbers: Sequence[int] | None = None) -> int:
        """Try again what could not be taken into the log: some by their numbers, or all; how many now are.

        Raises Refused, with nothing changed, when one of those named was not refused.
        """
        tried = self._committer.submit(lambda commit: _retry(commit, numbers)).result()
        # It is taken before whatever comes next.
        left = self._committer.submit(lambda commit: inbox.refused(commit.connection, tried)).result()
        return len(tried) - len(left)

    def drop_refused(self, numbers: Sequence[int] | None = None) -> int:
        """Give up what could not be taken into the log: some by their numbers, or all; how many.

        Their payloads are unreadable from then on. Raises what `retry_refused` does.
        """
        return self._committer.submit(lambda commit: _drop(commit, numbers)).result()


def _retry(commit: Commit, numbers: Sequence[int] | None) -> list[int]:
    named = _refused(commit, numbers)
    inbox.refuse(commit.connection, [(None, n) for n in named])
    return named


def _drop(commit: Commit, numbers: Sequence[int] | None) -> int:
    named = _refused(commit, numbers)
    inbox.remove(commit.connection, named)
    return len(named)


def _refused(commit: Commit, numbers: Sequence[int] | None) -> list[int]:
    found = inbox.refused(commit.connection, numbers)
    if numbers is not None and set(numbers) - set(found):
        raise Refused("unknown_refusal", "the inbox holds no refused event of such a number")
    return found
