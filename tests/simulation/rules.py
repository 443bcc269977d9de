"""The rules, asked directly: what the live path decides over its tables they have to decide in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from dispatcher.core.decide import decide
from dispatcher.core.entries import Entry
from dispatcher.core.evolve import evolve
from dispatcher.core.operations import AnyOperation, Refusal
from dispatcher.core.state import State
from dispatcher.errors import Refused
from dispatcher.log.commit import Commit
from tests.simulation.invariants import must


class Rules:
    """Decides each operation of a world once more, in one state that no database has touched."""

    def __init__(self) -> None:
        self._state = State("live")
        self._applied: list[tuple[AnyOperation, int, list[Entry] | str]] = []
        """In the transaction under way: an operation, its time, and its entries or why it was refused."""

    def watched(self) -> type[Commit]:
        """A commit that tells what it decides."""
        applied = self._applied

        class Watched(Commit):
            def apply(self, operation: AnyOperation) -> list[Entry]:
                try:
                    decided = super().apply(operation)
                except Refused as refused:
                    applied.append((operation, self.now, refused.code))
                    raise
                applied.append((operation, self.now, list(decided)))
                return decided

        return Watched

    def begin(self) -> None:
        """A transaction begins: whatever was decided in one that was undone has not been."""
        self._applied.clear()

    def committed(self) -> Iterator[dict[str, Any]]:
        """Each operation as JSON, with its ts and the positions of its entries, or why it was refused."""
        for operation, ts, decided in self._applied:
            again = decide(self._state, operation, ts)
            same = (again.code if isinstance(again, Refusal) else again) == decided
            must(same, "the rules alone decide the same:", operation, decided, again)
            told = {"ts": ts, **msgspec.to_builtins(operation)}
            if isinstance(again, Refusal):
                yield {**told, "refused": again.code}
                continue
            first = self._state.position + 1
            for entry in again:
                evolve(self._state, entry)
            yield {**told, "entries": list(range(first, self._state.position + 1))}
        self._applied.clear()
