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
    "drain": (20, {"ratio", "dispatcher_seconds", "bare_seconds", "dispatcher_cpu_seconds", "deliveries"}),
    "enqueue_rate": (40, {"ratio", "many_ratio", "enqueue_seconds", "one_by_one_seconds", "events"}),
    "publish_rate": (20, {"ratio", "publish_seconds", "executemany_seconds", "endpoints", "events"}),
    "transactional_enqueue": (20, {"ratio", "alone_ratio", "insert_seconds", "enqueue_seconds"}),
    "latency": (
        2,
        {"here_p50_seconds", "here_p99_seconds", "elsewhere_p50_seconds", "elsewhere_p99_seconds"},
    ),
    "hanging": (20, {"ratio", "backlog_seconds", "alone_seconds", "hanging_requests", "others"}),
    "claim_time": (500, {"ratio", "long_claim_seconds", "short_claim_seconds", "claimed_at_once", "entries"}),
    "idle": (1, {"ratio", "idle_cpu_seconds"}),
    "peer_huey": (20, {"ratio", "dispatcher_seconds", "huey_seconds", "deliveries"}),
    "hostile": (20, {"ratio", "events", "alone_p99_seconds", "beside_p99_seconds"}),
}
# What has a size of its own besides.
SMALLER = {"hanging": ["--endpoints", "3"], "claim_time": ["--claims", "3"]}
# Measured against what is no dependency of this project.
PEERS = {"peer_huey": ("huey", "requests")}


def python(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)


def line_of(benchmark: str, size: int) -> dict[str, Any]:
    options = ["--rounds", "1", "--size", str(size), *SMALLER.get(benchmark, ())]
    ended = python("-m", f"tests.bench.{benchmark}", *options)
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


@pytest.mark.parametrize("benchmark", PEERS)
def test_a_benchmark_without_its_peer_says_what_to_install(benchmark: str) -> None:
    peers = PEERS[benchmark]
    ended = python(
        "-c",
        f"import runpy, sys; sys.modules.update(dict.fromkeys({peers}))\n"
        f"runpy.run_module('tests.bench.{benchmark}', run_name='__main__')",
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"{benchmark} measures {peers[0]}: pip install {' '.join(peers)}\n"
