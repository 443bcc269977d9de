"""Attempts, as the log comes to hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dispatcher.core.entries import AttemptRecorded, Entry
from dispatcher.log.open import Database
from dispatcher.log.pages import pages
from dispatcher.log.read import entry_of, last_entry


class Attempt(NamedTuple):
    """One that was recorded, of a live log."""

    ts: int
    tenant: str
    endpoint_id: str
    event_id: str
    body: AttemptRecorded

    @classmethod
    def of(cls, entry: Entry) -> Attempt:
        assert isinstance(entry.body, AttemptRecorded)
        tenant, endpoint_id, event_id = (entry.delivery_id or "").split("/")
        return cls(entry.ts, tenant, endpoint_id, event_id, entry.body)

    @property
    def outcome(self) -> str:
        """In words, without ids and number."""
        body = self.body
        then: str = body.decision
        if body.retry_at is not None:
            then = f"again in {in_seconds(body.retry_at - self.ts)}"
        return f"{body.error or body.status}, {then}"

    @property
    def sentence(self) -> str:
        return f"{self.event_id} for {self.endpoint_id}: attempt {self.body.attempt}: {self.outcome}"

    @property
    def fields(self) -> dict[str, object]:
        """As JSON; the tenant is unseen unless it is used."""
        body = self.body
        return {
            **({} if self.tenant == "default" else {"tenant": self.tenant}),
            "endpoint_id": self.endpoint_id,
            "event_id": self.event_id,
            "attempt": body.attempt,
            "status": body.status,
            "error": body.error,
            "decision": body.decision,
            "next_attempt_at": body.retry_at,
            "worker": body.worker,
        }


def in_seconds(milliseconds: int) -> str:
    return f"{-(-milliseconds // 1000)} s"


class Recorded:
    """The attempts that are recorded from its making on."""

    def __init__(self, database: str) -> None:
        self._database = database
        with Database(database, "read") as opened, opened.read() as connection:
            self._position, _ = last_entry(connection)

    def new(self) -> Iterator[Attempt]:
        """Those since it was last asked."""
        for page in pages(self._database, after=self._position):
            for row in page:
                self._position = row.position
                if row.type == AttemptRecorded.__name__:
                    yield Attempt.of(entry_of(row))
