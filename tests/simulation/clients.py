"""Applications and operators: what they ask for, step by step."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dispatcher.core.policy import PROMISED, STANDARD, RetryPolicy
from dispatcher.errors import DispatcherError, Refused
from dispatcher.live import Dispatcher
from tests.simulation.network import ENDPOINTS
from tests.simulation.process import Crashed

if TYPE_CHECKING:
    from tests.simulation.world import World

SHORT = RetryPolicy(max_attempts=3, waits=(5, 20), retryable=((0, 0), (408, 408), (429, 429), (500, 599)))
POLICIES = (PROMISED, SHORT, STANDARD)
NAMES = tuple(ENDPOINTS.values())
TYPES: tuple[Any, ...] = (None, None, ["a.*"], ["b.type"])
FORMATS: tuple[Any, ...] = ("given", "given", "standard", "cloudevents")
STEPS = 40


def register_all(world: World, live: Dispatcher) -> None:
    for url, name in ENDPOINTS.items():
        chance = world.chances.of(f"register/{name}")
        tenant, _, endpoint_id = name.partition("/")
        live.register(
            endpoint_id,
            url,
            tenant=tenant,
            policy=chance.choice(POLICIES),
            order=chance.choice(["strict", "strict", "none"]),
            concurrency=chance.choice([1, 2, 8]),
            erase=chance.choice(["never", "never", "on_final", "on_delivery"]),
            keep_payloads=chance.choice([None, None, 1, 0.001]),
            types=chance.choice(TYPES),
            body_format=chance.choice(FORMATS),
        )


class Client:
    """Asks for something now and then. Each of its steps may be left out."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self._new_ids = 0
        self._asked: Counter[str] = Counter()
        """For which deliveries, in the transaction under way."""

    async def run(self) -> None:
        for step in range(STEPS):
            name = f"{self._name}/{step}"
            self._chance = self._world.chances.of(name)
            self._step, self._new_ids = name.replace("/", "-"), 0
            await asyncio.sleep(self._chance.expovariate(1 / 8))
            if self._world.broken is not None:
                return
            reachable = [one for one in self._world.alive() if not one.is_stalled]
            if reachable and self._world.chances.happens(name):
                await self._ask(self._chance.choice(reachable).live)

    async def _ask(self, live: Dispatcher) -> None:
        asked: Callable[[Dispatcher], Any] = self._chance.choice(
            [self._enqueue] * 6
            + [self._enqueue_many, self._publish, self._disable, self._enable, self._enable]
            + [self._revive, self._cancel, self._erase, self._update]
        )
        try:
            if self._chance.random() < 0.2:
                await self._in_a_transaction(live)
            else:
                self._told(f"{asked.__name__.strip('_')} {asked(live)}: done")
        except Refused as refused:
            self._told(f"refused: {refused.code}")
        except (DispatcherError, sqlite3.Error) as error:
            self._told(f"failed: {error}")
        except Crashed:
            self._told("nothing: the process is gone")

    def _told(self, what: str) -> None:
        self._world.note(self._name, what)

    def _place(self) -> tuple[str, str]:
        tenant, _, endpoint_id = self._chance.choice(NAMES).partition("/")
        return tenant, endpoint_id

    def _new_id(self) -> str:
        known = list(self._world.checker.deliveries)[-12:]
        if known and self._chance.random() < 0.1:
            return self._chance.choice(known).rpartition("/")[2]
        self._new_ids += 1
        return f"{self._step}-{self._new_ids}"

    def _some_event(self) -> tuple[str, str, str]:
        known = list(self._world.checker.deliveries) or ["default/a/none"]
        tenant, endpoint_id, event_id = self._chance.choice(known[-12:]).split("/")
        return tenant, endpoint_id, event_id

    # Events

    def _enqueue(self, live: Dispatcher, **on: Any) -> list[str]:
        tenant, endpoint_id = self._place()
        event_id = self._new_id()
        ordered = self._world.checker.endpoints[f"{tenant}/{endpoint_id}"].order == "strict"
        key = self._chance.choice([None, None, "x", "y"]) if ordered else None
        delivery_id = f"{tenant}/{endpoint_id}/{event_id}"
        self._ask_for([delivery_id])
        live.enqueue(
            endpoint_id, event_id, tenant=tenant, event_id=event_id, order_key=key, type="a.type", **on
        )
        if not on:
            self._world.acknowledge([delivery_id])
        return [delivery_id]

    def _enqueue_many(self, live: Dispatcher) -> list[str]:
        tenant, endpoint_id = self._place()
        ids = [self._new_id() for _ in range(self._chance.randint(1, 5))]
        names = [f"{tenant}/{endpoint_id}/{event_id}" for event_id in ids]
        self._ask_for(names)
        live.enqueue_many(
            [{"endpoint_id": endpoint_id, "payload": i, "event_id": i, "type": "a.type"} for i in ids],
            tenant=tenant,
        )
        self._world.acknowledge(names)
        return names

    def _publish(self, live: Dispatcher, **on: Any) -> list[str]:
        """Returns what is to come of it, as far as that is known."""
        tenant, _ = self._place()
        event_id = self._new_id()
        payload = {"id": event_id} if self._chance.random() < 0.9 else f"no JSON: {event_id}"
        names = [f"{name}/{event_id}" for name in NAMES if name.startswith(f"{tenant}/")]
        self._ask_for(names)
        published = live.publish("a.type", payload, tenant=tenant, event_id=event_id, **on)
        if published.endpoints is None:
            return []
        wanted = [f"{tenant}/{endpoint_id}/{event_id}" for endpoint_id in published.endpoints]
        self._world.acknowledge(wanted)
        return wanted

    async def _in_a_transaction(self, live: Dispatcher) -> None:
        """Of an application: it may take its time, roll back, or be gone."""
        self._asked.clear()
        committed = False
        connection = sqlite3.connect(self._world.database, timeout=0)
        try:
            accepted: list[str] = []
            for _ in range(self._chance.randint(1, 3)):
                ask = self._chance.choice([self._enqueue, self._enqueue, self._publish])
                accepted += ask(live, connection=connection)
            await asyncio.sleep(self._chance.choice([0.0, 0.01, 0.5, 4.0]))
            if self._chance.random() < 0.6:
                connection.commit()
                committed = True
                self._told(f"commits {accepted}")
                self._world.acknowledge(accepted)
            else:
                self._told(f"rolls back {accepted}")
        finally:
            connection.close()
            if not committed:
                self._world.roll_back(self._asked)

    def _ask_for(self, names: list[str]) -> None:
        self._asked.update(names)
        self._world.ask_for(names)

    # Operators

    def _disable(self, live: Dispatcher) -> str:
        tenant, endpoint_id = self._place()
        live.disable(endpoint_id, tenant=tenant)
        return f"{tenant}/{endpoint_id}"

    def _enable(self, live: Dispatcher) -> str:
        tenant, endpoint_id = self._place()
        live.enable(endpoint_id, tenant=tenant, replay_dead=self._chance.random() < 0.5)
        return f"{tenant}/{endpoint_id}"

    def _revive(self, live: Dispatcher) -> str:
        tenant, endpoint_id, event_id = self._some_event()
        ids = [event_id] if self._chance.random() < 0.5 else None
        return f"{tenant}/{endpoint_id} {live.revive(endpoint_id, ids, tenant=tenant)}"

    def _cancel(self, live: Dispatcher) -> str:
        tenant, endpoint_id, event_id = self._some_event()
        live.cancel(endpoint_id, event_id, tenant=tenant)
        return f"{tenant}/{endpoint_id}/{event_id}"

    def _erase(self, live: Dispatcher) -> str:
        tenant, endpoint_id, event_id = self._some_event()
        ids = [event_id] if self._chance.random() < 0.8 else None
        return f"{tenant}/{endpoint_id} {live.erase(endpoint_id, ids, tenant=tenant)}"

    def _update(self, live: Dispatcher) -> str:
        tenant, endpoint_id = self._place()
        changes: list[dict[str, Any]] = [
            {"policy": self._chance.choice(POLICIES)},
            {"order": self._chance.choice(["strict", "none"])},
            {"concurrency": self._chance.choice([1, 3])},
            {"erase": self._chance.choice(["never", "on_final"])},
            {"keep_payloads": self._chance.choice(["forever", 0.001])},
            {"types": self._chance.choice(TYPES)},
            {"body_format": self._chance.choice(FORMATS)},
        ]
        change = self._chance.choice(changes)
        live.update(endpoint_id, tenant=tenant, **change)
        return f"{tenant}/{endpoint_id} {list(change)}"
