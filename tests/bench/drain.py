"""How fast a worker delivers, against a bare aiohttp loop that posts the same to the same receiver.

dispatcher: 5,000 events of 1 KiB at 500 endpoints, ten each, all due, in a database on disk with
  synchronous=FULL and a master key. From the start of a worker in this process until the last request has
  arrived and the last record is durable: claiming, decrypting, signing, sending, recording.
bare: one aiohttp ClientSession that keeps its connections, and as many tasks as the worker has requests at
  once, which take from a list. The same bodies and headers, signatures included, made beforehand. From the
  session's opening until the last answer is read.

The receiver is a process of its own. No process is pinned to a core: both sides may use what the receiver
leaves of the machine. The garbage collector is on, as it is in use.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from dispatcher.delivery.accepting import new_event_id
from dispatcher.delivery.attempt import signed_request
from dispatcher.delivery.signing import parse_signer
from dispatcher.delivery.transport import Request
from dispatcher.log.claims import Limits
from tests.bench.live import PAYLOAD, SECRET, build, fresh, opened, until_recorded
from tests.bench.measure import arguments, in_turns, median_of, print_line, rounded, summary
from tests.bench.receiver import Receiver


class Drained(NamedTuple):
    seconds: float
    cpu_seconds: float
    """Of this process, all its threads."""
    receiver_cpu_seconds: float


class Drain:
    """Both sides, on the same events every time."""

    def __init__(self, folder: Path, receiver: Receiver, size: int, endpoints: int, concurrency: int) -> None:
        self._receiver = receiver
        self._size = size
        self._concurrency = concurrency
        self._built, self._copy = folder / "built.db", folder / "measured.db"
        urls = {f"endpoint-{n}": f"{receiver.url}/endpoint-{n}" for n in range(endpoints)}
        events = [f"endpoint-{n % endpoints}" for n in range(size)]
        build(self._built, urls, events)
        self._requests = [_request(urls[name]) for name in events]

    def dispatcher(self) -> Drained:
        with opened(fresh(self._built, self._copy)) as live:
            self._receiver.expect(self._size)
            gc.collect()
            start, cpu = time.monotonic(), time.process_time()
            with live.worker(concurrency=self._concurrency):
                arrived = self._receiver.arrived()
                end = max(arrived.at, until_recorded(self._copy))
                took = time.process_time() - cpu
        return Drained(end - start, took, arrived.cpu_seconds)

    def bare(self) -> Drained:
        self._receiver.expect(self._size)
        gc.collect()
        start, cpu = time.monotonic(), time.process_time()
        asyncio.run(post(self._requests, self._concurrency))
        end, took = time.monotonic(), time.process_time() - cpu
        return Drained(end - start, took, self._receiver.arrived().cpu_seconds)


def _request(url: str) -> Request:
    """What one attempt sends, but for its id and time, and the order of its headers."""
    return signed_request(
        url=url,
        method="POST",
        event_id=new_event_id(),
        timestamp=int(time.time()),
        body=PAYLOAD,
        signers=[parse_signer(SECRET)],
        headers=[("Accept-Encoding", "identity")],
    )


async def post(requests: Sequence[Request], concurrency: int) -> None:
    """Send all, so many at a time."""
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector, skip_auto_headers=("Accept",)) as session:

        async def send(waiting: Iterator[Request]) -> None:
            for request in waiting:
                async with session.post(request.url, data=request.body, headers=request.headers) as response:
                    await response.read()
                    assert response.status == 200

        waiting = iter(requests)
        await asyncio.gather(*(send(waiting) for _ in range(concurrency)))


def shown(name: str, rounds: Sequence[Drained]) -> dict[str, Any]:
    return {f"{name}_{field}": summary([getattr(one, field) for one in rounds]) for field in Drained._fields}


def main() -> None:
    given = arguments(__doc__, 5_000, concurrency=Limits(0).per_tenant, endpoints=500)
    endpoints = min(given.size, given.others["endpoints"])
    with tempfile.TemporaryDirectory() as folder, Receiver() as receiver:
        drain = Drain(Path(folder), receiver, given.size, endpoints, given.others["concurrency"])
        measured = in_turns({"dispatcher": drain.dispatcher, "bare": drain.bare}, given.rounds)
    took = {side: [one._asdict() for one in rounds] for side, rounds in measured.items()}
    seconds = {side: median_of(rounds, "seconds") for side, rounds in took.items()}
    cpu_seconds = {side: median_of(rounds, "cpu_seconds") for side, rounds in took.items()}
    line = {
        "ratio": rounded(seconds["bare"] / seconds["dispatcher"]),
        "cpu_ratio": rounded(cpu_seconds["bare"] / cpu_seconds["dispatcher"]),
        **shown("dispatcher", measured["dispatcher"]),
        **shown("bare", measured["bare"]),
        "dispatcher_per_second": round(given.size / seconds["dispatcher"]),
        "bare_per_second": round(given.size / seconds["bare"]),
        "deliveries": given.size,
        "endpoints": endpoints,
        "concurrency": given.others["concurrency"],
    }
    print_line("drain", "dispatcher_per_second / bare_per_second >= 0.6", line)


if __name__ == "__main__":
    main()
