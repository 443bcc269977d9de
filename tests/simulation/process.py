"""A process of the world: a dispatcher, perhaps with a worker, that may crash or stand still at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from unittest.mock import patch

from sqlalchemy import Connection

from dispatcher.errors import DatabaseBusy, DatabaseFull, StorageError
from dispatcher.live import Dispatcher
from dispatcher.log.commit import LARGEST_BATCH, Commit, Committer, Piece
from dispatcher.worker.worker import Worker
from tests.simulation.chances import Faults
from tests.simulation.network import Sending
from tests.simulation.virtual import RUNNER, VirtualClock

if TYPE_CHECKING:
    from tests.simulation.world import World

T = TypeVar("T")
LOOKING = 5.0
"""Seconds between looks at what others did: in less of them a seed takes too long."""
PER_TENANT = 4
FATES = (
    "a locked database",
    "a full disk",
    "a disk that is full in the end",
    "a crash before the commit",
    "a crash after the commit",
)
"""Of a transaction."""


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
            self._process.later(self._process.commit_takes(), self.work_off)
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

    def __init__(self, world: World, name: str, life: int, *, works: bool) -> None:
        self.world = world
        self.name = name
        self.life = f"{name}.{life}"
        """Whoever starts after a crash is another one."""
        self.dead = self.crashed = False
        self.stalled_until = 0.0
        self.clock = VirtualClock(world.loop, world.wrong_clock(world.chances.of(f"{self.life}/clock")))
        self._awaits = Faults(world.chances, f"{self.life}/await", world.faults / 4)
        self._transactions = Faults(world.chances, f"{self.life}/transaction", world.faults)
        self._commits = world.chances.of(f"{self.life}/commits")
        self._abandoned: list[Coroutine[Any, Any, Any]] = []
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
                name=self.life,
                concurrency=6,
                per_tenant=PER_TENANT,
                mails=2,
                poll=LOOKING,
            )
            context = copy_context()
            context.run(RUNNER.set, self)
            self.task = world.loop.create_task(self.worker.deliver(), context=context)
            self.task.add_done_callback(self._ended)

    def check(self) -> None:
        """Raises Crashed once it has."""
        if self.dead:
            raise Crashed

    @property
    def is_stalled(self) -> bool:
        return self.stalled_until > self.world.loop.time()

    def later(self, seconds: float, call: Callable[[], object]) -> None:
        self.world.loop.call_later(seconds, self._call, call)

    def commit_takes(self) -> float:
        """Seconds until its committer gets to what it is given."""
        return self.world.commit_takes(self._commits)

    def stall(self, seconds: float) -> None:
        self.world.note(self.life, "stands still")
        self.stalled_until = self.world.loop.time() + seconds

    def crash(self) -> None:
        """Whatever it was doing ends here, without another word."""
        if self.dead:
            return
        self.dead = self.crashed = True
        self.world.note(self.life, "crashes")
        if self.task is not None:
            self.task.cancel()
        self.live._database.close()
        self.live._reading.close()
        self.world.start_again(self)

    async def end(self, grace: float) -> None:
        """In order."""
        self.world.note(self.life, "ends")
        if self.worker is not None and self.task is not None:
            self.worker.end(grace)
            with suppress(Crashed):
                await self.task
        if not self.dead:
            with suppress(Crashed):
                self.live.close()
            self.dead = True

    def clear_away(self) -> None:
        """What it never came to."""
        self.dead = True
        for task in self._abandoned:
            with suppress(BaseException):
                task.close()
        self.live._database.close()
        self.live._reading.close()

    # What may happen wherever a task of its own awaits.

    def interruption(self) -> float:
        self.check()
        if not self.world.healed and (fault := self._awaits.strike()) is not None:
            if fault.random() < 0.5:
                self.crash()
                raise Crashed
            self.stall(fault.choice((0.1, 1, 12, 30, 60, 200)))
        return self.stalled_until - self.world.loop.time()

    def abandon(self, task: Coroutine[Any, Any, Any]) -> None:
        self._abandoned.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if (
            not task.cancelled()
            and (error := task.exception()) is not None
            and not isinstance(error, Crashed)
        ):
            self.world.fail(error)

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

    @contextmanager
    def _faulty_write(self) -> Iterator[Connection]:
        self.check()
        fault = None if self.world.healed else self._transactions.strike()
        fate = None if fault is None else fault.choice(FATES)
        if fate is not None:
            self.world.note(self.life, f"meets {fate}")
        if fate == "a locked database":
            raise DatabaseBusy("made up")
        if fate == "a full disk":
            raise DatabaseFull("made up")
        with self._write() as connection:
            self.world.rules.begin()
            yield connection
            if fate == "a disk that is full in the end":
                raise DatabaseFull("made up")
            if fate == "a crash before the commit":
                self.crash()
                raise Crashed
        self.world.committed(self.life)
        if fate == "a crash after the commit":
            self.crash()
            raise Crashed
