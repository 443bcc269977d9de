"""What a worker does beside delivering: erase what was kept long enough, and scrub what was erased."""

from __future__ import annotations

import logging
import threading
from functools import partial

from dispatcher.errors import DispatcherError
from dispatcher.log import retention
from dispatcher.log.commit import Committer
from dispatcher.log.scrub import scrub, unscrubbed
from dispatcher.worker.retention import apply_retention

EVERY = 10_000
"""Milliseconds from one round to the next."""
MOST_STEPS = 20
"""Transactions for one endpoint in a round."""
SCRUB_WAIT = 0.2
"""Seconds: writers have to wait for as long."""
logger = logging.getLogger("dispatcher.worker")


class Housekeeping:
    """Rounds in a thread of its own, from `start` to `stop`. Others may do the same at the same time."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._latest: int | None = None
        self._wanted = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="dispatcher-housekeeping", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Do one last round, so that what was erased just now is scrubbed as well."""
        self._stopping = True
        self._wanted.set()
        self._thread.join()

    def look(self) -> None:
        """Have a round done if it is time. A clock that was put back delays none."""
        now = self._committer.now()
        if self._latest is None or not 0 <= now - self._latest < EVERY:
            self._latest = now
            self._wanted.set()

    def _run(self) -> None:
        last = False
        while not last:
            self._wanted.wait()
            self._wanted.clear()
            last = self._stopping
            try:
                self.round()
            except DispatcherError as error:
                logger.error("housekeeping has to wait: %s. %s", error, error.remedy)
            except Exception:
                logger.exception("housekeeping failed; it is tried again")

    def round(self) -> None:
        """Writes nothing when there is nothing to do."""
        database = self._committer.database
        with database.read() as connection:
            endpoints = retention.due(connection, self._committer.now())
        for _ in range(MOST_STEPS):
            endpoints = [
                endpoint_id
                for endpoint_id in endpoints
                if self._committer.submit(partial(apply_retention, endpoint_id=endpoint_id)).result()
            ]
        with database.read() as connection:
            erased = unscrubbed(connection)
        if erased:
            scrub(database, SCRUB_WAIT)
