"""`dispatcher work`, run by tests, and what it logs."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dispatcher.audit.standing import backlog
from dispatcher.core.policy import RetryPolicy
from tests.acceptance.cli import PATIENCE_SECONDS, Ran, dispatcher, started
from tests.acceptance.lively import OPEN

OPENED = ("--open-network", OPEN[0])
ONCE = RetryPolicy(max_attempts=2, waits=(3600,), retryable=((0, 0), (500, 599)))

Log = list[dict[str, Any]]


def logged(err: str) -> Log:
    return [json.loads(line) for line in err.splitlines()]


def events(log: Log, event: str) -> Log:
    return [line for line in log if line.get("event") == event]


def work_until_idle(database: Path, *arguments: str, **more: str) -> Ran:
    ran = dispatcher(
        "work", "--until-idle", *OPENED, "--database", str(database), *arguments, at=database.parent, **more
    )
    assert ran.out == ""
    return ran


def due_in(database: Path) -> int:
    """Milliseconds until something is due."""
    found = backlog(database).due_in(time.time_ns() // 1_000_000)
    assert found is not None
    return found


class Working:
    """The command, running."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.log: Log = []

    def until(self, event: str) -> dict[str, Any]:
        """What is logged of an event, waited for."""
        assert self.process.stderr is not None
        while not (found := events(self.log, event)):
            line = self.process.stderr.readline()
            assert line, f"{event} was never logged: {self.log}"
            self.log.append(json.loads(line))
        return found[-1]

    def ask(self, how: signal.Signals) -> None:
        self.process.send_signal(how)

    def ended(self) -> int:
        return self.process.wait(PATIENCE_SECONDS)


@contextmanager
def working(database: Path, *arguments: str) -> Iterator[Working]:
    command = ("work", *OPENED, "--database", str(database), *arguments)
    with started(*command, at=database.parent) as process:
        running = Working(process)
        running.until("started")
        yield running
