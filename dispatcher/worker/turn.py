"""One turn at the database: record what came of requests, and claim what is due, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from dispatcher.core.entries import Entry
from dispatcher.core.operations import Record, Release
from dispatcher.core.policy import HINTED_STATUSES
from dispatcher.delivery.transport import Answer, never_sent
from dispatcher.log import claims
from dispatcher.log.claims import Claim, Limits
from dispatcher.log.commit import Commit
from dispatcher.log.vault import SealedRow, Vault

logger = logging.getLogger("dispatcher.worker")


class Claimed(NamedTuple):
    """A claim, with what is needed to send it, still sealed."""

    claim: Claim
    settings: SealedRow
    payload: SealedRow

    def __repr__(self) -> str:
        return f"Claimed({self.claim.delivery_id}, fence {self.claim.fence})"


class Outcome(NamedTuple):
    """What came of a claim."""

    claim: Claim
    answer: Answer | None
    """None when it was cut off by an orderly shutdown."""
    duration: int = 0
    """Milliseconds."""
    key: bytes = b""
    """The payload's, to keep the answer's body under."""

    def __repr__(self) -> str:
        return f"Outcome({self.claim.delivery_id}, fence {self.claim.fence}, {self.answer})"


class Turn(NamedTuple):
    """What a turn did."""

    claimed: list[Claimed]
    recorded: list[Entry]
    """Attempts that were recorded or released, dead workers' included."""
    next_change: int | None
    """When, in the log's time, there will be more to do though nobody does anything."""


def take_turn(
    commit: Commit, vault: Vault, outcomes: Sequence[Outcome], worker: str, limit: int, limits: Limits
) -> Turn:
    """Record outcomes, count as lost what dead workers held, then claim up to `limit` more."""
    recorded = _record(commit, vault, outcomes) + _sweep(commit)
    commit.flush()
    claimed: list[Claimed] = []
    found = claims.claim(commit.connection, commit.now, worker, limit, limits)
    settings = vault.endpoint_rows(commit.connection, {claim.endpoint_id for claim in found})
    payloads = vault.payload_rows(commit.connection, [claim.position for claim in found])
    damaged = []
    for claim in found:
        row, payload = settings.get(claim.endpoint_id), payloads.get(claim.position)
        if row is None or payload is None:
            damaged.append(Outcome(claim, never_sent("vault_damaged")))
        else:
            claimed.append(Claimed(claim, row, payload))
    if damaged:
        recorded += _record(commit, vault, damaged)
        commit.flush()
    # What is behind a damaged one is due already.
    change = commit.now if damaged else claims.next_change(commit.connection, commit.now)
    return Turn(claimed, recorded, change)


def _record(commit: Commit, vault: Vault, outcomes: Sequence[Outcome]) -> list[Entry]:
    if not outcomes:
        return []
    stand = claims.release(commit.connection, [outcome.claim.fence for outcome in outcomes])
    commit.state.load_attempted([outcome.claim.delivery_id for outcome in outcomes])
    recorded: list[Entry] = []
    for claim, answer, duration, key in outcomes:
        if claim.fence not in stand:
            logger.warning("dropped the late result of %s: another worker has taken over", claim.delivery_id)
            continue
        if answer is None:
            recorded += commit.apply(Release(claim.delivery_id, claim.started_at, claim.worker))
            continue
        hint = answer.retry_after if answer.status in HINTED_STATUSES else None
        position = commit.state.position + 1
        recorded += commit.apply(
            Record(
                claim.delivery_id,
                answer.status,
                claim.started_at,
                duration,
                answer.outcome,
                answer.error,
                None if hint is None else hint * 1000,
                claim.worker,
            )
        )
        if answer.body and not commit.state.deliveries[claim.delivery_id].erased:
            vault.write_response(commit.connection, position, claim.position, key, answer.body)
    return recorded


def _sweep(commit: Commit) -> list[Entry]:
    """Attempts of workers that are taken for dead count, as lost."""
    expired = claims.expired(commit.connection, commit.now)
    if not expired:
        return []
    claims.release(commit.connection, [lost.fence for lost in expired])
    return [
        entry
        for lost in expired
        for entry in commit.apply(
            Record(lost.delivery_id, 0, lost.started_at, error="lost", worker=lost.worker)
        )
    ]
