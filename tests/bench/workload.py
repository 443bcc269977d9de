"""The histories that are measured: operations for `run`, without chance in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Operations = list[list[Any]]

EVENTS_PER_ENDPOINT = 100
EVENTS_PER_PROCESS = 1000
ONCE_MORE = [503, 200]
AT_ONCE = [200]
NEVER = [503]
FIRST_WAIT = 30


def endpoint(number: int) -> str:
    return f"endpoint-{number}"


def event(number: int) -> str:
    return f"evt-{number}"


def registrations(endpoints: int) -> Operations:
    return [["register", 0, endpoint(n), f"https://host-{n}.example/hooks"] for n in range(endpoints)]


def delivered(events: int) -> Operations:
    """Events over a hundredth as many endpoints, a quarter failing once, until nothing is pending.

    After one event for each endpoint comes a `process`, ten seconds later each: retries come due along the
    way, and hold up what is behind them.
    """
    endpoints = max(1, events // EVENTS_PER_ENDPOINT)
    operations = registrations(endpoints)
    ts = 0
    for n in range(events):
        operations.append(["enqueue", ts, *_share(n, endpoints)])
        if n % endpoints == endpoints - 1:
            operations.append(["process", ts])
            ts += 10
    return operations + [["process", ts + n * FIRST_WAIT] for n in range(EVENTS_PER_ENDPOINT // 4 + 2)]


def mixed(operations: int) -> Operations:
    """That many operations of all seven kinds; each thousand of them is like every other.

    A thousand holds ten registrations, 40 processes half a minute apart, 40 dead letters of the newest
    endpoint, about 90 statuses, one pause whose end revives the one event that had died, and for the rest
    events of all endpoints so far, a quarter of which fail once.
    """
    mix: Operations = []
    ts = endpoints = events = 0
    while len(mix) < operations:
        place = len(mix) % 1000
        newest = endpoint(endpoints - 1)
        if place < 10:
            mix.append(["register", ts, endpoint(endpoints), f"https://host-{endpoints}.example/hooks"])
            endpoints += 1
        elif place == 10:
            mix.append(["enqueue", ts, newest, f"dead-{endpoints}", [404]])
        elif place == 700:
            mix.append(["disable", ts, newest])
        elif place == 800:
            mix.append(["enable", ts, newest, True])
        elif place % 25 == 24:
            mix.append(["process", ts])
            ts += FIRST_WAIT
        elif place % 25 == 12:
            mix.append(["dead_letters", ts, newest])
        elif place % 10 == 5:
            mix.append(["status", ts, event(events * 7 // 11)])
        else:
            mix.append(["enqueue", ts, *_share(events, endpoints)])
            events += 1
    return mix


def _share(number: int, endpoints: int) -> list[Any]:
    """Endpoint, id and outcomes of an event: endpoints take turns, each fourth event of each fails once."""
    turn, place = divmod(number, endpoints)
    return [endpoint(place), event(number), [*ONCE_MORE] if (turn + place) % 4 == 0 else [*AT_ONCE]]


def pending_after(entries: int, pending: int) -> Operations:
    """A log of so many entries: deliveries done, then pending ones, ten at each of the endpoints.

    The heads of all have failed once. At `due_one(operations)` that of endpoint 0 is due, the others later.
    """
    endpoints = pending // 10
    operations = registrations(endpoints)
    ts = 0
    done = (entries - 1 - 2 * endpoints - pending) // 2
    for n in range(done):
        operations.append(["enqueue", ts, endpoint(n % endpoints), event(n), [*AT_ONCE]])
        if n % EVENTS_PER_PROCESS == EVENTS_PER_PROCESS - 1:
            operations.append(["process", ts])
            ts += 1
    operations += [["process", ts], *_queue(ts, 0), ["process", ts]]
    for n in range(1, endpoints):
        operations += _queue(ts + 10, n)
    return [*operations, ["process", ts + 10]]


def due_one(operations: Operations) -> int:
    """When the head of endpoint 0 is due, and no other, after `pending_after`."""
    return int(operations[-1][1]) - 10 + FIRST_WAIT


def _queue(ts: int, number: int) -> Operations:
    return [["enqueue", ts, endpoint(number), f"wait-{number}-{n}", [*NEVER]] for n in range(10)]


def paused(pending: int) -> Operations:
    """One endpoint, disabled, with so many events dead and as many pending."""
    operations = registrations(1)
    operations += [["enqueue", 0, endpoint(0), f"dead-{n}", [404]] for n in range(pending)]
    operations += [["process", 0], ["disable", 0, endpoint(0)]]
    return operations + [["enqueue", 0, endpoint(0), event(n), [*AT_ONCE]] for n in range(pending)]


def deep(pending: int) -> Operations:
    """Endpoint 0 with so many events pending, the first of which has failed once."""
    operations = registrations(1)
    operations += [["enqueue", 0, endpoint(0), event(n), [*NEVER]] for n in range(pending)]
    return [*operations, ["process", 0]]


def wide(endpoints: int) -> Operations:
    """Endpoint 0 without an event, and so many others with one each, which has failed once."""
    operations = registrations(endpoints + 1)
    operations += [["enqueue", 0, endpoint(n + 1), event(n), [*NEVER]] for n in range(endpoints)]
    return [*operations, ["process", 0]]


HISTORIES: dict[str, Callable[..., Operations]] = {
    "delivered": delivered,
    "mixed": mixed,
    "pending_after": pending_after,
}
