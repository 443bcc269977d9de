"""The log, folded into a state in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from sqlalchemy import Connection

from dispatcher.core.evolve import Inconsistent, take
from dispatcher.core.state import State
from dispatcher.core.upcast import DECODERS, UnknownEntry
from dispatcher.errors import LogCorrupt
from dispatcher.log.collector import paused_collector
from dispatcher.log.read import first_gap, last_entry, log_kind, rows

FOLDED_COLUMNS = "ts, type, version, endpoint_id, delivery_id, data"

Progress = Callable[[int, int], None]
"""Told now and then how many steps are done, and of how many."""


def new_state(connection: Connection) -> State:
    """An empty state of the log's kind, to fold into."""
    return State(log_kind(connection) or "simulated")


def fold(connection: Connection, until: int | None = None, progress: Progress | None = None) -> State:
    """The state after position `until` (the whole log: None), folded from the log's start.

    Raises LogCorrupt at the first entry that can't be read or can't follow.
    """
    state = new_state(connection)
    last = last_entry(connection)[0]
    total = last if until is None else min(until, last)
    with paused_collector():
        for batch in rows(connection, state.position, total, FOLDED_COLUMNS):
            fold_rows(state, batch)
            if progress is not None:
                progress(state.position, total)
    if state.position != total:
        raise LogCorrupt(first_gap(connection), "is missing")
    return state


def fold_rows(state: State, batch: Iterable[Any]) -> None:
    """Take rows of the log (FOLDED_COLUMNS) into a state; LogCorrupt at the first that can't follow."""
    decoders = DECODERS
    try:
        for ts, entry_type, version, endpoint_id, delivery_id, data in batch:
            take(state, ts, endpoint_id, delivery_id, decoders[entry_type, version](data))
    except Inconsistent as error:
        raise LogCorrupt(state.position, str(error)) from None
    except KeyError:
        raise LogCorrupt(state.position + 1, str(UnknownEntry(entry_type, version))) from None
    except (msgspec.MsgspecError, TypeError, UnicodeError) as error:
        raise LogCorrupt(state.position + 1, str(error)) from None
