"""The state that the log adds up to, held in memory or fetched as it is needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from dispatcher.core.entities import Delivery, Endpoint, Lane, StoredDelivery
from dispatcher.core.entries import Kind
from dispatcher.core.window import Item, Window

Place = tuple[str, str, int]
"""(endpoint id, lane, order)."""


class Source(Protocol):
    """Where a state that was folded earlier is kept. It answers as of one position of the log."""

    def endpoints(self, ids: Iterable[str]) -> Iterable[Endpoint]: ...

    def deliveries(self, ids: Iterable[str]) -> Iterable[StoredDelivery]: ...

    def pending_after(self, lanes: Sequence[Place], limit: int) -> list[list[StoredDelivery]]:
        """For each place in a lane the pending deliveries behind it, in order, at most so many."""
        ...

    def lanes_after(self, endpoint_id: str, after: Item, limit: int) -> list[Item]:
        """(resumption, due_at, order, lane) of lanes with something pending, beyond `after`, ascending."""
        ...

    def dead(self, endpoint_id: str | None) -> Iterable[StoredDelivery]:
        """Dead deliveries of an endpoint, or of all."""
        ...

    def dead_after(
        self, endpoint_id: str, order: int, limit: int | None, died_from: int, died_before: int | None
    ) -> list[StoredDelivery]:
        """Dead deliveries of an endpoint, later than order, in order; of those that died in that span."""
        ...

    def due(self, ts: int) -> list[str]:
        """Enabled endpoints with a lane due by ts."""
        ...


class State:
    """Endpoints and deliveries by id. What a source has not been asked for is never taken for absent."""

    def __init__(
        self, kind: Kind, source: Source | None = None, *, position: int = 0, ts: int | None = None
    ) -> None:
        self.kind: Kind = kind
        self.source = source
        self.position = position
        """The position of the last entry; 0 for an empty log."""
        self.ts = ts
        """The time of the last entry, in the log's unit; None for an empty log."""
        self.endpoints: dict[str, Endpoint] = {}
        self.deliveries: dict[str, Delivery] = {}
        self.dead_ids: dict[str, None] = {}
        self.dead_loaded = source is None
        self._absent: set[str] = set()

    def size(self) -> int:
        """How many endpoints, deliveries and ids that do not exist it remembers."""
        return len(self.endpoints) + len(self.deliveries) + len(self._absent)

    def endpoint(self, endpoint_id: str) -> Endpoint | None:
        found = self.endpoints.get(endpoint_id)
        if found is None and self.source is not None:
            self.load_endpoints((endpoint_id,))
            found = self.endpoints.get(endpoint_id)
        return found

    def delivery(self, delivery_id: str) -> Delivery | None:
        found = self.deliveries.get(delivery_id)
        if found is None and self.source is not None and delivery_id not in self._absent:
            self.load_deliveries((delivery_id,))
            found = self.deliveries.get(delivery_id)
        return found

    def load_endpoints(self, ids: Iterable[str]) -> None:
        """Fetch in one go what is about to be asked for."""
        missing = [i for i in ids if i not in self.endpoints]
        if missing and self.source is not None:
            for endpoint in self.source.endpoints(missing):
                self.endpoints[endpoint.id] = endpoint

    def load_deliveries(self, ids: Iterable[str]) -> None:
        """Fetch in one go what is about to be asked for, and remember which ids do not exist."""
        missing = [i for i in ids if i not in self.deliveries and i not in self._absent]
        if missing and self.source is not None:
            self._admit(self.source.deliveries(missing))
            self._absent.update(i for i in missing if i not in self.deliveries)

    def load_attempted(self, ids: Iterable[str]) -> None:
        """Fetch in one go deliveries that were attempted, and what stands behind them."""
        wanted = list(ids)
        self.load_deliveries(wanted)
        lanes = {id(d.lane): d.lane for d in map(self.deliveries.get, wanted) if d is not None}
        lacking = [lane for lane in lanes.values() if lane.pending.lacks()]
        if lacking:
            self._load_pending(lacking, min(lane.pending.page for lane in lacking))

    def load_heads(self, lanes: Iterable[Lane]) -> None:
        """Fetch in one go the heads of lanes of which nothing was fetched yet."""
        unknown = [lane for lane in lanes if lane.pending.upto == ()]
        if unknown:
            self._load_pending(unknown, 1)

    def _load_pending(self, lanes: Sequence[Lane], limit: int) -> None:
        for lane, items in zip(lanes, self._fetch_pending(lanes, limit), strict=True):
            lane.pending.extend(items, limit)

    def lane(self, endpoint: Endpoint, key: str) -> Lane:
        """An endpoint's lane, made on first use."""
        lane = endpoint.lanes.get(key)
        if lane is None:
            lane = endpoint.lanes[key] = Lane(endpoint, key, Window(complete=not endpoint.stored))
        return lane

    def head(self, lane: Lane) -> Delivery | None:
        """The earliest pending delivery of a lane: the only one that may be attempted."""
        window = lane.pending
        if window.upto is None and window.heap:
            delivery = self.deliveries[window.heap[0][1]]
            if delivery.state == "pending":  # as nearly always
                return delivery
        first = window.first(self._is_pending, lambda _, limit: self._fetch_pending([lane], limit)[0])
        return None if first is None else self.deliveries[first[1]]

    def show(self, lane: Lane) -> bool:
        """Put a lane where its head now belongs in its endpoint's order; whether it moved."""
        head = self.head(lane)
        item: Item = () if head is None else (head.resumption, head.due_at, head.order, lane.key)
        if item == lane.shown:
            return False
        lane.shown = item
        endpoint = lane.endpoint
        if len(endpoint.lanes) == 1 and not endpoint.stored:
            endpoint.lane_order.heap.clear()  # it held nothing but where this one lane was before
        if item:
            endpoint.lane_order.add(item)
        return True

    def first_due(self, endpoint: Endpoint) -> tuple[int, int, str] | None:
        """(due_at, order, lane) of what an endpoint would attempt first, if it were enabled."""
        window = endpoint.lane_order
        first: Item | None
        if window.upto is None and window.heap and self._is_shown(endpoint, window.heap[0]):
            first = window.heap[0]  # as nearly always
        else:
            first = window.first(
                lambda item: self._is_shown(endpoint, item),
                lambda after, limit: self._fetch_lanes(endpoint, after, limit),
            )
        if first is None:
            return None
        resumption, due_at, order, lane = first
        return (due_at if resumption == endpoint.resumptions else endpoint.resumed_at), order, lane

    def dead(self, endpoint: Endpoint) -> list[Delivery]:
        """An endpoint's dead deliveries, in the order of their latest death."""
        if endpoint.stored and not endpoint.dead_loaded and self.source is not None:
            self._bury(self._admit(self.source.dead(endpoint.id)))
            endpoint.dead_loaded = True
        return self._by_death(endpoint.dead_ids)

    def all_dead(self) -> list[Delivery]:
        """All dead deliveries, in the order of their latest death."""
        if not self.dead_loaded and self.source is not None:
            self._bury(self._admit(self.source.dead(None)))
            self.dead_loaded = True
        return self._by_death(self.dead_ids)

    def revivable(
        self,
        endpoint: Endpoint,
        *,
        after: int = 0,
        limit: int | None = None,
        died_from: int = 0,
        died_before: int | None = None,
    ) -> list[Delivery]:
        """Dead deliveries that still have a payload, in enqueue order, the first `limit` of them.

        Only what was enqueued after a position, and died at one of a span. No more than is needed is loaded.
        """

        def fits(delivery: Delivery) -> bool:
            death = delivery.death
            if death is None or delivery.erased or delivery.order <= after:
                return False
            return died_from <= death and (died_before is None or death < died_before)

        chosen = {d.order: d for d in (self.deliveries[i] for i in endpoint.dead_ids) if fits(d)}
        whole = not endpoint.stored or endpoint.dead_loaded or self.source is None
        upto = after
        while not whole:
            assert self.source is not None
            rows = self.source.dead_after(endpoint.id, upto, limit, died_from, died_before)
            # What is erased stays so: however much of it there is, it is not remembered.
            found = self._admit(row for row in rows if not row.erased)
            chosen.update((delivery.order, delivery) for delivery in found if fits(delivery))
            if limit is None or len(rows) < limit:
                break
            upto = rows[-1].order
            whole = sum(1 for order in chosen if order <= upto) >= limit
        return [chosen[order] for order in sorted(chosen)[:limit]]

    def _by_death(self, ids: Iterable[str]) -> list[Delivery]:
        return sorted((self.deliveries[i] for i in ids), key=lambda delivery: delivery.death or 0)

    def _bury(self, deliveries: Iterable[Delivery]) -> None:
        for delivery in deliveries:
            if delivery.state == "dead":
                delivery.lane.endpoint.dead_ids[delivery.id] = None
                self.dead_ids[delivery.id] = None

    def _admit(self, stored: Iterable[StoredDelivery]) -> list[Delivery]:
        """Deliveries for what a source holds: those known here already are newer, and stay."""
        rows = list(stored)
        self.load_endpoints({row.endpoint_id for row in rows})
        admitted = []
        for row in rows:
            delivery = self.deliveries.get(row.id)
            if delivery is None:
                delivery = self.deliveries[row.id] = Delivery(
                    row.id,
                    self.lane(self.endpoints[row.endpoint_id], row.lane),
                    row.order,
                    row.due_at,
                    row.resumption,
                    row.outcomes,
                    row.seed,
                    row.digest,
                    row.event_type,
                    row.state,
                    row.attempts,
                    row.death,
                    row.last_status,
                    row.last_error,
                    row.erased,
                )
            admitted.append(delivery)
        return admitted

    def _is_pending(self, item: Item) -> bool:
        return self.deliveries[item[1]].state == "pending"

    def _fetch_pending(self, lanes: Sequence[Lane], limit: int) -> list[list[Item]]:
        assert self.source is not None
        places = [
            (lane.endpoint.id, lane.key, lane.pending.upto[0] if lane.pending.upto else 0) for lane in lanes
        ]
        return [
            [(delivery.order, delivery.id) for delivery in self._admit(stored)]
            for stored in self.source.pending_after(places, limit)
        ]

    def _is_shown(self, endpoint: Endpoint, item: Item) -> bool:
        lane = self.lane(endpoint, item[3])
        if lane.shown is None:
            lane.shown = item
        return lane.shown == item

    def _fetch_lanes(self, endpoint: Endpoint, after: Item, limit: int) -> list[Item]:
        assert self.source is not None
        return self.source.lanes_after(endpoint.id, after, limit)
