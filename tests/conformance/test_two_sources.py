"""One state, two sources: held in memory, or read from the view tables of a database as it is needed.

The same random operations go through both. The database is opened anew for every transaction.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from dispatcher.core.agenda import Agenda
from dispatcher.core.decide import decide
from dispatcher.core.entities import Delivery
from dispatcher.core.entries import Entry, Kind
from dispatcher.core.evolve import evolve
from dispatcher.core.operations import AnyOperation, Enqueue, Record, Refusal, Revive
from dispatcher.core.state import State
from dispatcher.core.status import due_at, status
from dispatcher.log.append import Appender, appending
from dispatcher.log.compare import differences
from dispatcher.log.fold import fold
from dispatcher.log.open import Database
from dispatcher.log.read import last_entry
from dispatcher.log.views import ViewSource
from tests.core_steps import FRESH, Attempt, Backlog, Bury, Process, Step, Unbury, transactions
from tests.ramdisk import ramdisk

UNHURRIED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


class Memory:
    """The state by decide and evolve alone, with an agenda that lives as long as it."""

    def __init__(self, kind: Kind) -> None:
        self.state = State(kind)
        self.agenda = Agenda(self.state)

    def apply(self, operation: AnyOperation, ts: int) -> list[Entry] | Refusal:
        decided = decide(self.state, operation, ts)
        if not isinstance(decided, Refusal):
            for entry in decided:
                changed = evolve(self.state, entry)
                if changed is not None:
                    self.agenda.note(changed)
        return decided


class Both:
    """Drives memory and file side by side, and compares what they say at every step."""

    def __init__(self, kind: Kind, file: Path) -> None:
        self.kind: Kind = kind
        self.memory = Memory(kind)
        self.file = file
        self.ts = 0
        self.made = 0

    def transact(self, steps: list[Step]) -> None:
        with Database(self.file) as database, appending(database, self.kind) as log:
            agenda = Agenda(log.state)
            if any(isinstance(action, Attempt | Process) for _, action in steps):
                log.on_change = agenda.note  # others, who follow no changes, leave the same tables
            for later, action in steps:
                self.ts += later
                match action:
                    case Attempt():
                        self._attempt(log, agenda, action)
                    case Process():
                        for n in range(60):
                            one = Attempt(action.statuses[n % len(action.statuses)], None)
                            if not self._attempt(log, agenda, one):
                                break
                    case Backlog():
                        for _ in range(action.size):
                            script = [200] if self.kind == "simulated" else None
                            self._apply(log, Enqueue(action.endpoint_id, FRESH, script, action.order_key))
                    case Bury():
                        self._bury(log, action)
                    case Unbury():
                        dead = self._dead(action.endpoint_id)
                        self._apply(log, Revive(action.endpoint_id, tuple(dead[:: action.nth]), action.limit))
                    case _:
                        self._apply(log, action)

    def _apply(self, log: Appender, operation: AnyOperation) -> None:
        if isinstance(operation, Enqueue) and operation.delivery_id == FRESH:
            self.made += 1
            operation = msgspec.structs.replace(operation, delivery_id=f"e{self.made}")
        assert log.apply(operation, self.ts) == self.memory.apply(operation, self.ts)

    def _bury(self, log: Appender, bury: Bury) -> None:
        pending = [
            delivery.id
            for delivery in self.memory.state.deliveries.values()
            if delivery.state == "pending" and delivery.lane.endpoint.id == bury.endpoint_id
        ]
        for delivery_id in (pending[::-1] if bury.latest else pending)[: bury.size]:
            self._apply(log, Record(delivery_id, 410, self.ts, outcome="permanent"))

    def _dead(self, endpoint_id: str) -> list[str]:
        endpoint = self.memory.state.endpoint(endpoint_id)
        return [] if endpoint is None else _ids(self.memory.state.dead(endpoint))

    def _attempt(self, log: Appender, agenda: Agenda, attempt: Attempt) -> bool:
        found, other = agenda.next(self.ts), self.memory.agenda.next(self.ts)
        assert (found and found.id) == (other and other.id)
        check_turn(self.memory.state, self.ts, other)
        if found is None:
            return False
        facts = Record(found.id, attempt.status, self.ts, retry_after=attempt.retry_after)
        self._apply(log, facts)
        return True

    def compare(self) -> None:
        """What the file says, read again from its tables, against memory."""
        state = self.memory.state
        with Database(self.file, "read") as database, database.read() as connection:
            assert list(differences(connection, state)) == []
            assert list(differences(connection, fold(connection))) == []
            position, ts = last_entry(connection)
            assert (position, ts) == (state.position, state.ts)
            stored = State(self.kind, ViewSource(connection), position=position, ts=ts)
            shown = {
                delivery_id: (endpoint_id, *rest)
                for delivery_id, endpoint_id, *rest in connection.exec_driver_sql(
                    "SELECT delivery_id, endpoint_id, state, attempts, next_attempt_at, last_status,"
                    " last_error, erased FROM dispatcher_delivery_status"
                )
            }
            stored.load_deliveries(state.deliveries)
            for delivery_id, delivery in state.deliveries.items():
                twin = stored.delivery(delivery_id)
                assert twin is not None
                assert status(twin) == status(delivery)
                assert shown.pop(delivery_id) == (
                    delivery.lane.endpoint.id,
                    *status(delivery).values(),
                    delivery.last_status,
                    delivery.last_error,
                    delivery.erased,
                )
            assert shown == {}
            assert _ids(stored.all_dead()) == _ids(state.all_dead())
            for endpoint in state.endpoints.values():
                other = stored.endpoint(endpoint.id)
                assert other is not None
                assert _ids(stored.dead(other)) == _ids(state.dead(endpoint))
                assert stored.first_due(other) == state.first_due(endpoint)
            after = Agenda(stored).next(self.ts)
            mine = self.memory.agenda.next(self.ts)
            assert (after and after.id) == (mine and mine.id)


def _ids(deliveries: list[Delivery]) -> list[str]:
    return [delivery.id for delivery in deliveries]


def check_turn(state: State, ts: int, chosen: Delivery | None) -> None:
    """Whether it is the turn of what was chosen, by looking at every delivery there is."""
    heads: dict[tuple[str, str], Delivery] = {}
    for delivery in sorted(state.deliveries.values(), key=lambda delivery: delivery.order):
        if delivery.state == "pending":
            heads.setdefault((delivery.lane.endpoint.id, delivery.lane.key), delivery)
    candidates: list[tuple[int, int, str]] = []
    for head in heads.values():
        due = due_at(head)
        if due is not None and due <= ts:
            candidates.append((due, head.order, head.id))
    if not candidates:
        assert chosen is None
        return
    assert chosen is not None
    first = min(candidates)
    mine = next(candidate for candidate in candidates if candidate[2] == chosen.id)
    assert mine[0] == first[0], "the earliest due time goes first"
    endpoints = [endpoint_id for endpoint_id, _ in heads]
    if len(endpoints) == len(set(endpoints)):
        # Between several lanes of one endpoint the order at equal times is not promised.
        assert mine == first, "and at equal times the first enqueued"


@pytest.mark.parametrize("kind", ["live", "simulated"])
def test_memory_and_database_decide_and_show_the_same(kind: Kind) -> None:
    @settings(UNHURRIED, max_examples=70)
    @given(transactions(kind))
    def property_holds(history: list[list[Step]]) -> None:
        with ramdisk() as folder:
            both = Both(kind, folder / "log.db")
            for steps in history:
                both.transact(steps)
                both.compare()

    property_holds()
