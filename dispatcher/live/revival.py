"""Dead deliveries brought back in transactions of bounded size, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from dispatcher.core.decide import decide
from dispatcher.core.operations import Refusal, Revive
from dispatcher.errors import Refused
from dispatcher.log.commit import Commit, Committer

REVIVED_AT_ONCE = 500


def revive_named(committer: Committer, operation: Revive) -> int:
    """Revive the deliveries that an operation names: all, or none if one cannot be; how many.

    Of more than one transaction's worth, only what cannot be revived from the beginning refuses all.
    """

    def chosen(commit: Commit) -> list[str]:
        decided = decide(commit.state, operation, commit.now)
        if isinstance(decided, Refusal):
            raise Refused(decided.code)
        return [entry.delivery_id for entry in decided if entry.delivery_id is not None]

    if len(operation.delivery_ids or ()) <= REVIVED_AT_ONCE:
        return len(committer.submit(lambda commit: commit.apply(operation)).result())
    ids = committer.submit(chosen).result()
    return sum(
        len(committer.submit(partial(Commit.apply, operation=replace(operation, delivery_ids=some))).result())
        for some in _steps(ids)
    )


def _steps(ids: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(ids[n : n + REVIVED_AT_ONCE]) for n in range(0, len(ids), REVIVED_AT_ONCE)]


def revive_described(
    committer: Committer, operation: Revive, check: Callable[[Commit], None] | None = None
) -> int:
    """Revive what fits an operation without ids; how many. Others work in between.

    It goes on where it stopped, in enqueue order, so that nothing is revived twice. The check comes first in
    each transaction, and may raise.
    """

    def step(commit: Commit, operation: Revive) -> tuple[int, int]:
        if check is not None:
            check(commit)
        entries = commit.apply(operation)
        last = commit.state.delivery(entries[-1].delivery_id or "") if entries else None
        return len(entries), operation.after if last is None else last.order

    operation = replace(operation, limit=REVIVED_AT_ONCE)
    revived = 0
    while True:
        count, last = committer.submit(partial(step, operation=operation)).result()
        revived += count
        if count < REVIVED_AT_ONCE:
            return revived
        operation = replace(operation, after=last)
