"""A customer's receiver on 127.0.0.1: it answers as a test tells it, and tells the test what arrived."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

PATIENCE_SECONDS = 20


class Arrival(NamedTuple):
    """One request, as it came."""

    method: str
    path: str
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes

    @property
    def event(self) -> str:
        return self.headers["webhook-id"]


class Reply(NamedTuple):
    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class Receiver:
    """Listens from its making until it is closed."""

    def __init__(self) -> None:
        self.seen: list[Arrival] = []
        self.otherwise = Reply(200)
        """What events get for which no answer was said."""
        self.most_at_once: Counter[str] = Counter()
        """The most requests that were unanswered at one time, by path."""
        self._at_once: Counter[str] = Counter()
        self._scripts: dict[str, list[Reply]] = {}
        self._arrivals: queue.Queue[Arrival] = queue.Queue()
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._open.set()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}/hook"

    @property
    def events(self) -> list[str]:
        """The event ids that arrived, in order."""
        with self._lock:
            return [arrival.event for arrival in self.seen]

    def answer(self, event_id: str, *replies: Reply | int) -> None:
        """Answer an event so from now on, the last reply repeating."""
        with self._lock:
            self._scripts[event_id] = [Reply(one) if isinstance(one, int) else one for one in replies]

    def next(self) -> Arrival:
        """The next arrival, waited for."""
        return self._arrivals.get(timeout=PATIENCE_SECONDS)

    def take(self, count: int) -> list[Arrival]:
        return [self.next() for _ in range(count)]

    def assert_quiet(self) -> None:
        """Nothing arrived but what was taken."""
        assert self._arrivals.empty(), self._arrivals.get().event

    @contextmanager
    def holding(self) -> Iterator[None]:
        """No request is answered within the block."""
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    def release(self) -> None:
        """Answer what is held."""
        self._open.set()

    def reply(self, arrival: Arrival) -> Reply:
        with self._lock:
            self.seen.append(arrival)
            self._at_once[arrival.path] += 1
            most = max(self.most_at_once[arrival.path], self._at_once[arrival.path])
            self.most_at_once[arrival.path] = most
            script = self._scripts.get(arrival.event, [self.otherwise])
            reply = script.pop(0) if len(script) > 1 else script[0]
        self._arrivals.put(arrival)
        assert self._open.wait(PATIENCE_SECONDS)
        with self._lock:
            self._at_once[arrival.path] -= 1
        return reply

    def close(self) -> None:
        self._open.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that was killed does not wait for its answer."""


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            assert len(headers) == len(self.headers), "a header came twice"
            body = self.rfile.read(int(headers["content-length"]))
            reply = receiver.reply(Arrival(self.command, self.path, headers, body))
            self.send_response(reply.status)
            for name, value in (*reply.headers, ("Content-Length", str(len(reply.body)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        do_POST = do_PUT = do_PATCH = _handle

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    return Handler
