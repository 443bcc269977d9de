"""The inbox: events of applications' own transactions, on their way into the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dispatcher.audit.standing import in_inbox
from dispatcher.core.operations import Enqueue
from dispatcher.errors import DispatcherError, Refused, StorageError
from dispatcher.live.events import Prepared, accept, new_seed
from dispatcher.live.views import Views
from dispatcher.log import inbox
from dispatcher.log.callers import borrowed
from dispatcher.log.commit import Commit, Committer
from dispatcher.log.inbox import Accepted, Waiting
from dispatcher.log.vault import Vault

T = TypeVar("T")

TAKEN_AT_ONCE = 200


def put(connection: Any, file: str, now: int, event: Prepared) -> str:
    """Accept an event within the transaction of a caller's connection; its id. Raises as `borrowed` does."""
    operation = event.operation
    tenant = operation.endpoint_id.partition("/")[0]
    accepted = Accepted(
        0,
        now,
        tenant,
        operation.endpoint_id,
        event.event_id,
        operation.event_type,
        operation.order_key,
        operation.actor,
    )
    with borrowed(connection, file) as cursor:
        if not inbox.put(cursor, accepted, event.sealed):
            raise Refused("unknown_endpoint")
    return event.event_id


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
        taken: list[int] = []
        refused: list[tuple[str, int]] = []
        commit.state.load_endpoints({one.event.endpoint_id for one in waiting if one.event.endpoint_id})
        commit.state.load_deliveries([_delivery_id(one.event) for one in waiting])
        for one in waiting:
            try:
                accept(commit, self._vault, [self._prepared(commit, one)])
            except StorageError:
                raise
            except DispatcherError as error:
                refused.append((error.code, one.event.n))
            else:
                taken.append(one.event.n)
        inbox.remove(commit.connection, taken)
        inbox.refuse(commit.connection, refused)
        return upto if len(waiting) == TAKEN_AT_ONCE else None

    def _prepared(self, commit: Commit, waiting: Waiting) -> Prepared:
        event, sealed = waiting
        assert event.endpoint_id is not None
        delivery_id = _delivery_id(event)
        content = b""
        if commit.state.delivery(delivery_id) is not None:
            # Else nobody compares it with another.
            content = self._vault.unseal_payload(
                delivery_id, self._vault.payload_key(sealed.wrapped), sealed.sealed
            )
        operation = Enqueue(
            event.endpoint_id,
            delivery_id,
            None,
            event.order_key,
            new_seed(),
            sealed.digest,
            event.actor,
            event.event_type,
        )
        return Prepared(event.event_id, operation, content, sealed)


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
