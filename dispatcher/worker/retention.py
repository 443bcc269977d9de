"""Payloads that an endpoint keeps for a time only: erased so long after their final outcome."""

from __future__ import annotations

from collections.abc import Sequence

from dispatcher.core.entries import AttemptRecorded, Cancelled, Entry
from dispatcher.core.operations import Erase
from dispatcher.core.state import State
from dispatcher.log import claims
from dispatcher.log.commit import Commit
from dispatcher.log.read import entry_of, first_since
from dispatcher.log.retention import entries_between, walked_to, write_walked_to

ENTRIES_AT_ONCE = 500
ACTOR = "retention"


def apply_retention(commit: Commit, endpoint_id: str) -> bool:
    """Walk over some more entries of an endpoint; whether there may be others that are old enough."""
    commit.flush()
    endpoint = commit.state.endpoint(endpoint_id)
    if endpoint is None or endpoint.keep_payloads is None:
        return False
    before = first_since(commit.connection, commit.now - endpoint.keep_payloads)
    upto = walked_to(commit.connection, endpoint_id)
    rows = entries_between(commit.connection, endpoint_id, upto, before, ENTRIES_AT_ONCE)
    if not rows:
        return False
    final = _final(commit.state, [(row[0], entry_of(row)) for row in rows])
    in_flight = claims.claimed(commit.connection, final)
    for delivery_id in final:
        if delivery_id not in in_flight:
            commit.apply(Erase(delivery_id, actor=ACTOR))
    write_walked_to(commit.connection, endpoint_id, rows[-1][0])
    return len(rows) == ENTRIES_AT_ONCE


def _final(state: State, entries: Sequence[tuple[int, Entry]]) -> list[str]:
    """The deliveries of which one of these entries is the final outcome.

    One that was revived since has it further on in the log, or is still to have it.
    """
    outcomes: list[tuple[int, str, str]] = []
    for position, entry in entries:
        match entry.body:
            case AttemptRecorded(decision="delivered" | "dead" as reached) if entry.delivery_id is not None:
                outcomes.append((position, entry.delivery_id, reached))
            case Cancelled() if entry.delivery_id is not None:
                outcomes.append((position, entry.delivery_id, "cancelled"))
    state.load_attempted([delivery_id for _, delivery_id, _ in outcomes])
    final = []
    for position, delivery_id, outcome in outcomes:
        delivery = state.delivery(delivery_id)
        if delivery is None or delivery.state != outcome or delivery.erased:
            continue
        if outcome != "dead" or delivery.death == position:
            final.append(delivery_id)
    return final
