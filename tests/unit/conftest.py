"""Where the databases of these tests lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ramdisk import ramdisk


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    """Not on a disk: that would take most of the time, and is not what is tested."""
    with ramdisk() as folder:
        yield folder
