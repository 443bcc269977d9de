"""Single operations on a history that is going on, one of each kind in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from dispatcher import run
from dispatcher.log.append import appending
from dispatcher.log.collector import paused_collector
from dispatcher.log.open import Database
from dispatcher.simulate import Simulation
from tests.bench.workload import Operations, endpoint

Execute = Callable[[object], Any]


@contextmanager
def simulating(path: Path) -> Iterator[Execute]:
    """What `run` does around its operations and with each, one at a time; committed when the block ends."""
    with Database(path) as opened, appending(opened, "simulated") as log, paused_collector():
        yield Simulation(log).execute


def continuing(path: Path) -> Execute:
    """Each operation in a call of `run` of its own."""
    return lambda operation: run([operation], path)[0]


class Steps:
    """Operations on endpoint 0 that leave it as it was, but for one more event a turn. Time stands still."""

    def __init__(self, operations: Operations) -> None:
        self._ts = operations[-1][1]
        self._turns = 0

    def turn(self, execute: Execute) -> dict[str, float]:
        """Seconds of each. There is always something to attempt: the end of a pause makes it due."""
        self._turns += 1
        ts, event = self._ts, f"step-{self._turns}"
        steps: list[list[Any]] = [
            ["enqueue", ts, endpoint(0), event, [200]],
            ["status", ts, event],
            ["disable", ts, endpoint(0)],
            ["enable", ts, endpoint(0), False],
            ["process", ts],
        ]
        seconds = {}
        for step in steps:
            start = perf_counter()
            result = execute(step)
            seconds[step[0]] = perf_counter() - start
            assert not str(result).startswith("error"), (step, result)
        assert 1 <= len(result) <= 2, result
        return seconds
