"""A worker in a process of its own that keeps nothing to itself."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from dispatcher.live import Dispatcher
from dispatcher.log.seal import Keyring
from tests.acceptance.elsewhere import Elsewhere
from tests.acceptance.lively import OPEN, MovedClock


def _work_aloud(
    database: Path, clock: MovedClock, keys: Sequence[bytes], heard: Path, line: Connection
) -> None:
    output = os.open(heard, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ["PYTHONASYNCIODEBUG"] = "1"
    logging.basicConfig(level=logging.DEBUG, force=True)
    keyring = Keyring(keys)
    with Dispatcher(database, keyring=keyring, clock=clock, open_networks=OPEN) as live, live.worker():
        line.send("ready")
        line.recv()
    line.send("stopped")


def worker_aloud(database: Path, clock: MovedClock, keys: Sequence[bytes], heard: Path) -> Elsewhere:
    """All that it prints and logs, down to the details of its libraries, is appended to the file `heard`."""
    return Elsewhere(_work_aloud, database, clock, keys, heard)
