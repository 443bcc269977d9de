"""Processes that run operations on a file and may be killed at any moment, and what they told before.

A server forks them from a process that has everything imported: a new interpreter for each would take most of
the time.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any

from sqlalchemy import Engine, event

from dispatcher import run
from tests.notation import D, E, P, Q

CALLS = 150


def context() -> ForkServerContext:
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["tests.lives"])
    return server


def call(number: int) -> list[Any]:
    """The operations of one call; the calls follow each other on one file."""
    chance = random.Random(number)
    ts = number * 20
    operations: list[Any] = []
    if number == 0:
        operations += [["register", 0, endpoint, "https://a.example"] for endpoint in "abc"]
    for n in range(chance.choice([1, 5, 30])):
        codes = chance.choices([200, 503, 404, 0], k=chance.randint(1, 3))
        operations.append(Q(ts, chance.choice("abc"), f"evt-{number}-{n}", codes))
    operations.append(P(ts))
    if number % 5 == 4:
        operations += [D(ts, "b"), Q(ts, "b", f"held-{number}", [200]), E(ts + 1, "b", True), P(ts + 1)]
    return operations


def told(operations: list[Any], say: Connection) -> Iterator[Any]:
    """The operations, each announced before it is executed."""
    for number, operation in enumerate(operations):
        say.send(("operation", number))
        yield operation


def live(database: str, start: int, say: Connection) -> None:
    """Call after call, each announced at its beginning and its end, until the last or until killed."""
    for number in range(start, CALLS):
        say.send(("begun", number))
        run(told(call(number), say), database)
        say.send(("done", number))


def die_at_statement(database: str, number: int, statement: int, say: Connection) -> None:
    """One call, killed before its nth statement (from 0, over all of its connections) or commit."""
    count = 0

    def executing(*_: Any) -> None:
        nonlocal count
        if count == statement:
            say.send("killed")
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    event.listen(Engine, "before_cursor_execute", executing)
    event.listen(Engine, "commit", executing)
    run(call(number), database)
    say.send("survived")


def start(target: Any, *arguments: Any) -> tuple[ForkServerProcess, Connection]:
    """A process that runs target(*arguments, say), and the end at which one hears it."""
    hear, say = context().Pipe(duplex=False)
    process = context().Process(target=target, args=(*arguments, say))
    process.start()
    say.close()
    return process, hear


def rest_of(hear: Connection) -> list[Any]:
    """What was still said before the end."""
    said = []
    try:
        while True:
            said.append(hear.recv())
    except EOFError:
        return said
