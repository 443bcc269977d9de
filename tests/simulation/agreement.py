"""One history, told to `run` and to the live path, in a world where nothing takes any time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from dispatcher import run
from dispatcher.errors import NotFound, Refused
from tests.simulation.network import Network, Reaction
from tests.simulation.virtual import BEGINNING
from tests.simulation.world import World

URLS = {f"https://{name}.example/": f"default/{name}" for name in "abc"}
URL_OF = {name.removeprefix("default/"): url for url, name in URLS.items()}
BEGAN_AT = BEGINNING // 10**6
TURNS = 200
"""Of the loop, in which all that is due comes to its end."""

Operation = tuple[Any, ...]
"""What `run` is given, without its ts."""
History = Sequence[tuple[int, Operation]]
"""Seconds since the operation before, and the operation: an event's id is of one endpoint only."""


class Told(NamedTuple):
    """What is known after an operation and all that was due."""

    answer: Any
    attempts: dict[str, list[str]]
    """By endpoint: every attempt so far, each in a line, with the second of its retry."""
    statuses: dict[str, Any]
    """By event: state, attempts and the second of the next one, or the code of a refusal."""
    dead: dict[str, Any]
    """By endpoint: the ids of what is dead there, or the code of a refusal."""


def told_by_run(history: History, database: Path) -> list[Told]:
    """What `run` says, when `process` follows each operation and comes at each second a retry is due."""
    told = []
    attempts: dict[str, list[str]] = {}
    endpoint_of = _events(history)
    due: list[int] = []
    ts = 0

    def process(at: int) -> None:
        for record in run([["process", at]], database)[0]:
            attempts.setdefault(endpoint_of[record.split()[0]], []).append(record)
            if " retry at " in record:
                heappush(due, int(record.rpartition(" ")[2]))

    for delta, operation in history:
        ts += delta
        while due and due[0] <= ts:
            process(heappop(due))
        (answer,) = run([[operation[0], ts, *operation[1:]]], database)
        process(ts)
        statuses = run([["status", ts, event_id] for event_id in endpoint_of], database)
        dead = run([["dead_letters", ts, name] for name in URL_OF], database)
        told.append(
            Told(
                _code(answer),
                {name: list(records) for name, records in attempts.items()},
                dict(zip(endpoint_of, map(_code, statuses), strict=True)),
                dict(zip(URL_OF, map(_code, dead), strict=True)),
            )
        )
    return told


def told_by_the_live_path(history: History, folder: Path) -> list[Told]:
    """What the facade says, with a worker in its process."""
    world = Instant(history, folder)
    world.run()
    return world.told


class Instant(World):
    """Commits and answers take no time, and nothing goes wrong."""

    def __init__(self, history: History, folder: Path) -> None:
        super().__init__(0, folder)
        self.faults = 0.0
        self.network: Scripted = Scripted(self)
        self.told: list[Told] = []
        self.outcomes: dict[str, list[int]] = {}
        """Of each delivery that was accepted."""
        self._history = history
        self._events = _events(history)

    def commit_takes(self, chance: Random) -> float:
        return 0.0

    async def _live(self) -> None:
        self._start("both", works=True)
        self.begin_checking()
        ts = 0
        for number, (delta, operation) in enumerate(self._history):
            ts += delta
            await asyncio.sleep(ts - self.loop.time())
            await self._settle()
            answer = self._answer(number, *operation)
            await self._settle()
            self.told.append(Told(answer, self._attempts(), self._statuses(), self._dead()))
        await self.processes[0].end(0)

    async def _settle(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)

    def _answer(self, number: int, name: str, *arguments: Any) -> Any:
        live = self.processes[0].live
        try:
            match name, arguments:
                case "register", [endpoint_id, url]:
                    live.register(endpoint_id, url)
                case "enqueue", [endpoint_id, event_id, outcomes]:
                    # The same content again would be answered as the first time.
                    live.enqueue(endpoint_id, f"{event_id}: {number}", event_id=event_id)
                    self.outcomes[f"default/{endpoint_id}/{event_id}"] = outcomes
                    return "queued"
                case "disable", [endpoint_id]:
                    live.disable(endpoint_id)
                case "enable", [endpoint_id, replay_dead]:
                    live.enable(endpoint_id, replay_dead=replay_dead)
        except Refused as refused:
            return refused.code
        return True

    def _attempts(self) -> dict[str, list[str]]:
        live, found = self.processes[0].live, dict[str, list[tuple[int, str]]]()
        for event_id, endpoint_id in self._events.items():
            try:
                entries = live.history(endpoint_id, event_id)
            except NotFound:
                continue
            for entry in entries:
                if entry["type"] == "AttemptRecorded":
                    found.setdefault(endpoint_id, []).append(
                        (entry["position"], _line(event_id, entry["data"]))
                    )
        return {name: [line for _, line in sorted(lines)] for name, lines in found.items()}

    def _statuses(self) -> dict[str, Any]:
        return {event_id: self._status(name, event_id) for event_id, name in self._events.items()}

    def _status(self, endpoint_id: str, event_id: str) -> Any:
        try:
            status = self.processes[0].live.status(endpoint_id, event_id)
        except NotFound:
            return "unknown_event"
        due = status["next_attempt_at"]
        return {
            "state": status["state"],
            "attempts": status["attempts"],
            "next_attempt_at": None if due is None else _second(due),
        }

    def _dead(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for endpoint_id in URL_OF:
            try:
                letters = self.processes[0].live.dead_letters(endpoint_id)
            except NotFound:
                found[endpoint_id] = "unknown_endpoint"
            else:
                found[endpoint_id] = [letter["event_id"] for letter in letters]
        return found


class Scripted(Network):
    """Each attempt has the next of its event's outcomes; the last of them repeats."""

    endpoints = URLS

    def __init__(self, world: Instant) -> None:
        super().__init__(world.chances)
        self._world = world

    def reaction(self, delivery_id: str, now: float) -> Reaction:
        outcomes = self._world.outcomes[delivery_id]
        status = outcomes[min(self._world.checker.deliveries[delivery_id].attempts, len(outcomes) - 1)]
        return Reaction(0, 0, status or "connection_refused")


def _events(history: Iterable[tuple[int, Operation]]) -> dict[str, str]:
    """The endpoint of each event that is ever named."""
    return {arguments[1]: arguments[0] for _, (name, *arguments) in history if name == "enqueue"}


def _code(answer: Any) -> Any:
    refused = isinstance(answer, str) and answer.startswith("error: ")
    return answer.removeprefix("error: ").replace(" ", "_") if refused else answer


def _line(event_id: str, attempt: dict[str, Any]) -> str:
    """An attempt as `run` tells it, and nothing of what the live path adds."""
    retry_at = attempt.get("retry_at")
    told = attempt["decision"] if retry_at is None else f"retry at {_second(retry_at)}"
    return f"{event_id} #{attempt['attempt']} {attempt['status']} {told}"


def _second(ts: int) -> float | int:
    """Since the beginning."""
    seconds, rest = divmod(ts - BEGAN_AT, 1000)
    return seconds if rest == 0 else seconds + rest / 1000
