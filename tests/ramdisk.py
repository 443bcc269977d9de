"""Folders in memory, for files whose disk is not what is tested: a busy one takes most of the time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")


@contextmanager
def ramdisk() -> Iterator[Path]:
    """A folder that is gone afterwards: in memory where the system has such a place, else a temporary one."""
    usable = SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK | os.X_OK)
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY if usable else None) as directory:
        yield Path(directory)
