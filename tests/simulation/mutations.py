"""Known mistakes, made on purpose: `python -m tests.simulation.mutations` says how soon each is found.

What is not found within so many seeds would mean that the invariants look elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dispatcher.core import decide as deciding
from dispatcher.core import evolve as rules
from dispatcher.core.operations import Record, Refusal, Release
from dispatcher.core.policy import RetryPolicy
from dispatcher.delivery.transport import Answer
from dispatcher.log import claims, inbox
from dispatcher.log.commit import Commit
from dispatcher.log.rows import driver
from dispatcher.log.views import ViewSource
from dispatcher.worker import turn
from dispatcher.worker.turn import Outcome
from dispatcher.worker.worker import Worker
from tests.simulation.seed import simulate
from tests.simulation.virtual import VirtualClock

MOST_SEEDS = 150


def no_fence_check() -> AbstractContextManager[Any]:
    """A late result is recorded, whoever has taken over."""
    release = claims.release

    def all_stand(connection: Any, fences: Any) -> set[int]:
        release(connection, fences)
        return set(fences)

    return patch.object(claims, "release", all_stand)


def record_before_send() -> AbstractContextManager[Any]:
    async def attempt(worker: Any, claimed: Any) -> None:
        worker._outcomes.append(Outcome(claimed.claim, Answer(status=200)))
        worker._woken.set()
        request, _ = worker._outgoing.request(claimed)
        await worker._transport.send(request)

    return patch.object(Worker, "_attempt", attempt)


def no_head_rule() -> AbstractContextManager[Any]:
    """Of what is pending in a lane the last one is claimed."""
    due = claims._due

    def last(connection: Any, *arguments: Any) -> Any:
        found, *rest = due(connection, *arguments)
        changed = []
        for endpoint_id, lane, delivery_id, position, attempt in found:
            other = driver(connection).execute(
                "SELECT delivery_id, position, attempts + 1 FROM dispatcher_deliveries WHERE endpoint_id = ?"
                " AND lane = ? AND state = 'pending' ORDER BY position DESC LIMIT 1",
                (endpoint_id, lane),
            )
            changed.append((endpoint_id, lane, *(other.fetchone() or (delivery_id, position, attempt))))
        return (changed, *rest)

    return patch.object(claims, "_due", last)


def no_lease() -> AbstractContextManager[Any]:
    """Whatever another worker has claimed is taken for lost."""
    expired = claims.expired
    return patch.object(claims, "expired", lambda connection, now: expired(connection, now + 10**6))


def released_counts() -> AbstractContextManager[Any]:
    """What an orderly shutdown cut off is counted as lost."""
    apply = Commit.apply

    def counted(commit: Commit, operation: Any) -> Any:
        if isinstance(operation, Release):
            operation = Record(
                operation.delivery_id, 0, operation.started_at or 0, error="lost", worker=operation.worker
            )
        return apply(commit, operation)

    return patch.object(Commit, "apply", counted)


def revived_to_the_end() -> AbstractContextManager[Any]:
    revived = rules._revived

    def last(state: Any, ts: int, endpoint_id: Any, delivery_id: Any, body: Any) -> Any:
        delivery = state.deliveries[delivery_id]
        place, delivery.order = delivery.order, state.position + 10**6
        try:
            return revived(state, ts, endpoint_id, delivery_id, body)
        finally:
            delivery.order = place

    handlers = {kind: last if how is revived else how for kind, how in rules._EVOLVE.items()}
    return patch.object(rules, "_EVOLVE", handlers)


def inbox_survives_a_rollback() -> AbstractContextManager[Any]:
    """The event is accepted on a connection of its own."""

    def put(cursor: Any, event: Any, payload: Any) -> bool:
        (file,) = (row[2] for row in cursor.execute("PRAGMA database_list") if row[1] == "main")
        with contextlib.closing(sqlite3.connect(file, timeout=0)) as own:
            stored = accepted(own.cursor(), event, payload)
            own.commit()
        return stored

    accepted = inbox.put
    return patch.object(inbox, "put", put)


def inbox_row_lost() -> AbstractContextManager[Any]:
    """What was accepted is thrown away when it is to be taken into the log."""
    waiting = inbox.waiting

    def forgetful(connection: Any, upto: int, limit: int) -> Any:
        found = waiting(connection, upto, limit)
        inbox.remove(connection, [one.event.n for one in found[1:]])
        return found[:1]

    return patch.object(inbox, "waiting", forgetful)


def wait_from_the_start() -> AbstractContextManager[Any]:
    """Of the attempt, not from when it was recorded."""
    wait = RetryPolicy.wait_after
    return patch.object(
        RetryPolicy, "wait_after", lambda policy, attempt, seed: wait(policy, attempt, seed) - 300
    )


def tenant_limit_per_worker() -> AbstractContextManager[Any]:
    """Only what one turn itself claims is counted."""
    return patch.object(claims, "_BY_TENANT", "(SELECT '' AS tenant, 0 AS count WHERE 0)")


def clock_follows_the_wall() -> AbstractContextManager[Any]:
    """And goes back when that is set back."""

    def now(clock: Any, last: int | None) -> int:
        return int(clock._wall() // 1_000_000)

    def unchecked(commit: Any, log: Any, now: int) -> None:
        commit._log, commit.now = log, now - 5_000

    stack = contextlib.ExitStack()
    stack.enter_context(patch.object(VirtualClock, "now", now))
    stack.enter_context(patch.object(Commit, "__init__", unchecked))
    return stack


def erased_before_the_outcome() -> AbstractContextManager[Any]:
    record = deciding._DECIDE[Record]

    def turned_round(state: Any, operation: Any, ts: int) -> Any:
        decided = record(state, operation, ts)
        return decided if isinstance(decided, Refusal) else decided[::-1]

    return patch.dict(deciding._DECIDE, {Record: turned_round})


def cancelled_in_flight() -> AbstractContextManager[Any]:
    return patch.object(claims, "claimed", lambda connection, delivery_ids: set())


def swept_without_a_record() -> AbstractContextManager[Any]:
    """A dead worker's claim is only taken away."""

    def sweep(commit: Any) -> list[Any]:
        expired = claims.expired(commit.connection, commit.now)
        claims.release(commit.connection, [lost.fence for lost in expired])
        return []

    return patch.object(turn, "_sweep", sweep)


def one_is_not_loaded() -> AbstractContextManager[Any]:
    """Of the dead that are to be revived the tables yield one too few."""
    dead_after = ViewSource.dead_after

    def fewer(source: Any, *arguments: Any) -> Any:
        found = dead_after(source, *arguments)
        return found[:-1] if len(found) > 1 else found

    return patch.object(ViewSource, "dead_after", fewer)


MUTATIONS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    mutation.__name__: mutation
    for mutation in (
        no_fence_check,
        record_before_send,
        no_head_rule,
        no_lease,
        released_counts,
        revived_to_the_end,
        inbox_survives_a_rollback,
        inbox_row_lost,
        wait_from_the_start,
        tenant_limit_per_worker,
        clock_follows_the_wall,
        erased_before_the_outcome,
        cancelled_in_flight,
        swept_without_a_record,
        one_is_not_loaded,
    )
}


def seeds_until_found(name: str, folder: Path, most: int = MOST_SEEDS) -> tuple[int, str] | None:
    """After how many seeds, and by what."""
    for seed in range(most):
        with MUTATIONS[name]():
            error = simulate(seed, folder).error
        if error is not None:
            return seed + 1, str(error).partition("\n")[0] or repr(error)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--most", type=int, default=MOST_SEEDS)
    given = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        for name in given.names or MUTATIONS:
            found = seeds_until_found(name, Path(folder), given.most)
            missed += found is None
            seeds, by = found or (None, None)
            print(json.dumps({"mutation": name, "seeds": seeds, "found_by": by}), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
