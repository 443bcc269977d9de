"""The README's commands, run as they are written, from a fresh checkout in a fresh environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "*.db", "build", "dist", "venv")


def _blocks(text: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def _set_up(readme: str) -> list[str]:
    """The blocks under "Set up": install and try it, install and test it."""
    return _blocks(readme.split("\n## Set up\n", 1)[1].split("\n## ", 1)[0])


@pytest.fixture(scope="module")
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a clone would hold, had all been committed; an sdist knows no git and is taken as it is."""
    copy = tmp_path / "checkout"
    if not (ROOT / ".git").exists():
        shutil.copytree(ROOT, copy, ignore=IGNORED)
        return copy
    # Whoever owns the files: a build machine often runs as somebody else.
    command = [
        "git",
        "-c",
        "safe.directory=*",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    listed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    return copy


def test_set_up_is_two_commands_one_to_try_it_and_one_to_test_it(readme: str) -> None:
    example, tests = _set_up(readme)
    assert "dispatcher" in example
    assert "pytest" in tests


def test_every_command_works_as_written(readme: str, checkout: Path, tmp_path: Path) -> None:
    """In order, in one folder. The one that runs these very tests is left to whoever runs them."""
    environment = _fresh_environment(tmp_path)
    _, runs_tests = _set_up(readme)
    for block in _blocks(readme):
        if block == runs_tests:
            continue
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=checkout,
            env=environment,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}"


def _fresh_environment(tmp_path: Path) -> dict[str, str]:
    """A new virtual environment and an empty home, and nothing that points at this checkout or a database."""
    (tmp_path / "home").mkdir()
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    ours = ("PYTHON", "PYTEST", "VIRTUAL_ENV", "DISPATCHER_", "COVERAGE")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
        "HOME": str(tmp_path / "home"),
        "VIRTUAL_ENV": str(venv),
        "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
