"""Workers that are killed at any moment: nothing is lost, nothing overtakes, nothing is sent without need."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from dispatcher.core.policy import RetryPolicy
from dispatcher.live import Dispatcher
from tests.acceptance.crowd import Crowd, Killing, crowd_elsewhere
from tests.acceptance.elsewhere import Elsewhere, enqueuer_elsewhere, worker_elsewhere
from tests.acceptance.lively import LEASE_SECONDS, MovedClock, eventually, eventually_by, log_length, rows
from tests.acceptance.reckoning import assert_conserved, assert_told_as_it_came

KILLS, EVENTS, ENDPOINTS, ENQUEUERS = 32, 2_000, 40, 8
PENDING = "SELECT count(*) FROM dispatcher_deliveries WHERE state = 'pending'"
POLICY = RetryPolicy(max_attempts=6, waits=(1, 2), retryable=((0, 0), (500, 599)))


@pytest.mark.parametrize("seed", [20])
def test_workers_killed_at_any_moment_lose_nothing_keep_order_and_repeat_only_what_is_lost(
    live: Dispatcher, database: Path, clock: MovedClock, seed: int
) -> None:
    chance = random.Random(seed)
    with crowd_elsewhere() as crowd:
        for number in range(ENDPOINTS):
            live.register(
                f"shop-{number}",
                crowd.url(f"shop-{number}"),
                policy=POLICY,
                order="none" if number % 8 == 7 else "strict",
            )
        _enqueue(live, chance, range(EVENTS // 4))
        later = EVENTS * 3 // 4 // KILLS
        workers: list[Elsewhere] = []
        for kill in range(KILLS):
            last = EVENTS if kill == KILLS - 1 else EVENTS // 4 + (kill + 1) * later
            while len(workers) < chance.choice((1, 1, 2)):
                workers.append(worker_elsewhere(database, clock, name=chance.choice("ab")))
            victim = workers.pop(chance.randrange(len(workers)))
            _kill(victim, crowd, database, clock, chance)
            _enqueue(live, chance, range(EVENTS // 4 + kill * later, last))
            # Whoever else is alive, or comes next, finds what the dead one held.
            clock.move(LEASE_SECONDS + 1)
        workers.append(worker_elsewhere(database, clock))
        eventually_by(clock, lambda: rows(database, PENDING) == [(0,)])
        for worker in workers:
            worker.kill()
        events = assert_told_as_it_came(database, crowd.came())
    assert len(events) == EVENTS
    ends = Counter(event.end for event in events.values())
    assert_conserved(database, delivered=ends["delivered"], dead=ends["dead"])
    errors = Counter(one.get("error", one["status"]) for event in events.values() for one in event.tries)
    assert errors.keys() == {"lost", 200, 503}
    assert errors["lost"] >= KILLS // 2, "the kills met requests in flight"


def _enqueue(live: Dispatcher, chance: random.Random, numbers: range) -> None:
    """Events, one in eight of which fails once, twice, or always."""
    for number in numbers:
        endpoint = number % ENDPOINTS
        name = f"evt-{number}" + (f"-f{chance.choice((1, 2, 9))}" if chance.random() < 1 / 8 else "")
        keyed = endpoint % 8 == 3
        live.enqueue(
            f"shop-{endpoint}", number, event_id=name, order_key=chance.choice("xyz") if keyed else None
        )


def _kill(worker: Elsewhere, crowd: Crowd, database: Path, clock: MovedClock, chance: random.Random) -> None:
    """At the nth arrival, before or after its answer; or when the nth entry from now on was committed."""
    moment, nth = chance.choice(("asked", "answered", "committed")), chance.randint(1, 60)
    pid = worker.process.pid
    assert pid is not None
    if moment == "committed":
        begun = log_length(database)
        eventually_by(clock, lambda: log_length(database) >= begun + nth)
        worker.process.kill()
    else:
        crowd.kill_at(Killing(pid, nth, moment == "answered"))
        eventually_by(clock, crowd.killed)
    assert worker.ended() == -9


def test_enqueuers_killed_at_any_moment_leave_what_they_were_told_was_accepted(
    live: Dispatcher, database: Path, clock: MovedClock
) -> None:
    """And at most one event more: the one whose answer was under way."""
    chance = random.Random(21)
    with crowd_elsewhere() as crowd:
        live.register("shop", crowd.url("shop"))
        worker = worker_elsewhere(database, clock)
        answered: list[str] = []
        for number in range(ENQUEUERS):
            enqueuer = enqueuer_elsewhere(database, clock)
            enqueuer.line.send([("shop", f"evt-{number}-{n}") for n in range(1_000)])
            answered += [enqueuer.hear() for _ in range(chance.randint(1, 40))]
            enqueuer.process.kill()
            answered += enqueuer.rest()
        eventually(lambda: rows(database, PENDING) == [(0,)])
        worker.kill()
        events = assert_told_as_it_came(database, crowd.came())
    assert [event for event in events if event in answered] == answered
    assert len(events) <= len(answered) + ENQUEUERS
    assert_conserved(database, delivered=len(events))
