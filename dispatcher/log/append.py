"""Writing to the log: operations in, entries and changed views out, all in one transaction."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Table

from dispatcher.core.decide import decide
from dispatcher.core.entities import Delivery, Endpoint
from dispatcher.core.entries import Entry, Kind, PayloadErased, encode_body
from dispatcher.core.evolve import evolve
from dispatcher.core.merkle import Frontier, leaf_hash
from dispatcher.core.operations import AnyOperation, Refusal
from dispatcher.core.state import State
from dispatcher.errors import WrongKind
from dispatcher.log.open import Database
from dispatcher.log.read import last_entry, load_frontier, log_kind
from dispatcher.log.rows import Row, driver, insert_rows
from dispatcher.log.views import ViewSource, write_changes
from dispatcher.log.writer import ROWS_PER_STEP, LogWriter

LARGEST_MEMORY = 50_000
"""What a state may remember, from one transaction to the next."""
# In place, where no byte of them is left behind; one by one, since SQLite writes what a statement overwrites
# to a file of its own, for as long as the statement may fail, once that is more than 64 KiB.
_DESTROY_KEY = "UPDATE dispatcher_payload_keys SET key = zeroblob(length(key)) WHERE n = ?"
_NOTE_UNSCRUBBED = "INSERT OR IGNORE INTO dispatcher_unscrubbed SELECT value FROM json_each(?)"


class Memory:
    """What one transaction leaves for the next: good for as long as nobody else appends in between."""

    def __init__(self) -> None:
        self.state: State | None = None
        self.frontier: Frontier | None = None

    def keep(self, state: State, frontier: Frontier | None) -> None:
        small = state.size() <= LARGEST_MEMORY
        self.state, self.frontier = (state, frontier) if small else (None, None)

    def clear(self) -> None:
        self.state = self.frontier = None


class Appender:
    """One transaction on the log, which holds the log's lock. Made by `appending`."""

    def __init__(self, connection: Connection, kind: Kind, memory: Memory) -> None:
        self.connection = connection
        self._begun_at, ts = last_entry(connection)
        source = ViewSource(connection) if self._begun_at else None
        self.written_to = self._begun_at
        """The position up to which the tables say what the state says."""
        self._writer = LogWriter(connection)
        self.frontier: Frontier | None = None
        if memory.state is not None and memory.state.position == self._begun_at:
            self.state = memory.state
            self.frontier = memory.frontier
            if self.state.source is not None:
                self.state.source = source
        else:
            self.state = State(kind, source, position=self._begun_at, ts=ts)
        self._rows: list[Row] = []
        self._leaves: list[bytes] = []
        self._rows_beside: defaultdict[Table, list[Row]] = defaultdict(list)
        self.beside = 0
        """How often rows were given to be written with the entries."""
        self._erased: list[int] = []
        """Positions of deliveries whose payloads' keys are to be destroyed."""
        self._deliveries: dict[int, Delivery] = {}
        self._endpoints: dict[str, Endpoint] = {}
        self.on_change: Callable[[Delivery | Endpoint], None] = _ignore
        """Told of each delivery or endpoint that an entry changed."""

    def apply(self, operation: AnyOperation, ts: int) -> list[Entry] | Refusal:
        """Decide an operation at ts (the log's unit), and append what comes of it unless it is refused."""
        decided = decide(self.state, operation, ts)
        if not isinstance(decided, Refusal):
            for entry in decided:
                self._append(entry)
        return decided

    @property
    def endpoints_changed(self) -> bool:
        """Whether endpoints themselves were changed, so that their rows say less than the state."""
        return bool(self._endpoints)

    def insert(self, table: Table, rows: Iterable[Row]) -> None:
        """Rows to be written with the entries, many at a time."""
        self._rows_beside[table] += rows
        self.beside += 1

    def _append(self, entry: Entry) -> None:
        changed = evolve(self.state, entry)
        if isinstance(changed, Delivery):
            self._deliveries[changed.order] = changed
            if isinstance(entry.body, PayloadErased):
                self._erased.append(changed.order)
            self.on_change(changed)
        elif changed is not None:
            self._endpoints[changed.id] = changed
            self.on_change(changed)
        position = self.state.position
        body = entry.body
        entry_type = type(body).__name__
        data = encode_body(body)
        ts, endpoint_id, delivery_id = entry.ts, entry.endpoint_id, entry.delivery_id
        leaf = leaf_hash(position, ts, entry_type, body.VERSION, endpoint_id, delivery_id, data)
        self._leaves.append(leaf)
        self._rows.append(
            (position, ts, entry_type, body.VERSION, endpoint_id, delivery_id, data.decode(), leaf)
        )
        if len(self._rows) == ROWS_PER_STEP:
            self._insert()

    def _insert(self) -> None:
        if self.frontier is None:
            self.frontier = load_frontier(self.connection, self._begun_at)
        self._writer.insert(self._rows, self.frontier.extend(self._leaves))
        self._rows = []
        self._leaves = []

    def finish(self) -> None:
        """Write what is still in memory, so that the tables say what the state says; the caller commits."""
        if self._rows:
            self._insert()
        self._writer.wait()
        for table, rows in self._rows_beside.items():
            insert_rows(self.connection, table, rows)
        self._rows_beside.clear()
        if self._erased:
            # Here, so that no entry says so of a payload that can still be read.
            driver(self.connection).executemany(_DESTROY_KEY, [(n,) for n in self._erased])
            driver(self.connection).execute(_NOTE_UNSCRUBBED, (json.dumps(self._erased),))
            self._erased = []
        deliveries = self._deliveries.values()
        lanes = {id(delivery.lane): delivery.lane for delivery in deliveries}.values()
        self._endpoints.update((lane.endpoint.id, lane.endpoint) for lane in lanes)
        changes = deliveries, lanes, self._endpoints.values()
        write_changes(self.connection, self.state, changes, self.written_to)
        self.written_to = self.state.position
        self._deliveries, self._endpoints = {}, {}

    def close(self) -> None:
        """Nothing goes on after this, whether it was finished or not."""
        self._writer.close()


def _ignore(changed: Delivery | Endpoint) -> None:
    """Nobody follows the changes."""


@contextmanager
def appending(database: Database, kind: Kind, memory: Memory | None = None) -> Iterator[Appender]:
    """Hold the log's lock for a block: all that it applied is durable when the block ends, or none of it.

    A memory is filled and used from call to call. Raises WrongKind when the log is of the other kind.
    """
    memory = memory or Memory()
    try:
        with database.write() as connection:
            # Its first entry never changes: a state that was kept is of the right kind.
            found = kind if memory.state is not None else log_kind(connection)
            if found not in (None, kind):
                raise WrongKind(f"{database.place} holds a {found} log, not a {kind} one")
            appender = Appender(connection, kind, memory)
            try:
                yield appender
                appender.finish()
            finally:
                appender.close()
    except BaseException:
        memory.clear()
        raise
    memory.keep(appender.state, appender.frontier)
