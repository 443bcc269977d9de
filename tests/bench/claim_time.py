"""What claiming takes on a long log, against a short one with the same work due.

Logs of 1,000,000 entries and of 1,000: events delivered, and behind them 200 endpoints of which half have
their first event due, and one more waiting behind it. Each claim takes up to 64 of those, within a
transaction that holds the log's lock, on a connection that has claimed before; the transaction is then rolled
back, so that every claim finds the same. Claims alone are timed, by turns of 100 on either log.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter

from dispatcher.core.operations import AnyOperation, Enqueue, Record, Refusal, Register
from dispatcher.core.policy import PROMISED
from dispatcher.log.append import Memory, appending
from dispatcher.log.claims import Limits, claim
from dispatcher.log.collector import paused_collector
from dispatcher.log.open import Database
from tests.bench.measure import arguments, durable, in_turns, print_line, rounded, summary

SHORTEST = 1_000
ENDPOINTS = 200
AT_ONCE = 64
OPERATIONS_PER_TRANSACTION = 20_000
NOW = 1_000_000
DIGEST = "0" * 32


def history(entries: int) -> Iterator[tuple[int, AnyOperation]]:
    """Operations with their times: that many entries with the one that opens the log, or one fewer."""
    names = [f"default/endpoint-{n}" for n in range(ENDPOINTS)]
    for name in names:
        yield 0, Register(endpoint_id=name, url="https://host.example", policy=PROMISED.scaled(1000))
    due = names[::2]
    for n in range((entries - 1 - len(names) - 2 * len(due)) // 2):
        event = f"{names[n % ENDPOINTS]}/event-{n}"
        yield 0, Enqueue(names[n % ENDPOINTS], event, seed=n, digest=DIGEST)
        yield 0, Record(event, 200, 0, worker="worker")
    for place in ("head", "behind"):
        for name in due:
            yield 1, Enqueue(name, f"{name}/{place}", seed=1, digest=DIGEST)


def build(path: Path, entries: int) -> int:
    """Write the history; how many entries it came to."""
    operations, memory = history(entries), Memory()
    with Database(path) as database, paused_collector():
        while some := list(islice(operations, OPERATIONS_PER_TRANSACTION)):
            with appending(database, "live", memory) as log:
                for ts, operation in some:
                    decided = log.apply(operation, ts)
                    assert not isinstance(decided, Refusal), decided
                position = log.state.position
    durable(path)
    return position


class _Undo(Exception):
    """Ends a transaction without a trace."""


class Claims:
    """One log, kept open as a worker does."""

    def __init__(self, database: Database, claims: int) -> None:
        self._database = database
        self._claims = claims
        self.claimed = 0

    def one(self) -> float:
        """Seconds of one claim."""
        try:
            with self._database.write() as connection:
                start = perf_counter()
                claimed = claim(connection, NOW, "worker", AT_ONCE, Limits(lease=40_000))
                seconds = perf_counter() - start
                self.claimed = len(claimed)
                raise _Undo
        except _Undo:
            return seconds

    def turn(self) -> list[float]:
        return [self.one() for _ in range(self._claims)]


@contextmanager
def kept(path: Path, claims: int) -> Iterator[Claims]:
    with Database(path, lasting=True) as database:
        yield Claims(database, claims)


def main() -> None:
    given = arguments(__doc__, 1_000_000, claims=100)
    with tempfile.TemporaryDirectory() as folder:
        paths = {"long": Path(folder) / "long.db", "short": Path(folder) / "short.db"}
        entries = {
            "long": build(paths["long"], given.size),
            "short": build(paths["short"], min(SHORTEST, given.size)),
        }
        claims = given.others["claims"]
        with kept(paths["long"], claims) as long, kept(paths["short"], claims) as short:
            measured = in_turns({"long": long.turn, "short": short.turn}, given.rounds)
        assert long.claimed == short.claimed > 0
    taken = {side: [median(turn) for turn in turns] for side, turns in measured.items()}
    line = {
        "ratio": rounded(median(taken["long"]) / median(taken["short"])),
        **{f"{side}_claim_seconds": summary(seconds) for side, seconds in taken.items()},
        "claimed_at_once": long.claimed,
        "entries": entries,
        "due_endpoints": ENDPOINTS // 2,
    }
    print_line("claim_time", "long_claim_seconds / short_claim_seconds <= 1.5", line)


if __name__ == "__main__":
    main()
