"""Folders in memory, for files whose disk is not what is tested: a busy one takes most of the time."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SHARED_MEMORY = Path("/dev/shm")


@contextmanager
def ramdisk() -> Iterator[Path]:
    """A folder that is gone afterwards: in memory where the system has such a place, else a temporary one."""
    usable = SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK | os.X_OK)
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY if usable else None) as directory:
        yield Path(directory)


@contextmanager
def small_disk(folder: Path, kib: int) -> Iterator[Path]:
    """A file system of its own within a folder; the test is skipped where none can be mounted."""
    place = folder / "disk"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode != 0:
        pytest.skip("only who may mount can have a disk of that size")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def occupy(disk: Path) -> Path:
    """A file that takes all that is left."""
    filler = disk / "filler"
    descriptor = os.open(filler, os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(descriptor, b"x" * 512)
    except OSError:
        return filler
    finally:
        os.close(descriptor)
