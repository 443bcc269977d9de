"""The world of one seed: processes, applications, receivers, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from dispatcher.audit.replay import check as replay_check
from dispatcher.audit.verify import verify
from dispatcher.errors import StorageError
from dispatcher.log.seal import Keyring
from tests.simulation.chances import Chances
from tests.simulation.clients import Client, register_all
from tests.simulation.invariants import FINAL, Broken, Checker, must
from tests.simulation.network import Network
from tests.simulation.process import PER_TENANT, Crashed, Process
from tests.simulation.rules import Rules
from tests.simulation.virtual import VirtualLoop

VERIFY_EVERY = 100
HEALING_SECONDS = 100 * 3600
TROUBLES = ("crash", "stall", "clock", "restart", "restart")


class World:
    """Runs a seed; raises what is wrong."""

    def __init__(self, seed: int, folder: Path, only: Collection[str] | None = None) -> None:
        """Of what may be left out, `only` these happen."""
        self.chances = Chances(seed, only)
        self.loop = VirtualLoop()
        self.database = folder / f"world-{seed}.db"
        chance = self.chances.of("world")
        self.keyring = Keyring([chance.randbytes(32)] if chance.random() < 0.3 else [])
        self.faults: float = chance.choice([0.0, 0.01, 0.03])
        """Of so many transactions each."""
        self._workers: int = chance.choice([1, 2, 3])
        self.network = Network(self.chances)
        self.rules = Rules()
        self.processes: list[Process] = []
        """All that there ever were."""
        self.acknowledged: set[str] = set()
        """Deliveries of which a caller was told, or that a transaction committed."""
        self.asked_for: Counter[str] = Counter()
        self.rolled_back: set[str] = set()
        """Deliveries that nobody else asked for."""
        self.transactions = 0
        self.healed = True
        """Nothing goes wrong while it begins, and once it ends."""
        self.broken: BaseException | None = None
        self._lives: Counter[str] = Counter()
        self._story: list[tuple[float, str, str | dict[str, Any]]] = []

    def run(self) -> None:
        with (
            patch("os.urandom", self.chances.of("urandom").randbytes),
            patch("dispatcher.log.open.BUSY_WAIT_SECONDS", 0),
            patch("dispatcher.log.commit.Commit", self.rules.watched()),
        ):
            asyncio.set_event_loop(self.loop)
            self.loop.set_exception_handler(self._unhandled)
            try:
                self.loop.run_until_complete(self._live())
            except BaseException as error:
                self.fail(error)
            finally:
                self._clear_away()
        if self.broken is not None:
            raise self.broken

    def fail(self, error: BaseException) -> None:
        """The world ends here, and its story."""
        if self.broken is None:
            self.broken = error
            if self.loop.is_running():
                self.loop.stop()

    def _unhandled(self, loop: Any, context: dict[str, Any]) -> None:
        """What nobody waited for: of the dead nobody speaks ill, everything else is a fault of ours."""
        error = context.get("exception")
        if not isinstance(error, Crashed | asyncio.CancelledError | None):
            self.fail(error)

    async def _live(self) -> None:
        self._start("api", works=False)
        self.begin_checking()
        register_all(self, self.processes[0].live)
        for number in range(self._workers):
            self._start(f"worker-{number}", works=True)
        self.healed = False
        clients = [self.loop.create_task(Client(self, f"client-{n}").run()) for n in range(2)]
        trouble = self.loop.create_task(self._trouble())
        await asyncio.gather(*clients)
        self.healed = self.network.healed = True
        self.note("world", "nothing goes wrong any more")
        for process in self.alive():
            process.stalled_until = 0.0
        await trouble
        await self._heal()

    def begin_checking(self) -> None:
        self.checker = Checker(self.database)

    def _start(self, name: str, *, works: bool) -> None:
        self._lives[name] += 1
        life = self._lives[name]
        self.note(f"{name}.{life}", "starts")
        try:
            self.processes.append(Process(self, name, life, works=works))
        except StorageError:
            # An application holds the database: later.
            self.loop.call_later(1.0, lambda: self._start(name, works=works))

    def alive(self) -> list[Process]:
        return [process for process in self.processes if not process.dead]

    # What goes wrong

    async def _trouble(self) -> None:
        number = 0
        while not self.healed:
            name = f"trouble/{number}"
            number += 1
            chance = self.chances.of(name)
            await asyncio.sleep(chance.expovariate(1 / 60))
            processes = self.alive()
            if processes and not self.healed and self.chances.happens(name):
                await self._befall(chance.choice(processes), chance)

    async def _befall(self, process: Process, chance: Random) -> None:
        match chance.choice(TROUBLES):
            case "clock":
                process.clock.wrong = self.wrong_clock(chance)
                self.note(process.life, "has its clock set")
            case "crash":
                process.crash()
            case "stall":
                process.stall(chance.choice([1, 30, 60, 200]))
            case "restart":
                await process.end(chance.choice([0.0, 0.5, 10.0]))
                if not process.crashed:
                    self._start(process.name, works=process.worker is not None)

    def wrong_clock(self, chance: Random) -> float:
        """Seconds."""
        return chance.choice([0.0, 0.0, 0.0, 86_400.0, -86_400.0, 0.5]) if self.faults else 0.0

    def commit_takes(self, chance: Random) -> float:
        """Seconds until a committer gets to what it is given."""
        slow = self.faults and not self.healed
        return chance.choice((0.0, 0.001, 0.01, 0.01, 0.5, 3.0)) if slow else 0.001

    def start_again(self, process: Process) -> None:
        """In a while."""
        again = self.chances.of(f"{process.life}/again").uniform(1, 60)
        works = process.worker is not None
        self.loop.call_later(again, lambda: self._start(process.name, works=works))

    # What is asked for

    def ask_for(self, names: Iterable[str]) -> None:
        """From now on there may be such deliveries, whatever becomes of this request."""
        self.asked_for.update(names)
        self.rolled_back.difference_update(names)

    def acknowledge(self, names: Iterable[str]) -> None:
        self.acknowledged.update(names)

    def roll_back(self, asked: Counter[str]) -> None:
        self.rolled_back |= {name for name, times in asked.items() if self.asked_for[name] == times}

    # What is seen

    def note(self, who: str, what: str | dict[str, Any]) -> None:
        if self.broken is None:
            self._story.append((self.loop.time(), who, what))

    def story(self) -> list[str]:
        """A line of JSON each: `at` in seconds, `who`, and `what`; or else an operation of the core's with
        its `ts`, and the positions of its `entries` or why it was `refused`.
        """
        return [
            json.dumps(
                {"at": round(at, 3), "who": who, **({"what": what} if isinstance(what, str) else what)}
            )
            for at, who, what in self._story
        ]

    def committed(self, who: str) -> None:
        """After each transaction on the log."""
        try:
            for told in self.rules.committed():
                self.note(who, told)
            self.checker.look(PER_TENANT)
            self.transactions += 1
            if self.transactions % VERIFY_EVERY == 0:
                self.checker.look_at_views()
                self._verify()
        except Broken as broken:
            self.fail(broken)
            raise

    def _verify(self) -> None:
        findings = verify(self.database).findings
        must(not findings, "the log verifies:", findings)

    def sent(self, who: str, delivery_id: str) -> int | None:
        """A request is on its way; under which claim, if that stands."""
        self.note(who, f"sends {delivery_id}")
        try:
            return self.checker.sent(who, delivery_id)
        except Broken as broken:
            self.fail(broken)
            return None

    def arrived(self, delivery_id: str, fence: int | None, again: bool = False) -> None:
        """A request is at its receiver, perhaps a second time by the network's fault."""
        self.note("receiver", f"gets {delivery_id}")
        try:
            must(delivery_id not in self.rolled_back, "nothing that was rolled back is sent:", delivery_id)
            if not again:
                self.checker.arrived(delivery_id, fence)
        except Broken as broken:
            self.fail(broken)

    # How it ends

    async def _heal(self) -> None:
        """Whatever is pending has to come to its end."""
        await asyncio.sleep(120)  # those that crashed start anew
        (api,) = [process for process in self.alive() if process.name == "api"]
        for name, endpoint in self.checker.endpoints.items():
            if endpoint.disabled:
                tenant, _, endpoint_id = name.partition("/")
                api.live.enable(endpoint_id, tenant=tenant)
        end = self.loop.time() + HEALING_SECONDS
        while not self._is_quiet() and self.broken is None:
            must(self.loop.time() < end, "everything comes to an end:", self._pending())
            await asyncio.sleep(60)
        for process in [p for p in self.alive() if p.worker is not None]:
            await process.end(10.0)
        refused = {
            f"{event['tenant']}/{event['endpoint_id']}/{event['event_id']}" for event in api.live.inbox()
        }
        await api.end(0)
        lost = self.acknowledged - set(self.checker.deliveries) - refused
        must(not lost, "nothing acknowledged is lost:", lost)
        self.checker.look_at_the_end()
        self._verify()
        must(replay_check(self.database) is None, "the rules decide it all the same again")

    def _pending(self) -> list[str]:
        return [i for i, d in self.checker.deliveries.items() if d.state not in FINAL]

    def _is_quiet(self) -> bool:
        return not self._pending() and not self.checker.claims

    def _clear_away(self) -> None:
        for process in self.processes:
            process.dead = True
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
            self.loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        for process in self.processes:
            process.clear_away()
        self.loop.close()
        asyncio.set_event_loop(None)
        if hasattr(self, "checker"):
            self.checker.close()
        for file in self.database.parent.glob(self.database.name + "*"):
            file.unlink()
