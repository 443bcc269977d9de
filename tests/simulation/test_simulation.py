"""A fixed number of worlds in each run of the tests; `python -m tests.simulation` runs more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.simulation.mutations import MUTATIONS
from tests.simulation.seed import simulate

ROOT = Path(__file__).parents[2]
SEEDS = 30


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_module("tests.simulation", *arguments)


def run_module(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_whatever_goes_wrong_every_invariant_holds() -> None:
    ended = run("--seeds", str(SEEDS))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith(f"{SEEDS} seeds")


def test_a_seed_is_the_same_world_each_time(tmp_path: Path) -> None:
    first, again = (simulate(7, tmp_path).story for _ in range(2))
    assert first == again
    assert len(first) > 100
    assert simulate(8, tmp_path).story != first


def test_what_goes_wrong_comes_with_its_story_and_how_to_see_it_again() -> None:
    """A rule of the model that nothing keeps: there are attempts."""
    script = (
        "import sys; from unittest.mock import patch; from tests.simulation import __main__, invariants\n"
        "def wrong(*_): invariants.must(False, 'no attempt at all')\n"
        "with patch.object(invariants.Checker, '_AttemptRecorded', wrong):\n"
        "    sys.argv = ['simulation', '--seeds', '1', '--from', '3']; sys.exit(__main__.main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "no attempt at all" in ended.stderr
    assert "again: PYTHONHASHSEED=0 python -m tests.simulation --from 3 --seeds 1" in ended.stderr
    assert " at the receiver: " in ended.stderr


def test_each_known_mistake_is_found() -> None:
    ended = run_module("tests.simulation.mutations", "--most", "60")
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [one["mutation"] for one in found if one["seeds"] is None] == [], ended.stderr
    assert len(found) == len(MUTATIONS) >= 10
    assert ended.returncode == 0
