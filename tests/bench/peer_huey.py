"""How fast a worker delivers, against huey, a task queue with SQLite under it: `pip install huey requests`.

dispatcher: as in `drain`: 5,000 events of 1 KiB at 500 endpoints, a durable database, a master key.
huey: as many tasks in a SqliteHuey with fsync (synchronous=FULL, WAL), each of which holds the URL and the
  body; a consumer with as many threads as the dispatcher has requests at once. A task signs the body and
  posts it with requests, over a session of its thread that keeps its connections.

Huey does less: nothing is encrypted, ordered or kept; a task is deleted before it runs, and is lost if its
process dies then. Both take everything from a new copy of a database on disk, and end when the last request
has arrived; the dispatcher when its last record is durable, too.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from dispatcher.delivery.accepting import new_event_id
from dispatcher.delivery.attempt import signed_request
from dispatcher.delivery.signing import parse_signer
from dispatcher.log.claims import Limits
from tests.bench.drain import Drain
from tests.bench.live import PAYLOAD, SECRET, fresh
from tests.bench.measure import Took, arguments, in_turns, middle, print_line, rounded, sides
from tests.bench.receiver import Receiver


def imported(name: str) -> Any:
    """A module that is no dependency of this project."""
    try:
        return import_module(name)
    except ImportError:
        raise SystemExit("peer_huey measures huey: pip install huey requests") from None


class Huey:
    """The other side, on the same events every time."""

    def __init__(self, folder: Path, receiver: Receiver, size: int, endpoints: int, threads: int) -> None:
        self._huey, self._requests = imported("huey"), imported("requests")
        logging.getLogger("huey").setLevel(logging.ERROR)
        self._receiver = receiver
        self._size = size
        self._threads = threads
        self._of_thread = threading.local()
        self._built, self._copy = folder / "built.huey", folder / "measured.huey"
        queue, post = self._opened(self._built)
        for n in range(size):
            post(f"{receiver.url}/endpoint-{n % endpoints}", PAYLOAD)
        queue.storage.close()

    def drained(self) -> Took:
        queue, _ = self._opened(fresh(self._built, self._copy))
        consumer = queue.create_consumer(workers=self._threads, periodic=False, check_worker_health=False)
        self._receiver.expect(self._size)
        start, cpu = time.monotonic(), time.process_time()
        consumer.start()
        arrived = self._receiver.arrived()
        took = Took(arrived.at - start, time.process_time() - cpu)
        consumer.stop(graceful=True)
        queue.storage.close()
        return took

    def _opened(self, path: Path) -> tuple[Any, Any]:
        """A queue, and its one task."""
        queue = self._huey.SqliteHuey(filename=str(path), fsync=True, results=False)
        return queue, queue.task(name="post")(self._post)

    def _post(self, url: str, body: bytes) -> None:
        if not hasattr(self._of_thread, "session"):
            self._of_thread.session = self._requests.Session()
        request = signed_request(
            url=url,
            method="POST",
            event_id=new_event_id(),
            timestamp=int(time.time()),
            body=body,
            signers=[parse_signer(SECRET)],
        )
        answer = self._of_thread.session.post(request.url, data=request.body, headers=dict(request.headers))
        answer.raise_for_status()


def main() -> None:
    given = arguments(__doc__, 5_000, concurrency=Limits(0).per_tenant, endpoints=500)
    size, concurrency = given.size, given.others["concurrency"]
    endpoints = min(size, given.others["endpoints"])
    with tempfile.TemporaryDirectory() as name, Receiver() as receiver:
        folder = Path(name)
        huey = Huey(folder, receiver, size, endpoints, concurrency)
        drain = Drain(folder, receiver, size, endpoints, concurrency)

        def drained() -> Took:
            took = drain.dispatcher()
            return Took(took.seconds, took.cpu_seconds)

        measured = in_turns({"dispatcher": drained, "huey": huey.drained}, given.rounds)
    seconds = {side: middle(rounds) for side, rounds in measured.items()}
    line = {
        "ratio": rounded(seconds["huey"] / seconds["dispatcher"]),
        **{f"{side}_per_second": round(size / seconds[side]) for side in measured},
        **sides(**measured),
        "deliveries": size,
        "endpoints": endpoints,
        "concurrency": concurrency,
    }
    print_line("peer_huey", "dispatcher_per_second / huey_per_second, reported", line)


if __name__ == "__main__":
    main()
