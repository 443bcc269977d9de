"""A worker: it claims what is due, sends it, and records what came of it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeVar

from dispatcher.core.operations import Record, Release
from dispatcher.core.policy import HINTED_STATUSES
from dispatcher.delivery.attempt import signed_request
from dispatcher.delivery.settings import decode_payload, decode_settings
from dispatcher.delivery.signing import parse_signer
from dispatcher.delivery.transport import Answer, Request, Transport, never_sent
from dispatcher.errors import MasterKeyMissing, StorageError, UsageError, VaultDamaged, VaultError
from dispatcher.log import claims
from dispatcher.log.claims import Claim, Limits
from dispatcher.log.commit import Commit, Committer
from dispatcher.log.vault import Vault

T = TypeVar("T")

DEADLINE = 10.0
"""Seconds of one attempt."""
LEASE = 30.0
"""Seconds that a claim holds beyond the deadline."""
logger = logging.getLogger("dispatcher.worker")


class Claimed(NamedTuple):
    """A claim, with what is needed to send it; still sealed."""

    claim: Claim
    settings: bytes
    wrapped: bytes
    sealed: bytes

    def __repr__(self) -> str:
        return f"Claimed({self.claim.delivery_id}, fence {self.claim.fence})"


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
        poll: float = 0.05,
        grace: float = 10.0,
    ) -> None:
        """Up to `concurrency` requests at once; other processes' work is noticed within `poll` seconds."""
        self.name = name or f"{socket.gethostname()}/{os.getpid()}"
        self._committer = committer
        self._vault = vault
        self._transport = transport
        self._concurrency = concurrency
        self._poll = poll
        self._grace = grace
        self._limits = Limits(lease=round((DEADLINE + LEASE) * 1000))
        self._sending: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="dispatcher-worker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Claim nothing more, let requests in flight finish within the grace, release the rest."""
        self._stopping = True
        self._wake()
        self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._deliver())

    async def _deliver(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            self._committer.listeners.append(self._wake)
            while not self._stopping:
                free = self._concurrency - len(self._sending)
                for one in await self._claimed(free):
                    task = asyncio.create_task(self._attempt(one))
                    self._sending.add(task)
                    task.add_done_callback(self._sending.discard)
                await self._pause()
            if self._sending:
                await asyncio.wait(self._sending, timeout=self._grace)
            for task in list(self._sending):
                task.cancel()
            await asyncio.gather(*self._sending, return_exceptions=True)
        finally:
            self._committer.listeners.remove(self._wake)
            self._loop = None
            await self._transport.close()

    async def _claimed(self, limit: int) -> list[Claimed]:
        """What is due now; nothing while the database cannot serve, which is not the end of the worker."""
        try:
            return await self._commit(partial(self._claim, limit=limit))
        except StorageError as error:
            logger.error("nothing could be claimed: %s. %s", error, error.remedy)
            return []

    async def _pause(self) -> None:
        """Until something was appended by this process, or it is time to look what others did."""
        try:
            async with asyncio.timeout(self._poll):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # it may have ended just now
                loop.call_soon_threadsafe(self._woken.set)

    def _claim(self, commit: Commit, limit: int) -> list[Claimed]:
        """Record as lost what dead workers held, then claim what is due."""
        for lost in claims.expired(commit.connection, commit.now):
            claims.release(commit.connection, lost.fence)
            facts = Record(lost.delivery_id, 0, lost.started_at, error="lost", worker=lost.worker)
            commit.apply(facts)
        commit.flush()
        claimed = []
        for claim in claims.claim(commit.connection, commit.now, self.name, limit, self._limits):
            try:
                settings = self._vault.read_endpoint(commit.connection, claim.endpoint_id)
                wrapped, sealed = self._vault.read_sealed(commit.connection, claim.position)
            except VaultDamaged as damage:
                self._record(commit, claim, never_sent(damage.code), 0)
            else:
                claimed.append(Claimed(claim, settings, wrapped, sealed))
        return claimed

    async def _attempt(self, claimed: Claimed) -> None:
        claim = claimed.claim
        began = asyncio.get_running_loop().time()
        try:
            answer = await self._transport.send(self._request(claimed))
        except MasterKeyMissing:
            logger.exception("stopped: no more is sent, and no attempt is spent")
            self._stopping = True
            await self._commit(partial(self._release, claim=claim))
            return
        except (VaultError, UsageError) as error:
            # A stored row that cannot be sent ends its own delivery; it never delays another.
            answer = never_sent(error.code)
        except asyncio.CancelledError:
            await self._commit(partial(self._release, claim=claim))
            raise
        duration = round((asyncio.get_running_loop().time() - began) * 1000)
        await self._commit(partial(self._record, claim=claim, answer=answer, duration=duration))

    async def _commit(self, work: Callable[[Commit], T]) -> T:
        """Have work done. Cancelled meanwhile, it is done all the same: what happened is recorded."""
        return await asyncio.shield(asyncio.wrap_future(self._committer.submit(work)))

    def _request(self, claimed: Claimed) -> Request:
        claim = claimed.claim
        settings = decode_settings(claimed.settings)
        plain = self._vault.unseal_payload(claim.delivery_id, claimed.wrapped, claimed.sealed)
        payload = decode_payload(plain)
        valid = [s for s in settings.secrets if s.until is None or s.until > claim.started_at]
        return signed_request(
            url=settings.url,
            method=settings.method,
            event_id=claim.delivery_id.rpartition("/")[2],
            timestamp=claim.started_at // 1000,
            body=payload.body,
            signers=[parse_signer(secret.text) for secret in valid],
            authentication=settings.authentication,
            headers=(*settings.headers, *payload.headers),
            deadline=DEADLINE,
        )

    def _record(self, commit: Commit, claim: Claim, answer: Answer, duration: int) -> None:
        if claims.release(commit.connection, claim.fence) is None:
            logger.warning("dropped the late result of %s: another worker has taken over", claim.delivery_id)
            return
        hint = answer.retry_after if answer.status in HINTED_STATUSES else None
        position = commit.state.position + 1
        commit.apply(
            Record(
                claim.delivery_id,
                answer.status,
                claim.started_at,
                duration,
                answer.outcome,
                answer.error,
                None if hint is None else hint * 1000,
                claim.worker,
            )
        )
        if answer.body:
            self._vault.write_response(commit.connection, position, claim.position, answer.body)

    def _release(self, commit: Commit, claim: Claim) -> None:
        if claims.release(commit.connection, claim.fence) is not None:
            commit.apply(Release(claim.delivery_id, claim.started_at, claim.worker))
