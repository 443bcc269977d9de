"""Workers in processes whose wall clock, or time zone, is not this one's."""

from __future__ import annotations

import ctypes
import logging
import os
import time
from multiprocessing.connection import Connection
from pathlib import Path

from dispatcher.live import Dispatcher
from tests.acceptance.elsewhere import Elsewhere, Telling
from tests.acceptance.lively import OPEN, MovedClock, context

DAY = 24 * 3600


class WallClock:
    """A machine's wall clock, as far as its processes ask Python for it; it may be set at any time."""

    def __init__(self) -> None:
        self._seconds: ctypes.c_longlong = context().Value("q", 0, lock=False)

    def set(self, seconds: int) -> None:
        """So far ahead of the true one; negative for behind."""
        self._seconds.value = seconds

    def install(self) -> None:
        """For this process, for good."""
        true, true_ns = time.time, time.time_ns
        time.time = lambda: true() + self._seconds.value
        time.time_ns = lambda: true_ns() + self._seconds.value * 10**9


def _work_by(database: Path, wall: WallClock, line: Connection) -> None:
    wall.install()
    logging.getLogger("dispatcher").addHandler(Telling(line))
    with Dispatcher(database, open_networks=OPEN) as live, live.worker():
        line.send("ready")
        line.recv()
    line.send("stopped")


def worker_by(database: Path, wall: WallClock) -> Elsewhere:
    """A worker that goes by a wall clock, and tells what it warns of."""
    return Elsewhere(_work_by, database, wall)


def _work_in_zone(database: Path, clock: MovedClock, zone: str, line: Connection) -> None:
    os.environ["TZ"] = zone
    time.tzset()
    with Dispatcher(database, clock=clock, open_networks=OPEN) as live, live.worker():
        line.send(time.localtime().tm_gmtoff)
        line.recv()
    line.send("stopped")


def worker_in_zone(database: Path, clock: MovedClock, zone: str) -> Elsewhere:
    """A worker in a time zone, which says first by how many seconds that is off."""
    return Elsewhere(_work_in_zone, database, clock, zone)
