"""A worker: it claims what is due, sends it, and records what came of it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from dispatcher.core.entries import AttemptRecorded, AttemptReleased, Entry
from dispatcher.delivery.transport import Transport, never_sent
from dispatcher.errors import DispatcherError, MasterKeyMissing, StorageError, UsageError, VaultError
from dispatcher.log import claims
from dispatcher.log.claims import Limits
from dispatcher.log.commit import Commit, Committer
from dispatcher.log.vault import Vault
from dispatcher.log.watch import Watch
from dispatcher.worker.housekeeping import Housekeeping
from dispatcher.worker.outgoing import DEADLINE, Outgoing
from dispatcher.worker.turn import Claimed, Outcome, Turn, take_turn

LEASE = 30.0
"""Seconds that a claim holds beyond the deadline."""
MAILS_AT_ONCE = 32
"""Of one worker that may send them."""
TROUBLED_PAUSE = 0.5
"""Seconds until a database that could not serve is asked again."""
MANY = 16
"""Requests in flight at which answers are worth waiting for."""
GATHERING = 0.005
"""Seconds after an answer within which others are waited for then, to be recorded with it.

Measured with 64 in flight that is a fifth more deliveries a second: the pages of one transaction serve all.
"""
logger = logging.getLogger("dispatcher.worker")
# Else Python would print every warning of an application that set up no logging.
logging.getLogger("dispatcher").addHandler(logging.NullHandler())


class Figures(NamedTuple):
    """What a worker has done since its start, and what it is doing."""

    in_flight: int = 0
    delivered: int = 0
    retried: int = 0
    """Failed, and to be tried again."""
    dead: int = 0
    lost: int = 0
    """Of those two, the attempts of workers that were taken for dead."""
    released: int = 0

    @property
    def attempts(self) -> int:
        return self.delivered + self.retried + self.dead


class Worker:
    """Delivers in a thread of its own, from `start` to `stop`."""

    def __init__(
        self,
        committer: Committer,
        vault: Vault,
        transport: Transport,
        *,
        name: str | None = None,
        concurrency: int = 256,
        per_tenant: int = 64,
        mails: int = 0,
        poll: float = 0.045,
        grace: float = 10.0,
    ) -> None:
        """Up to `concurrency` requests at once, `per_tenant` of one tenant over all workers; `mails` of them
        to endpoints of mail, and at most half in either case: a mail server that hangs delays no others.

        Work of other processes is noticed within `poll` seconds. `grace`, in seconds, is how long `stop`
        lets requests in flight finish.
        """
        self.name = name or f"{socket.gethostname()}/{os.getpid()}"
        self.failure: DispatcherError | None = None
        """Why it stopped by itself."""
        self._committer = committer
        self._vault = vault
        self._transport = transport
        self._outgoing = Outgoing(vault)
        self._housekeeping = Housekeeping(committer)
        self._concurrency = concurrency
        self._poll = poll
        self._grace = grace
        mails = min(mails, max(1, concurrency // 2))
        self._limits = Limits(round((DEADLINE + LEASE) * 1000), per_tenant, mails)
        self._counted: Counter[str] = Counter()
        self._sending: set[asyncio.Task[None]] = set()
        self._outcomes: list[Outcome] = []
        """Not yet recorded."""
        self._looked = 0
        """The log's position when it was last seen what is due."""
        self._next_change: int | None = None
        self._changed = False
        """Whether there was a reason to look since then."""
        self._appended = 0
        """The log's position after what this process committed last."""
        self._stopping = False
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="dispatcher-worker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, grace: float | None = None) -> None:
        """`end`, and wait until all of it is recorded."""
        self.end(grace)
        self._ended.wait()

    def end(self, grace: float | None = None) -> None:
        """Claim nothing more, let requests in flight finish within the grace, release the rest."""
        if grace is not None:
            self._grace = grace
        self._stopping = True
        self._from_outside(self._woken.set)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until it ends, at most so many seconds; whether it has."""
        # Not by the thread's own join: a Ctrl-C within that leaves it taken for ended.
        return self._ended.wait(timeout)

    @property
    def sends_mail(self) -> bool:
        return self._limits.mails > 0

    def figures(self) -> Figures:
        return Figures(in_flight=len(self._sending), **self._counted)

    def _run(self) -> None:
        try:
            asyncio.run(self.deliver())
        except DispatcherError as error:
            self._fail(error)
        finally:
            self._ended.set()

    def _fail(self, error: DispatcherError) -> None:
        logger.error("the worker stops: %s. %s", error, error.remedy)
        self.failure, self._stopping = error, True

    async def deliver(self) -> None:
        """Deliver in the caller's event loop, until it is told to end."""
        watch = self._committer.watch()
        self._loop = asyncio.get_running_loop()
        self._committer.listeners.append(self._committed)
        # Beside the loop, where a look takes a tenth of what it takes within it.
        looking = self._committer.beside(
            partial(self._look_around, watch), self._poll, "dispatcher-worker-watch"
        )
        self._housekeeping.start()
        try:
            while not self._stopping:
                turn = await self._turn(self._concurrency - len(self._sending))
                if turn is None:
                    await self._wait(TROUBLED_PAUSE)
                    continue
                for claimed in turn.claimed:
                    task = asyncio.create_task(self._attempt(claimed))
                    self._sending.add(task)
                    task.add_done_callback(partial(self._finished, claimed))
                await self._pause(turn.next_change)
            await self._finish()
        finally:
            self._committer.listeners.remove(self._committed)
            self._loop = None
            looking.stop()
            self._housekeeping.stop()
            watch.close()
            await self._transport.close()

    async def _turn(self, limit: int) -> Turn | None:
        """Record what has come back and claim up to `limit` more; None while the database cannot serve."""
        outcomes, self._outcomes = self._outcomes, []
        self._next_change, self._changed = None, False
        work = partial(self._work, outcomes=outcomes, limit=limit)
        try:
            # Cancelled meanwhile, it is done all the same: what happened is recorded.
            turn = await asyncio.shield(asyncio.wrap_future(self._committer.submit(work)))
        except StorageError as error:
            self._outcomes = outcomes + self._outcomes
            logger.error("nothing could be recorded or claimed: %s. %s", error, error.remedy)
            return None
        for entry in turn.recorded:
            self._note(entry)
        return turn

    def _work(self, commit: Commit, outcomes: list[Outcome], limit: int) -> Turn:
        """In the committer's thread."""
        turn = take_turn(commit, self._vault, outcomes, self.name, limit, self._limits)
        if self._looked == 0 and not self._limits.mails and claims.has_mail(commit.connection):
            logger.warning("endpoints of mail are left to other workers: no mail server is configured")
        self._looked = commit.state.position
        return turn

    async def _attempt(self, claimed: Claimed) -> None:
        claim = claimed.claim
        began = asyncio.get_running_loop().time()
        key = b""
        try:
            request, key = self._outgoing.request(claimed)
            answer = await self._transport.send(request)
        except MasterKeyMissing as error:
            self._fail(error)
            answer = None
        except (VaultError, UsageError) as error:
            # A stored row that cannot be sent ends its own delivery; it never delays another.
            answer = never_sent(error.code)
        duration = round((asyncio.get_running_loop().time() - began) * 1000)
        self._outcomes.append(Outcome(claim, answer, duration, key))

    def _finished(self, claimed: Claimed, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self._woken.set()
        if task.cancelled():
            self._outcomes.append(Outcome(claimed.claim, None))
        else:
            task.result()  # A fault of ours is told to the loop's exception handler; its claim expires.

    async def _pause(self, next_change: int | None) -> None:
        """Until there may be something to record or to claim."""
        self._next_change = next_change
        while not self._stopping:
            # However much there may be to claim, without room it has to wait for an answer.
            full = len(self._sending) >= self._concurrency
            due_in = None
            if next_change is not None and not full:
                due_in = max(0.0, (next_change - self._committer.now()) / 1000)
            await self._wait(due_in)
            if self._outcomes:
                await self._gather()
                return
            if not full and (self._changed or self._appended > self._looked or self._is_due()):
                return

    def _is_due(self) -> bool:
        return self._next_change is not None and self._committer.now() >= self._next_change

    def _look_around(self, watch: Watch) -> None:
        """Wake the worker when others have written, or the clock has moved on faster than expected."""
        if watch.changed() or self._is_due():
            self._changed = True
            self._from_outside(self._woken.set)

    async def _gather(self) -> None:
        """Let more of many requests come back: one turn is for all of them."""
        end = asyncio.get_running_loop().time() + GATHERING
        while len(self._sending) + len(self._outcomes) >= MANY and self._sending and not self._stopping:
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                return
            await self._wait(left)

    async def _wait(self, seconds: float | None) -> None:
        """That long, or until something happens."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()

    async def _finish(self) -> None:
        """Let requests in flight end, then end them, and record it all."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._grace
        if self._sending:
            await asyncio.wait(self._sending, timeout=self._grace)
        for task in self._sending:
            task.cancel()
        while self._sending:
            await asyncio.wait(self._sending)
        while self._outcomes and await self._turn(0) is None and loop.time() < end:
            await asyncio.sleep(TROUBLED_PAUSE)

    def _note(self, entry: Entry) -> None:
        body = entry.body
        if isinstance(body, AttemptReleased):
            self._counted["released"] += 1
        if not isinstance(body, AttemptRecorded):
            return
        self._counted["retried" if body.decision == "retry" else body.decision] += 1
        if body.error == "lost":
            self._counted["lost"] += 1
        if body.decision != "delivered":
            logger.log(
                logging.INFO if body.decision == "retry" else logging.WARNING,
                "attempt %d of %s: %d %s, %s",
                body.attempt,
                entry.delivery_id,
                body.status,
                body.error or "",
                "dead" if body.retry_at is None else f"again at {body.retry_at}",
                extra={"entry": entry},
            )

    def _committed(self, position: int) -> None:
        """In the committer's thread."""
        self._appended = position
        if position > self._looked:
            self._from_outside(self._woken.set)

    def _from_outside(self, call: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it may have ended just now
                loop.call_soon_threadsafe(call)
