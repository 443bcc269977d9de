"""A fixed number of worlds in each run of the tests; `python -m tests.simulation` runs more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec

from dispatcher.core.decide import decide
from dispatcher.core.evolve import evolve
from dispatcher.core.operations import AnyOperation, Refusal
from dispatcher.core.state import State
from tests.simulation.mutations import MUTATIONS
from tests.simulation.seed import simulate

ROOT = Path(__file__).parents[2]
SEEDS = 300
"""About a minute and a half on two cores."""
CANCELLING = 7
"""A seed in which something is cancelled."""


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
    first, again = (simulate(7, tmp_path).world.story() for _ in range(2))
    assert first == again
    assert len(first) > 100
    assert simulate(8, tmp_path).world.story() != first


def test_a_story_holds_every_operation_as_the_rules_are_given_it(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in simulate(7, tmp_path).world.story()]
    told = [line for line in lines if "op" in line]
    state = State("live")
    for line in told:
        decided = decide(state, msgspec.convert(line, AnyOperation), line["ts"])
        if isinstance(decided, Refusal):
            assert decided.code == line["refused"]
            continue
        first = state.position + 1
        for entry in decided:
            evolve(state, entry)
        assert line["entries"] == list(range(first, state.position + 1))
    assert {"register", "enqueue", "record", "disable"} <= {line["op"] for line in told}
    assert all(line.keys() == {"at", "who", "what"} for line in lines if "op" not in line)


def test_what_is_left_out_of_a_world_does_not_happen(tmp_path: Path) -> None:
    whole = simulate(7, tmp_path).world
    happened = whole.chances.happened
    assert len(happened) == len(set(happened)) > 30
    some = happened[::5]
    partly = simulate(7, tmp_path, some).world
    assert set(partly.chances.happened) <= set(some)
    assert len(partly.story()) < len(whole.story())


def test_what_goes_wrong_comes_with_its_shortest_story_and_how_to_see_it_again() -> None:
    """A rule of the model that nothing keeps: no delivery is ever cancelled."""
    script = (
        "import sys; from unittest.mock import patch; from tests.simulation import __main__, invariants\n"
        "def wrong(*_): invariants.must(False, 'never cancelled:', 'this one')\n"
        "with patch.object(invariants.Checker, '_Cancelled', wrong): sys.exit(__main__.main())\n"
    )

    def told(*arguments: str) -> tuple[int, list[str]]:
        ended = subprocess.run(
            [sys.executable, "-c", script, "--seeds", "1", *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        report = ended.stderr.partition("--- seed ")[2]
        return ended.returncode, report.splitlines()

    code, (what, again, at_its_shortest, *story) = told("--from", str(CANCELLING))
    assert code == 1
    assert what == f"{CANCELLING}: Broken('never cancelled: this one')"
    assert again == f"again: PYTHONHASHSEED=0 python -m tests.simulation --seeds 1 --from {CANCELLING}"
    only = at_its_shortest.rpartition(" --only ")[2].strip("'")
    assert at_its_shortest == f"at its shortest: {again.removeprefix('again: ')} --only '{only}'"
    operations = [json.loads(line) for line in story[:-1] if '"op"' in line]
    # Of more than a hundred: something to cancel, what keeps it from being delivered, the asking for it.
    assert len(only.split(",")) <= 4
    assert [one["op"] for one in operations].count("enqueue") <= 5
    # Erasing what is pending cancels it, too.
    assert operations[-1]["op"] in ("cancel", "erase")
    assert told("--from", str(CANCELLING), "--only", only)[1][3:] == story


def test_each_known_mistake_is_found() -> None:
    ended = run_module("tests.simulation.mutations", "--most", "60")
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [one["mutation"] for one in found if one["seeds"] is None] == [], ended.stderr
    assert len(found) == len(MUTATIONS) >= 10
    assert ended.returncode == 0
