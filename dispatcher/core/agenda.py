"""What is to be attempted next, over all endpoints."""

from __future__ import annotations

from heapq import heappop, heappush

from dispatcher.core.entities import Delivery, Endpoint
from dispatcher.core.state import State

Turn = tuple[int, int, str, str]
"""(due_at, order, endpoint id, lane) of what an enabled endpoint would attempt first."""


class Agenda:
    """The heads of enabled endpoints by (due_at, order). It must be told of every change."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._turns: list[Turn] = []
        self._latest: dict[str, Turn | None] = {}
        """Each endpoint's turn as last noted: any other that is still in the heap is stale."""
        self._loaded_until: int | None = None

    def note(self, changed: Delivery | Endpoint) -> None:
        """A delivery or an endpoint has changed, and with it perhaps what is first in the endpoint."""
        if isinstance(changed, Delivery):
            lane = changed.lane
            if (lane.shown and changed.order > lane.shown[2]) or not self._state.show(lane):
                return  # it stands behind the lane's head, or the head is due when it was
            endpoint = lane.endpoint
        else:
            endpoint = changed
        turn = None
        if endpoint.disabled is None:
            first = self._state.first_due(endpoint)
            if first is not None:
                turn = (first[0], first[1], endpoint.id, first[2])
                heappush(self._turns, turn)
        self._latest[endpoint.id] = turn

    def next(self, ts: int) -> Delivery | None:
        """The delivery to attempt at ts, or None when nothing more is due."""
        state = self._state
        if state.source is not None and (self._loaded_until is None or ts > self._loaded_until):
            self._load(ts)
        turns = self._turns
        while turns and turns[0][0] <= ts:
            turn = turns[0]
            if self._latest[turn[2]] is turn:
                return state.head(state.endpoints[turn[2]].lanes[turn[3]])
            heappop(turns)
        return None

    def _load(self, ts: int) -> None:
        """Note the endpoints that the source knows to be due; those that changed since were noted then."""
        assert self._state.source is not None
        due = self._state.source.due(ts)
        self._state.load_endpoints(due)
        for endpoint_id in due:
            if endpoint_id not in self._latest:
                self.note(self._state.endpoints[endpoint_id])
        self._loaded_until = ts
