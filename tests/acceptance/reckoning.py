"""What the log says was sent, against what arrived."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from dispatcher.audit.verify import verify
from dispatcher.log.conservation import conservation
from dispatcher.log.open import Database
from tests.acceptance.crowd import Came
from tests.acceptance.lively import rows

NEVER: tuple[int, Came | None] = (-1, None)


class Told(NamedTuple):
    """One event, as the log tells it."""

    endpoint_id: str
    lane: str
    tries: list[dict[str, Any]]

    @property
    def end(self) -> str | None:
        """`delivered` or `dead`; None while there is none."""
        decision = self.tries[-1]["decision"] if self.tries else None
        return decision if decision in ("delivered", "dead") else None


def told(database: Path) -> dict[str, Told]:
    """By event id, in the order of acceptance."""
    events: dict[str, Told] = {}
    statement = "SELECT type, endpoint_id, delivery_id, data FROM dispatcher_log ORDER BY position"
    for kind, endpoint_id, delivery_id, data in rows(database, statement):
        if delivery_id is None:
            continue
        event, body = delivery_id.rpartition("/")[2], json.loads(data)
        if kind == "Enqueued":
            assert event not in events
            events[event] = Told(endpoint_id, body.get("lane", ""), [])
        elif kind == "AttemptRecorded":
            events[event].tries.append(body)
    return events


def assert_told_as_it_came(database: Path, came: Iterable[Came]) -> dict[str, Told]:
    """Every attempt of the log arrived once, but for lost ones, which may have; nothing else; in order."""
    events = told(database)
    arrived: dict[str, list[tuple[int, Came]]] = defaultdict(list)
    for number, request in enumerate(came):
        arrived[request.event].append((number, request))
    assert arrived.keys() <= events.keys()
    done: dict[tuple[str, str], int] = {}
    for event, of_log in events.items():
        requests = {request.timestamp: (number, request) for number, request in arrived[event]}
        assert len(requests) == len(arrived[event]), f"an attempt of {event} was sent twice"
        tries = {one["started_at"] // 1000: one for one in of_log.tries}
        assert len(tries) == len(of_log.tries)
        assert requests.keys() <= tries.keys(), f"an attempt of {event} is in no log"
        lane = (of_log.endpoint_id, of_log.lane)
        before = done.get(lane, -1)
        for timestamp, one in tries.items():
            number, got = requests.get(timestamp, NEVER)
            assert got is None or number > before, f"{event} overtook an earlier one of its lane"
            if one.get("error") != "lost":
                assert got is not None, f"an attempt of {event} never arrived"
                assert (one["status"], one.get("error")) == (got.status, None)
                done[lane] = max(done.get(lane, -1), number)
    return events


def assert_conserved(database: Path, **counts: int) -> None:
    """The log verifies, and its three counts agree with these: delivered, dead, pending, cancelled."""
    assert verify(database).findings == []
    with Database(database, "read") as opened, opened.read() as connection:
        three = conservation(connection)
    assert three["entries"] == {"enqueued": sum(counts.values())}
    expected = {"pending": 0, "delivered": 0, "dead": 0, "cancelled": 0, **counts}
    assert three["rows"] == three["endpoints"] == {**expected, "total": sum(counts.values())}
