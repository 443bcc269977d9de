"""What a worker does beside delivering: erase what was kept long enough, and scrub what was erased."""

from __future__ import annotations

import logging
from functools import partial

from dispatcher.errors import DispatcherError
from dispatcher.log import retention
from dispatcher.log.commit import Committer
from dispatcher.log.scrub import scrub, unscrubbed
from dispatcher.worker.retention import apply_retention

EVERY = 10_000
"""Milliseconds from one round to the next, by the log's clock."""
LOOK = 0.5
"""Seconds from one look at that clock to the next."""
MOST_STEPS = 20
"""Transactions for one endpoint in a round."""
SCRUB_WAIT = 0.2
"""Seconds: writers have to wait for as long."""
logger = logging.getLogger("dispatcher.worker")


class Housekeeping:
    """Rounds beside a worker, from `start` to `stop`. Others may do the same at the same time."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._latest: int | None = None
        self._steps = MOST_STEPS

    def start(self) -> None:
        self._rounds = self._committer.beside(self._look, LOOK, "dispatcher-housekeeping")

    def stop(self) -> None:
        """Do one last round, a short one, so that what was erased just now is scrubbed as well."""
        self._steps = 1
        self._rounds.stop()
        self._try_round()

    def _look(self) -> None:
        """Do a round if it is time. A clock that was put back delays none."""
        now = self._committer.now()
        if self._latest is None or not 0 <= now - self._latest < EVERY:
            self._latest = now
            self._try_round()

    def _try_round(self) -> None:
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
        steps = 0
        while endpoints and steps < self._steps:
            steps += 1
            endpoints = [
                endpoint_id
                for endpoint_id in endpoints
                if self._committer.submit(partial(apply_retention, endpoint_id=endpoint_id)).result()
            ]
        with database.read() as connection:
            erased = unscrubbed(connection)
        if erased:
            scrub(database, SCRUB_WAIT)
