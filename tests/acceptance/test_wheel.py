"""What is published: the sdist can be built and tested, and the wheel works away from the checkout."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tarfile
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher.log.schema import REVISION

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    (archive,) = _build("sdist", ROOT, folder)
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    (unpacked,) = (found for found in folder.iterdir() if found.is_dir())
    return unpacked


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist as an installer would."""
    (archive,) = _build("wheel", sdist, tmp_path_factory.mktemp("wheel"))
    return archive


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's contents; what it needs comes from this environment."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, "--target", folder, wheel], check=True)
    return folder


def test_the_sdist_holds_all_that_git_would_give(sdist: Path) -> None:
    for needed in ("pyproject.toml", "README.md", "alembic.ini", "migrations/env.py", "tests/__init__.py"):
        assert (sdist / needed).is_file()
    for folder in ("dispatcher", "migrations", "tests"):
        assert _files(sdist / folder) == _files(ROOT / folder)


def test_the_wheel_holds_the_package_its_examples_and_the_migrations(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {
        *(f"dispatcher/{name}" for name in _files(ROOT / "dispatcher")),
        *(f"dispatcher/migrations/{name}" for name in _files(ROOT / "migrations")),
    }
    assert "dispatcher/py.typed" in names
    assert any(name.startswith("dispatcher/migrations/versions/0001") for name in names)
    assert any(name.startswith("dispatcher/examples/") and name.endswith(".json") for name in names)


USE = """
import dispatcher
from dispatcher.log import migrate

print(dispatcher.__file__)
print(migrate.SCRIPTS)
print(dispatcher.run([["register", 0, "shop", "https://shop.example/hooks"]], "new.db"))
print(*migrate.upgrade("new.db"))
print(*migrate.upgrade("app.db"))
print(dispatcher.run([["register", 0, "shop", "https://shop.example/hooks"]], "app.db"))
print(dispatcher.head("new.db") == dispatcher.head("app.db"))
"""


def test_the_installed_wheel_makes_and_upgrades_databases(installed: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    answers = subprocess.run(
        [sys.executable, "-c", USE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert answers.stdout.splitlines() == [
        str(installed / "dispatcher" / "__init__.py"),
        str(installed / "dispatcher" / "migrations"),
        "[True]",
        f"{REVISION} {REVISION}",
        f"None {REVISION}",
        "[True]",
        "True",
    ]


def _build(kind: str, source: Path, folder: Path) -> list[Path]:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", folder],
        cwd=source,
        check=True,
        capture_output=True,
    )
    return [found for found in folder.iterdir() if found.is_file()]


def _files(folder: Path) -> set[str]:
    files = (found.relative_to(folder) for found in folder.rglob("*") if found.is_file())
    return {file.as_posix() for file in files if "__pycache__" not in file.parts}
