"""The world of one seed: processes, applications, receivers, and what goes wrong."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from dispatcher.audit.replay import check as replay_check
from dispatcher.audit.verify import verify
from dispatcher.core.policy import PROMISED, STANDARD, RetryPolicy
from dispatcher.errors import DispatcherError, Refused, StorageError
from dispatcher.live import Dispatcher
from dispatcher.log.seal import Keyring
from tests.simulation.invariants import FINAL, Broken, Checker, must
from tests.simulation.network import Arrival, Receivers
from tests.simulation.process import PER_TENANT, Crashed, Process
from tests.simulation.rules import Rules
from tests.simulation.virtual import VirtualLoop

SHORT = RetryPolicy(max_attempts=3, waits=(5, 20), retryable=((0, 0), (408, 408), (429, 429), (500, 599)))
POLICIES = (PROMISED, SHORT, STANDARD)
ENDPOINTS = ("default/a", "default/b", "other/a", "other/c")
STEPS = 60
VERIFY_EVERY = 100
HEALING_SECONDS = 100 * 3600


class World:
    """Runs a seed; raises what is wrong."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.chance = Random(seed)
        self.loop = VirtualLoop()
        self.database = folder / f"world-{seed}.db"
        self.keyring = Keyring([self.chance.randbytes(32)] if self.chance.random() < 0.3 else [])
        self.receivers = Receivers(Random(self.chance.random()))
        self.story: list[str] = []
        self.processes: list[Process] = []
        self.acknowledged: set[str] = set()
        """Deliveries of which a caller was told, or that a transaction committed."""
        self.asked_for: Counter[str] = Counter()
        self.rolled_back: set[str] = set()
        """Deliveries that nobody else asked for."""
        self.arrivals: Counter[str] = Counter()
        self.transactions = 0
        self.rules = Rules()
        self.faults = self.chance.choice([0.0, 0.01, 0.03])
        self.healed = True
        """Nothing goes wrong while it begins, and once it ends."""
        self.numbers = 0
        self.broken: BaseException | None = None

    def run(self) -> None:
        random_bytes = Random(self.seed).randbytes
        with (
            patch("os.urandom", random_bytes),
            patch("dispatcher.log.open.BUSY_WAIT_SECONDS", 0),
            patch("dispatcher.log.commit.Commit", self.rules.watched()),
        ):
            asyncio.set_event_loop(self.loop)
            self.loop.set_exception_handler(self._unhandled)
            try:
                self.loop.run_until_complete(self._live())
            except BaseException as error:
                self.broken = self.broken or error
            finally:
                self._clear_away()
        if self.broken is not None:
            raise self.broken

    def _unhandled(self, loop: Any, context: dict[str, Any]) -> None:
        """What nobody waited for: of the dead nobody speaks ill, everything else is a fault of ours."""
        error = context.get("exception")
        if not isinstance(error, Crashed | asyncio.CancelledError | None):
            self.broken = self.broken or error

    async def _live(self) -> None:
        first = Process(self, "api-0", works=False)
        self.processes.append(first)
        self.checker = Checker(self.database, self.arrivals)
        for name in ENDPOINTS:
            tenant, _, endpoint_id = name.partition("/")
            first.live.register(
                endpoint_id,
                f"https://{tenant}-{endpoint_id}.example/",
                tenant=tenant,
                policy=self.chance.choice(POLICIES),
                order=self.chance.choice(["strict", "strict", "none"]),
                concurrency=self.chance.choice([1, 2, 8]),
                erase=self.chance.choice(["never", "never", "on_final", "on_delivery"]),
            )
        for number in range(self.chance.choice([1, 2, 3])):
            self._start(f"worker-{number}", works=True)
        self.healed = False
        clients = [self.loop.create_task(self._client()) for _ in range(2)]
        trouble = self.loop.create_task(self._trouble())
        await asyncio.gather(*clients)
        trouble.cancel()
        await self._heal()

    def _start(self, name: str, *, works: bool) -> None:
        self.note(f"{name} starts")
        try:
            self.processes.append(Process(self, name, works=works))
        except StorageError:
            # An application holds the database: later.
            self.loop.call_later(1.0, lambda: self._start(name, works=works))

    # What goes wrong

    async def _trouble(self) -> None:
        while True:
            await asyncio.sleep(self.chance.expovariate(1 / 60))
            process = self.chance.choice(self._alive())
            match self.chance.choice(["crash", "stall", "clock", "restart", "restart"]):
                case "clock":
                    process.clock.wrong = self.clock_is_wrong()
                    self.note(f"{process.name}'s clock is set")
                case "crash" if process.worker is not None:
                    process.crash()
                case "stall" if process.worker is not None:
                    process.stalled_until = self.loop.time() + self.chance.choice([1, 30, 60, 200])
                    self.note(f"{process.name} stands still")
                case "restart" if process.worker is not None:
                    await process.end(self.chance.choice([0.0, 0.5, 10.0]))
                    self._start(process.name, works=True)

    def clock_is_wrong(self) -> float:
        """Seconds."""
        return self.chance.choice([0.0, 0.0, 0.0, 86_400.0, -86_400.0, 0.5]) if self.faults else 0.0

    def commit_takes(self) -> float:
        """Seconds until a committer gets to what it is given."""
        return self.chance.choice([0.0, 0.001, 0.01, 0.01, 0.5, 3.0] if self.faults else [0.001])

    def fate_of_transaction(self, process: Process) -> str | None:
        if self.healed or self.chance.random() >= self.faults:
            return None
        fates = ["busy", "full", "full at its end"]
        if process.worker is not None:
            fates += ["crash before", "crash after"]
        fate = self.chance.choice(fates)
        self.note(f"{process.name}: {fate}")
        return fate

    def crashed(self, process: Process) -> None:
        self.processes.remove(process)
        self.loop.call_later(self.chance.uniform(1, 60), lambda: self._start(process.name, works=True))

    # What is seen

    def note(self, text: str) -> None:
        self.story.append(f"{self.loop.time():10.3f} {text}")

    def committed(self, who: str) -> None:
        """After each transaction on the log."""
        try:
            for line in self.checker.look(PER_TENANT):
                self.note(f"{who} appends {line}")
            self.rules.committed()
            self.transactions += 1
            if self.transactions % VERIFY_EVERY == 0:
                self.checker.look_at_views()
                must(
                    verify(self.database).findings == [], "the log verifies:", verify(self.database).findings
                )
        except Broken as broken:
            self.broken = self.broken or broken
            raise

    def arrived(self, arrival: Arrival) -> None:
        tenant, _, rest = arrival.endpoint.removeprefix("https://").partition("-")
        delivery_id = f"{tenant}/{rest.partition('.')[0]}/{arrival.event_id}"
        self.note(f"at the receiver: {delivery_id}")
        self.arrivals[delivery_id] += 1
        try:
            must(delivery_id not in self.rolled_back, "nothing that was rolled back is sent:", delivery_id)
            must(
                delivery_id in self.checker.deliveries, "nothing is sent that is not in the log:", delivery_id
            )
        except Broken as broken:
            self.broken = self.broken or broken

    # What is asked for

    async def _client(self) -> None:
        for _ in range(STEPS):
            await asyncio.sleep(self.chance.expovariate(1 / 8))
            if self.broken is not None:
                return
            live = self.chance.choice(self._alive()).live
            asked: Callable[[Dispatcher], Any] = self.chance.choice(
                [self._enqueue] * 6
                + [self._enqueue_many, self._publish, self._disable, self._enable, self._enable]
                + [self._revive, self._cancel, self._erase, self._update]
            )
            try:
                if self.chance.random() < 0.2:
                    await self._in_a_transaction(live)
                else:
                    self.note(f"asks for {asked.__name__.strip('_')}: {asked(live)}")
            except Refused as refused:
                self.note(f"is refused: {refused.code}")
            except (DispatcherError, sqlite3.Error) as error:
                self.note(f"is told: {error}")
            except Crashed:
                self.note("is told nothing: the process is gone")

    def _alive(self) -> list[Process]:
        return [process for process in self.processes if not process.dead]

    def _place(self) -> tuple[str, str]:
        tenant, _, endpoint_id = self.chance.choice(ENDPOINTS).partition("/")
        return tenant, endpoint_id

    def _new_id(self) -> str:
        if self.numbers and self.chance.random() < 0.1:
            return f"evt-{self.chance.randrange(self.numbers)}"
        self.numbers += 1
        return f"evt-{self.numbers}"

    def _some_event(self) -> tuple[str, str, str]:
        known = list(self.checker.deliveries) or ["default/a/none"]
        tenant, endpoint_id, event_id = self.chance.choice(known[-12:]).split("/")
        return tenant, endpoint_id, event_id

    def _ask_for(self, delivery_id: str) -> None:
        """From now on there may be such a delivery, whatever becomes of this request."""
        self.asked_for[delivery_id] += 1
        self.rolled_back.discard(delivery_id)

    def _enqueue(self, live: Dispatcher, **on: Any) -> str:
        tenant, endpoint_id = self._place()
        event_id = self._new_id()
        ordered = self.checker.endpoints[f"{tenant}/{endpoint_id}"].order == "strict"
        key = self.chance.choice([None, None, "x", "y"]) if ordered else None
        self._ask_for(f"{tenant}/{endpoint_id}/{event_id}")
        live.enqueue(
            endpoint_id, event_id, tenant=tenant, event_id=event_id, order_key=key, type="a.type", **on
        )
        delivery_id = f"{tenant}/{endpoint_id}/{event_id}"
        if not on:
            self.acknowledged.add(delivery_id)
        return delivery_id

    def _enqueue_many(self, live: Dispatcher) -> str:
        tenant, endpoint_id = self._place()
        ids = [self._new_id() for _ in range(self.chance.randint(1, 5))]
        for event_id in ids:
            self._ask_for(f"{tenant}/{endpoint_id}/{event_id}")
        live.enqueue_many(
            [{"endpoint_id": endpoint_id, "payload": i, "event_id": i, "type": "a.type"} for i in ids],
            tenant=tenant,
        )
        self.acknowledged |= {f"{tenant}/{endpoint_id}/{event_id}" for event_id in ids}
        return f"{tenant}/{endpoint_id} {ids}"

    def _publish(self, live: Dispatcher) -> str:
        tenant, _ = self._place()
        event_id = self._new_id()
        for name in ENDPOINTS:
            self._ask_for(f"{name}/{event_id}")
        published = live.publish("a.type", event_id, tenant=tenant, event_id=event_id)
        self.acknowledged |= {f"{tenant}/{e}/{event_id}" for e in published.endpoints or ()}
        return f"{tenant} {event_id}"

    async def _in_a_transaction(self, live: Dispatcher) -> None:
        """Of an application: it may take its time, roll back, or be gone."""
        connection = sqlite3.connect(self.database, timeout=0)
        try:
            accepted = [self._enqueue(live, connection=connection) for _ in range(self.chance.randint(1, 3))]
            await asyncio.sleep(self.chance.choice([0.0, 0.01, 0.5, 4.0]))
            if self.chance.random() < 0.6:
                connection.commit()
                self.note(f"an application commits {accepted}")
                self.acknowledged |= set(accepted)
            else:
                self.note(f"an application rolls back {accepted}")
                connection.rollback()
                here = Counter(accepted)
                self.rolled_back |= {one for one in accepted if self.asked_for[one] == here[one]}
        finally:
            connection.close()

    def _disable(self, live: Dispatcher) -> str:
        tenant, endpoint_id = self._place()
        live.disable(endpoint_id, tenant=tenant)
        return f"{tenant}/{endpoint_id}"

    def _enable(self, live: Dispatcher) -> str:
        tenant, endpoint_id = self._place()
        live.enable(endpoint_id, tenant=tenant, replay_dead=self.chance.random() < 0.5)
        return f"{tenant}/{endpoint_id}"

    def _revive(self, live: Dispatcher) -> str:
        tenant, endpoint_id, event_id = self._some_event()
        ids = [event_id] if self.chance.random() < 0.5 else None
        return f"{live.revive(endpoint_id, ids, tenant=tenant)} at {tenant}/{endpoint_id}"

    def _cancel(self, live: Dispatcher) -> str:
        tenant, endpoint_id, event_id = self._some_event()
        live.cancel(endpoint_id, event_id, tenant=tenant)
        return f"{tenant}/{endpoint_id}/{event_id}"

    def _erase(self, live: Dispatcher) -> str:
        tenant, endpoint_id, event_id = self._some_event()
        ids = [event_id] if self.chance.random() < 0.8 else None
        return f"{live.erase(endpoint_id, ids, tenant=tenant)} at {tenant}/{endpoint_id} {ids}"

    def _update(self, live: Dispatcher) -> str:
        tenant, endpoint_id = self._place()
        change: dict[str, Any] = self.chance.choice(
            [
                {"policy": self.chance.choice(POLICIES)},
                {"order": self.chance.choice(["strict", "none"])},
                {"concurrency": self.chance.choice([1, 3])},
                {"erase": self.chance.choice(["never", "on_final"])},
            ]
        )
        live.update(endpoint_id, tenant=tenant, **change)
        return f"{tenant}/{endpoint_id} {change}"

    # How it ends

    async def _heal(self) -> None:
        """Nothing goes wrong any more: whatever is pending has to come to its end."""
        self.healed = self.receivers.healed = True
        self.note("nothing goes wrong any more")
        for process in self._alive():
            process.stalled_until = 0.0
        await asyncio.sleep(120)  # those that crashed start anew
        api = self._alive()[0]
        for name, endpoint in self.checker.endpoints.items():
            if endpoint.disabled:
                tenant, _, endpoint_id = name.partition("/")
                api.live.enable(endpoint_id, tenant=tenant)
        end = self.loop.time() + HEALING_SECONDS
        while not self._is_quiet() and self.broken is None:
            must(self.loop.time() < end, "everything comes to an end:", self._pending())
            await asyncio.sleep(60)
        for process in [p for p in self._alive() if p.worker is not None]:
            await process.end(10.0)
        refused = {
            f"{event['tenant']}/{event['endpoint_id']}/{event['event_id']}" for event in api.live.inbox()
        }
        for process in self._alive():
            await process.end(0)
        lost = self.acknowledged - set(self.checker.deliveries) - refused
        must(not lost, "nothing acknowledged is lost:", lost)
        for delivery_id, count in self.arrivals.items():
            must(
                count <= self.checker.deliveries[delivery_id].tried,
                "each request is in the log as an attempt, a lost or a released one:",
                delivery_id,
            )
        self.checker.look_at_views()
        must(verify(self.database).findings == [], "the log verifies")
        must(replay_check(self.database) is None, "the rules decide it all the same again")

    def _pending(self) -> list[str]:
        return [i for i, d in self.checker.deliveries.items() if d.state not in FINAL]

    def _is_quiet(self) -> bool:
        return not self._pending() and not self.checker.claims

    def _clear_away(self) -> None:
        for process in self.processes:
            process.dead = True
            if process.task is not None:
                process.task.cancel()
            process.live._database.close()
            process.live._reading.close()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
            self.loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        self.loop.close()
        asyncio.set_event_loop(None)
        if hasattr(self, "checker"):
            self.checker.close()
        for file in self.database.parent.glob(self.database.name + "*"):
            file.unlink()
