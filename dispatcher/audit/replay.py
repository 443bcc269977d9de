"""The log, gone through again: what happened, and whether the rules would decide it so again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dispatcher.audit.finding import Finding
from dispatcher.audit.history import describe
from dispatcher.audit.retell import Recorded, next_operation
from dispatcher.core.agenda import Agenda
from dispatcher.core.decide import decide
from dispatcher.core.entries import AttemptRecorded, Entry
from dispatcher.core.evolve import evolve
from dispatcher.core.operations import AnyOperation, Record, Refusal
from dispatcher.core.script import scripted_attempt
from dispatcher.core.state import State
from dispatcher.core.status import attempt_record
from dispatcher.log.collector import paused_collector
from dispatcher.log.fold import Progress, new_state
from dispatcher.log.open import Database, Target
from dispatcher.log.pages import pages
from dispatcher.log.read import entry_of, last_entry


class Attempt(NamedTuple):
    """One recorded attempt; ts in the log's unit."""

    position: int
    ts: int
    endpoint_id: str
    event_id: str
    record: str
    """As `run` returned it: `evt-1 #1 503 retry at 30`."""


def replay(
    database: Target,
    *,
    until: int | None = None,
    until_ts: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Attempt]:
    """Every attempt as it was recorded, in order, up to a position or the last entry with ts <= until_ts."""
    for position, entry in _entries(database, until, until_ts, progress):
        if isinstance(entry.body, AttemptRecorded):
            yield Attempt(
                position,
                entry.ts,
                entry.endpoint_id or "",
                entry.delivery_id or "",
                attempt_record(entry.delivery_id or "", entry.body),
            )


def check(
    database: Target,
    *,
    until: int | None = None,
    until_ts: int | None = None,
    progress: Progress | None = None,
) -> Finding | None:
    """Decide everything again from the recorded facts, under the policies in force at the time.

    Returns the first entry that differs from what the rules make of those before it, or None. In a simulated
    log, what was attempted, when, and with which status is decided again as well. An operation whose entries
    go on past `until` is checked whole.
    """
    with Database(database, "read") as opened, opened.read() as connection:
        state = new_state(connection)
    agenda = Agenda(state)
    recorded = Recorded(entry for _, entry in _entries(database, None, until_ts, progress))
    with paused_collector():
        while until is None or state.position < until:
            operation = next_operation(recorded, state.kind)
            if operation is None:
                break
            finding = _check(state, agenda, operation, recorded)
            if finding is not None:
                return finding
    return None


def _check(state: State, agenda: Agenda, operation: AnyOperation, recorded: Recorded) -> Finding | None:
    """Whether the entries ahead are what comes of an operation; takes them into the state if so."""
    first = recorded.peek(0)
    assert first is not None
    position = state.position + 1
    if state.ts is not None and first.ts < state.ts:
        return Finding(position, f"{describe(first)}; that is at {first.ts}, after an entry at {state.ts}")
    if isinstance(operation, Record) and state.kind == "simulated":
        # Nothing in a simulation comes from outside: what is attempted, and what comes of it, is decided too.
        scripted = scripted_attempt(agenda, first.ts)
        if scripted is None:
            return Finding(position, f"{describe(first)}; by the rules nothing is due at {first.ts}")
        operation = scripted
    decided = decide(state, operation, first.ts)
    if isinstance(decided, Refusal):
        return Finding(position, f"{describe(first)}; the rules refuse that: {decided.code}")
    if not decided:
        return Finding(position, f"{describe(first)}; the rules make nothing of that")
    for wanted in decided:
        found = recorded.take()
        if found != wanted:
            said = "the log ends" if found is None else describe(found)
            return Finding(state.position + 1, f"{said}; by the rules: {describe(wanted)}")
        changed = evolve(state, wanted)
        if changed is not None:
            agenda.note(changed)
    return None


def _entries(
    database: Target, until: int | None, until_ts: int | None, progress: Progress | None
) -> Iterator[tuple[int, Entry]]:
    if until is None:
        with Database(database, "read") as opened, opened.read() as connection:
            until = last_entry(connection)[0]
    for page in pages(database, until=until):
        for row in page:
            if until_ts is not None and row.ts > until_ts:
                return
            yield row.position, entry_of(row)
        if progress is not None:
            progress(page[-1].position, until)
