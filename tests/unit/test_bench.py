"""Each benchmark runs as one command and prints one line of JSON. What it measures is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

# A size small enough for a moment, and what the line must hold besides.
BENCHMARKS = {
    "run_rate": (100, {"ratio", "run_seconds", "bare_seconds", "entries", "run_entries_per_second"}),
    "fold_rate": (
        100,
        {"ratio", "verify_ratio", "bare_seconds", "fold_seconds", "verify_seconds", "entries"},
    ),
    "continued_run": (10_000, {"ratio", "memory_ratio", "entries", "pending", "operations"}),
    "growth": (5_000, {"ratio", "short_seconds", "long_seconds", "operations", "entries"}),
    "first_example": (2, {"ratio", "example_seconds", "first_call_seconds", "heavy_modules"}),
    "enable": (20, {"enable", "deep", "wide"}),
}


def line_of(benchmark: str, size: int) -> dict[str, Any]:
    ended = subprocess.run(
        [sys.executable, "-m", f"tests.bench.{benchmark}", "--rounds", "1", "--size", str(size)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    (line,) = ended.stdout.splitlines()
    answer: dict[str, Any] = json.loads(line)
    return answer


def test_every_benchmark_is_run_here() -> None:
    modules = (ROOT / "tests/bench").glob("*.py")
    runnable = {module.stem for module in modules if 'print_line("' in module.read_text()}
    assert runnable == set(BENCHMARKS)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_benchmark_prints_one_line(benchmark: str) -> None:
    size, keys = BENCHMARKS[benchmark]
    line = line_of(benchmark, size)
    assert line["benchmark"] == benchmark
    assert line.keys() >= keys | {"target", "python"}
    for name, value in line.items():
        if name.endswith("_seconds"):
            assert (min(value["rounds"]) if isinstance(value, dict) else value) > 0
