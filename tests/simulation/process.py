"""A process of the world: a dispatcher, perhaps with a worker, that may crash or stand still at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from unittest.mock import patch

from sqlalchemy import Connection

from dispatcher.errors import DatabaseBusy, DatabaseFull, StorageError
from dispatcher.live import Dispatcher
from dispatcher.log.commit import LARGEST_BATCH, Commit, Committer, Piece
from dispatcher.worker.worker import Worker
from tests.simulation.network import Sending
from tests.simulation.virtual import VirtualClock

if TYPE_CHECKING:
    from tests.simulation.world import World

T = TypeVar("T")
LOOKING = 5.0
"""Seconds between looks at what others did: in less of them a seed takes too long."""
PER_TENANT = 4


class Crashed(BaseException):
    """The process is no more."""


class Driven(Future[T]):
    """Whoever waits for it has the committer work."""

    def __init__(self, committer: SimulatedCommitter) -> None:
        super().__init__()
        self._committer = committer

    def result(self, timeout: float | None = None) -> T:
        if not self.done():
            self._committer.work_off()
        return super().result(0)


class SimulatedCommitter(Committer):
    """Works when its time has come, in the one thread of the world."""

    def __init__(self, process: Process, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._process = process
        self._is_due = False

    def start(self) -> None:
        """Nothing has to run."""

    def stop(self) -> None:
        self.work_off()
        self._stopping = True

    def submit(self, work: Callable[[Commit], T], about: Sequence[str] = ()) -> Future[T]:
        self._process.check()
        if self._stopping:
            raise StorageError("this dispatcher is closed")
        future: Driven[T] = Driven(self)
        self._waiting.append(Piece(work, future, about))
        if not self._is_due:
            self._is_due = True
            self._process.later(self._process.world.commit_takes(), self.work_off)
        return future

    def work_off(self) -> None:
        self._is_due = False
        while self._waiting:
            self._process.check()
            taken = [self._waiting.popleft() for _ in range(min(len(self._waiting), LARGEST_BATCH))]
            self._do([piece for piece in taken if piece.future.set_running_or_notify_cancel()])

    def beside(self, call: Callable[[], object], seconds: float, name: str) -> Any:
        return Recurring(self._process, call, max(seconds, LOOKING))


class Recurring:
    def __init__(self, process: Process, call: Callable[[], object], seconds: float) -> None:
        self._process, self._call, self._seconds = process, call, seconds
        self._stopped = False
        self._again()

    def stop(self) -> None:
        self._stopped = True

    def _again(self) -> None:
        self._process.later(self._seconds, self._run)

    def _run(self) -> None:
        if not self._stopped:
            self._call()
            self._again()


class Process:
    """From its start to its crash or its orderly end."""

    def __init__(self, world: World, name: str, *, works: bool) -> None:
        self.world = world
        self.name = name
        self.dead = False
        self.stalled_until = 0.0
        self.clock = VirtualClock(world.loop, world.clock_is_wrong())
        with patch("dispatcher.live.facade.Committer", partial(SimulatedCommitter, self)):
            self.live = Dispatcher(
                world.database, keyring=world.keyring, clock=self.clock, transport=Sending(self)
            )
        self._write = self.live._database.write
        self.live._database.write = self._faulty_write  # type: ignore[method-assign]
        self.worker: Worker | None = None
        self.task: asyncio.Task[None] | None = None
        if works:
            self.worker = Worker(
                self.live._committer,
                self.live._vault,
                Sending(self),
                name=name,
                concurrency=6,
                per_tenant=PER_TENANT,
                poll=LOOKING,
            )
            self.task = world.loop.create_task(self._deliver(self.worker))

    def check(self) -> None:
        """Raises Crashed once it has."""
        if self.dead:
            raise Crashed

    def later(self, seconds: float, call: Callable[[], object]) -> None:
        self.world.loop.call_later(seconds, self._call, call)

    def crash(self) -> None:
        """Whatever it was doing ends here, without another word."""
        if self.dead:
            return
        self.dead = True
        self.world.note(f"{self.name} crashes")
        if self.task is not None:
            self.task.cancel()
        self.live._database.close()
        self.live._reading.close()
        self.world.crashed(self)

    async def end(self, grace: float) -> None:
        """In order."""
        self.world.note(f"{self.name} ends")
        if self.worker is not None and self.task is not None:
            self.worker.end(grace)
            await self.task
        if not self.dead:
            self.live.close()
            self.dead = True

    def _call(self, call: Callable[[], object]) -> None:
        if self.dead:
            return
        ahead = self.stalled_until - self.world.loop.time()
        if ahead > 0:
            self.later(ahead, call)
            return
        try:
            call()
        except Crashed:
            self.crash()

    async def _deliver(self, worker: Worker) -> None:
        try:
            await worker.deliver()
        except (Crashed, asyncio.CancelledError):
            if not self.dead:
                self.crash()

    @contextmanager
    def _faulty_write(self) -> Iterator[Connection]:
        self.check()
        fate = self.world.fate_of_transaction(self)
        if fate == "busy":
            raise DatabaseBusy("made up")
        if fate == "full":
            raise DatabaseFull("made up")
        with self._write() as connection:
            self.world.rules.begin()
            yield connection
            if fate == "full at its end":
                raise DatabaseFull("made up")
            if fate == "crash before":
                self.crash()
                raise Crashed
        self.world.committed(self.name)
        if fate == "crash after":
            self.crash()
            raise Crashed
