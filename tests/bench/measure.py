"""Measuring: sides in turns, calls in processes of their own, and the one line that a benchmark prints."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple, TypeVar

# Nothing heavy is imported here: on Linux the peak memory of a child begins at that of its parent.

ROOT = Path(__file__).parents[2]

Measured = TypeVar("Measured")


class Arguments(NamedTuple):
    rounds: int
    size: int
    others: dict[str, int]


def arguments(description: str | None, size: int, **others: int) -> Arguments:
    """What the command line says: how many rounds (5), how large (as the target says), and what else."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=size)
    for name, value in others.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    return Arguments(given.rounds, given.size, {name: getattr(given, name) for name in others})


def in_turns(sides: Mapping[str, Callable[[], Measured]], rounds: int) -> dict[str, list[Measured]]:
    """What each side measured: A B A B and so on. A first round of all sides is thrown away."""
    measured: dict[str, list[Measured]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            result = side()
            if number:
                measured[name].append(result)
    return measured


class Took(NamedTuple):
    """One call, by the clock and by the processor: where others keep the machine busy, the two part."""

    seconds: float
    cpu_seconds: float


def timed(call: Callable[[], object]) -> Took:
    """What one call took. Garbage is collected before it, not during it; its result is freed after it."""
    gc.collect()
    gc.disable()
    try:
        start, cpu_start = perf_counter(), process_time()
        result = call()
        took = Took(perf_counter() - start, process_time() - cpu_start)
    finally:
        gc.enable()
    del result
    return took


def in_child(request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of `python -m tests.bench.child` to a request."""
    return python("-m", "tests.bench.child", given=json.dumps(request))


def python(*command: str, given: str = "") -> dict[str, Any]:
    """The JSON object that a fresh Python process prints."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    ended = subprocess.run(
        [sys.executable, *command],
        input=given,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def durable(path: Path) -> None:
    """Have a file on disk, so that no later commit has to wait for it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def summary(values: Sequence[float]) -> dict[str, Any]:
    """The median, and every round."""
    return {"median": rounded(median(values)), "rounds": [rounded(value) for value in values]}


def middle(rounds: Sequence[Took]) -> float:
    """The median of the seconds."""
    return median(took.seconds for took in rounds)


def sides(**measured: Sequence[Took]) -> dict[str, Any]:
    """`<side>_seconds` and `<side>_cpu_seconds` of each side."""
    shown = {}
    for name, rounds in measured.items():
        shown[f"{name}_seconds"] = summary([took.seconds for took in rounds])
        shown[f"{name}_cpu_seconds"] = summary([took.cpu_seconds for took in rounds])
    return shown


def rounded(value: float) -> float:
    """Four significant digits: more would be noise."""
    return float(f"{value:.4g}")


def print_line(benchmark: str, target: str, measured: Mapping[str, Any]) -> None:
    """The one line of JSON."""
    machine = {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "cores": os.cpu_count(),
    }
    print(json.dumps({"benchmark": benchmark, "target": target, **measured, **machine}))


def median_of(answers: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(median(answer[name] for answer in answers))
