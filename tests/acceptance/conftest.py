"""What the acceptance tests share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dispatcher import run
from tests.acceptance.cli import EXAMPLE


@pytest.fixture(scope="session")
def example_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the packaged example in it, to be copied."""
    database = tmp_path_factory.mktemp("example") / "dispatcher.db"
    run(EXAMPLE, str(database))
    return database


@pytest.fixture
def example(example_database: Path, tmp_path: Path) -> Path:
    """A folder whose dispatcher.db holds the packaged example."""
    shutil.copy(example_database, tmp_path)
    return tmp_path
