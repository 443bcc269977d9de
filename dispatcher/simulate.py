"""`run`: operations in, results out, in simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from dispatcher.arguments import (
    INVALID,
    Invalid,
    parse_anything,
    parse_flag,
    parse_id,
    parse_list,
    parse_text,
    parse_ts,
    parse_url,
)
from dispatcher.core.agenda import Agenda
from dispatcher.core.entries import AttemptRecorded
from dispatcher.core.operations import AnyOperation, Disable, Enable, Enqueue, Refusal, Register
from dispatcher.core.policy import PROMISED
from dispatcher.core.script import scripted_attempt
from dispatcher.core.status import attempt_record, status
from dispatcher.log.append import Appender, appending
from dispatcher.log.collector import paused_collector
from dispatcher.log.open import Database, Target

OPERATIONS_PER_LOAD = 500

Parser = Callable[[Any], Any]


def run(operations: Iterable[object], database: Target = None) -> list[Any]:
    """Execute `[name, ts, *args]` operations in order; one result for each.

    Times are whole seconds that never decrease. Refusals are results: "error: <code>". `database` is None
    for a private one in memory, a path, or a SQLAlchemy URL; a log that is there already is continued. The
    call is one transaction: what it did is durable when it returns. Raises StorageError for trouble with
    the database and WrongKind for a live log; then nothing was changed.
    """
    with Database(database) as opened, appending(opened, "simulated") as log, paused_collector():
        simulation = Simulation(log)
        return [simulation.execute(operation) for operation in simulation.loaded(operations)]


class Simulation:
    """Drives the rules with simulated time and scripted outcomes."""

    def __init__(self, log: Appender) -> None:
        self._log = log
        self._state = log.state
        self._agenda = Agenda(log.state)
        log.on_change = self._agenda.note
        # What each operation takes after its name and ts; the last `optional` arguments may be left out.
        self._operations: dict[str, tuple[Callable[..., Any], tuple[Parser, ...], int]] = {
            "register": (self._register, (parse_id, parse_url), 0),
            "enqueue": (self._enqueue, (parse_id, parse_id, parse_anything), 0),
            "process": (self._process, (), 0),
            "status": (self._status, (parse_id,), 0),
            "dead_letters": (self._dead_letters, (parse_id,), 1),
            "disable": (self._disable, (parse_id,), 0),
            "enable": (self._enable, (parse_id, parse_flag), 0),
        }

    def execute(self, operation: object) -> Any:
        """The result of one operation, or "error: <code>". Whatever it holds, it never raises."""
        parts = parse_list(operation)
        if parts is None or not parts:
            return error("invalid_arguments")
        found = self._operations.get(parse_text(parts[0]) or "")
        if found is None:
            return error("unknown_operation")
        method, parsers, optional = found
        given = len(parts) - 2
        if not len(parsers) - optional <= given <= len(parsers):
            return error("invalid_arguments")
        ts = parse_ts(parts[1])
        if isinstance(ts, Invalid):
            return error("invalid_arguments")
        arguments = []
        for parse, part in zip(parsers, parts[2:], strict=False):
            argument = parse(part)
            if argument is INVALID:
                return error("invalid_arguments")
            arguments.append(argument)
        if self._state.ts is not None and ts < self._state.ts:
            return error("time_went_backwards")
        return method(ts, *arguments)

    def loaded(self, operations: Iterable[object]) -> Iterator[object]:
        """The operations, with what they name fetched for many of them at once."""
        if self._state.source is None:
            yield from operations
            return
        remaining = iter(operations)
        while batch := list(islice(remaining, OPERATIONS_PER_LOAD)):
            lists = [parts for parts in map(parse_list, batch) if parts]
            names = {parse_id(part) for parts in lists for part in parts[2:4]}
            named = [name for name in names if not isinstance(name, Invalid)]
            self._state.load_endpoints(named)
            self._state.load_deliveries(named)
            yield from batch

    def _register(self, ts: int, endpoint_id: str, url: str) -> Any:
        return self._apply(Register(endpoint_id=endpoint_id, url=url, policy=PROMISED), ts, True)

    def _enqueue(self, ts: int, endpoint_id: str, event_id: str, outcomes: object) -> Any:
        return self._apply(Enqueue(endpoint_id, event_id, outcomes), ts, "queued")

    def _disable(self, ts: int, endpoint_id: str) -> Any:
        return self._apply(Disable(endpoint_id), ts, True)

    def _enable(self, ts: int, endpoint_id: str, replay_dead: bool) -> Any:
        return self._apply(Enable(endpoint_id, replay_dead), ts, True)

    def _apply(self, operation: AnyOperation, ts: int, result: Any) -> Any:
        decided = self._log.apply(operation, ts)
        return error(decided.code) if isinstance(decided, Refusal) else result

    def _process(self, ts: int) -> list[str]:
        records = []
        while (record := scripted_attempt(self._agenda, ts)) is not None:
            decided = self._log.apply(record, ts)
            assert not isinstance(decided, Refusal)
            attempt = decided[0].body
            assert isinstance(attempt, AttemptRecorded)
            records.append(attempt_record(record.delivery_id, attempt))
        return records

    def _status(self, ts: int, event_id: str) -> Any:
        delivery = self._state.delivery(event_id)
        return error("unknown_event") if delivery is None else status(delivery)

    def _dead_letters(self, ts: int, endpoint_id: str | None = None) -> Any:
        if endpoint_id is None:
            return [delivery.id for delivery in self._state.all_dead()]
        endpoint = self._state.endpoint(endpoint_id)
        if endpoint is None:
            return error("unknown_endpoint")
        return [delivery.id for delivery in self._state.dead(endpoint)]


def error(code: str) -> str:
    return f"error: {code.replace('_', ' ')}"
