"""What the end of a pause takes, and single operations where much is pending or many endpoints there are.

Enabling, with its dead revived, an endpoint with 50,000 events pending and 50,000 dead, on a file.
within_call: from the operation's beginning to the file's being closed, at the end of a call that has made
those events (so the time to write all of their rows is in it). apply: the operation alone there. continued: a
whole call of `run` with that one operation on a copy of a file that was written before.

Single operations: one enqueue, status, disable, enable and process (one attempt, two when one event dies) on
an endpoint with 200,000 events pending against one with 10 ("deep"), and beside 100,000 endpoints with an
event each against 100 ("wide"); within one call that goes on (without its writing at the end), and in a call
of `run` each on a file ("continued"). The garbage collector is paused within, as `run` does it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from dispatcher import run
from tests.bench.measure import arguments, durable, in_turns, print_line, rounded, summary
from tests.bench.steps import Steps, continuing, simulating
from tests.bench.workload import Operations, deep, endpoint, paused, wide

ENABLE = ["enable", 50, endpoint(0), True]
TURNS_PER_ROUND = 3


def enabling(folder: Path, pending: int, rounds: int) -> dict[str, Any]:
    """Seconds of the end of the pause."""
    operations = paused(pending)
    stored, copy = folder / "stored.db", folder / "measured.db"
    run(operations, stored)
    durable(stored)
    applied: list[float] = []

    def within_call() -> float:
        copy.unlink(missing_ok=True)
        with simulating(copy) as execute:
            for operation in operations:
                execute(operation)
            start = perf_counter()
            assert execute(ENABLE) is True
            applied.append(perf_counter() - start)
        return perf_counter() - start

    def continued() -> float:
        shutil.copyfile(stored, copy)
        durable(copy)
        start = perf_counter()
        assert run([ENABLE], copy) == [True]
        return perf_counter() - start

    measured = in_turns({"within_call": within_call, "continued": continued}, rounds)
    return {
        **{f"{side}_seconds": summary(seconds) for side, seconds in measured.items()},
        "apply_seconds": summary(applied[1:]),
        "pending": pending,
        "dead": pending,
        "entries": 3 * pending + 5,
    }


def single(
    folder: Path, history: Callable[[int], Operations], large: int, small: int, rounds: int
) -> dict[str, Any]:
    """Single operations on two histories: within one call, then a call each."""
    sides = {}
    for side, size in (("large", large), ("small", small)):
        sides[side] = (folder / f"{history.__name__}-{side}.db", history(size))
    steps = {side: Steps(operations) for side, (_, operations) in sides.items()}
    line: dict[str, Any] = {"large": large, "small": small}
    with ExitStack() as stack:
        going_on = {side: stack.enter_context(simulating(path)) for side, (path, _) in sides.items()}
        for side, (_, operations) in sides.items():
            for operation in operations:
                going_on[side](operation)
        line["within_call"] = taking_turns(steps, going_on, rounds)
    later = {side: continuing(path) for side, (path, _) in sides.items()}
    line["continued"] = taking_turns(steps, later, rounds)
    return line


def taking_turns(steps: dict[str, Steps], executes: dict[str, Any], rounds: int) -> dict[str, Any]:
    """For each kind of operation the ratio of the medians, and the medians in microseconds."""

    def turns(side: str) -> Callable[[], list[dict[str, float]]]:
        return lambda: [steps[side].turn(executes[side]) for _ in range(TURNS_PER_ROUND)]

    measured = in_turns({side: turns(side) for side in steps}, rounds)
    line = {}
    for kind in ("enqueue", "status", "disable", "enable", "process"):
        taken = {
            side: [median(turn[kind] for turn in turns) for turns in rounds_of]
            for side, rounds_of in measured.items()
        }
        line[kind] = {
            "ratio": rounded(median(taken["large"]) / median(taken["small"])),
            **{f"{side}_seconds": summary(values) for side, values in taken.items()},
        }
    return line


def main() -> None:
    given = arguments(__doc__, 50_000)
    size, rounds = given.size, given.rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        line = {
            "enable": enabling(folder, size, rounds),
            "deep": single(folder, deep, 4 * size, 10, rounds),
            "wide": single(folder, wide, 2 * size, min(100, size), rounds),
        }
    print_line("enable", "enable: within_call_seconds and continued_seconds < 3", line)


if __name__ == "__main__":
    main()
