"""A receiver of webhooks on 127.0.0.1: it answers as it was told, and hands on what arrived."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from queue import SimpleQueue
from socketserver import TCPServer, ThreadingMixIn
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from dispatcher.delivery.accepting import MAX_BODY
from dispatcher.delivery.refusals import InvalidSignature
from dispatcher.delivery.verify import verify_webhook

Signature = Literal["verified", "invalid", "none", "unchecked"]

HOST = "127.0.0.1"
IDLE_SECONDS = 60
MOST_REMEMBERED = 100_000
UNAUTHORIZED = 401
NO_ANSWER = 0
"""Stands for an answer that never comes: the connection is closed."""
HINT = b"This receives webhooks. Send them with POST, PUT or PATCH.\n"


class Arrival(NamedTuple):
    """One request, and what came of it."""

    at: float
    """Seconds since 1970."""
    method: str
    path: str
    """Without the query, which may hold secrets."""
    event_id: str
    """The header webhook-id; empty without one."""
    attempt: int | None
    """How often this event has arrived; None for one that is refused for its signature."""
    signature: Signature
    answer: int
    body: bytes


class Receiver:
    """Has its port from its making; it answers from `listen` until it is closed."""

    def __init__(
        self,
        port: int = 0,
        *,
        answers: Sequence[int] = (200,),
        for_events: Mapping[str, Sequence[int]] = MappingProxyType({}),
        secrets: Sequence[str] = (),
        delay: float = 0.0,
    ) -> None:
        """The nth time that an event arrives gets the nth of the answers, the last one repeating.

        `for_events` holds those of single events, by id. With secrets a request that is signed by none of
        them is answered 401. `delay` is in seconds. Raises OSError when the port cannot be had; 0 takes any
        that is free.
        """
        self.arrivals: SimpleQueue[Arrival] = SimpleQueue()
        self.delay = delay
        self.secrets = list(secrets)
        self._answers = answers
        self._for_events = for_events
        self._times: dict[str, int] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._server = _Server((HOST, port), _handler(self), bind_and_activate=False)
        try:
            self._server.server_bind()
        except OSError:
            self._server.server_close()
            raise

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._server.server_address[1]}"

    def listen(self) -> None:
        self._server.server_activate()
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="receiver", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def take(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Arrival:
        """What arrived, as it will be answered."""
        event_id = headers.get("webhook-id", "")
        signature = self._checked(headers, body)
        attempt, answer = None, UNAUTHORIZED
        # A forged request moves nobody's answers on.
        if not self.secrets or signature == "verified":
            with self._lock:
                attempt = self._times.pop(event_id, 0) + 1
                self._times[event_id] = attempt
                if len(self._times) > MOST_REMEMBERED:
                    del self._times[next(iter(self._times))]
            answers = self._for_events.get(event_id, self._answers)
            answer = answers[min(attempt, len(answers)) - 1]
        shown_path, query, _ = path.partition("?")
        arrival = Arrival(
            time.time(), method, shown_path + (query and "?..."), event_id, attempt, signature, answer, body
        )
        self.arrivals.put(arrival)
        return arrival

    def _checked(self, headers: Mapping[str, str], body: bytes) -> Signature:
        if "webhook-signature" not in headers:
            return "none"
        if not self.secrets:
            return "unchecked"
        try:
            verify_webhook(body, headers, self.secrets)
        except InvalidSignature:
            return "invalid"
        return "verified"


class _Server(ThreadingMixIn, TCPServer):
    # Not HTTPServer: that looks up the name of its own address, which takes long where nobody knows it.
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that goes away does not wait for its answer."""


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version, sys_version = "dispatcher-receive", ""
        timeout = IDLE_SECONDS

        def _receive(self) -> None:
            length = self.headers.get("content-length", "")
            if self.headers.get("transfer-encoding") is not None or not length:
                return self._refuse(411)
            if not (length.isascii() and length.isdigit()):
                return self._refuse(400)
            if len(length) > 9 or int(length) > MAX_BODY:
                return self._refuse(413)
            body = self.rfile.read(int(length))
            if len(body) < int(length):
                return self._close()
            headers = {name.lower(): value for name, value in self.headers.items()}
            arrival = receiver.take(self.command, self.path, headers, body)
            if receiver.delay:
                time.sleep(receiver.delay)
            if arrival.answer == NO_ANSWER:
                return self._close()
            return self._reply(arrival.answer)

        do_POST = do_PUT = do_PATCH = _receive

        def do_GET(self) -> None:
            self._reply(200, HINT)

        do_HEAD = do_GET

        def _refuse(self, status: int) -> None:
            """A body that is not read would be taken for the next request."""
            self.close_connection = True
            self._reply(status)

        def _close(self) -> None:
            self.close_connection = True

        def _reply(self, status: int, text: bytes = b"") -> None:
            self.send_response(status)
            if self.close_connection:
                self.send_header("Connection", "close")
            if text:
                self.send_header("Content-Type", "text/plain; charset=utf-8")
            if status not in (204, 304):
                self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            """Whoever reads `arrivals` shows them."""

    return Handler
