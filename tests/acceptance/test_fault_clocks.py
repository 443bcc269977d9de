"""Clocks that are set while a worker runs or between two runs, and a time zone far away."""

from __future__ import annotations

import json
import time
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path

from dispatcher.core.policy import RetryPolicy
from dispatcher.live import Dispatcher
from tests.acceptance.crowd import crowd_elsewhere
from tests.acceptance.elsewhere import Elsewhere
from tests.acceptance.lively import (
    OPEN,
    MovedClock,
    attempts,
    enqueue,
    eventually,
    eventually_is,
    rows,
)
from tests.acceptance.receiver import Receiver, Reply
from tests.acceptance.wall import DAY, WallClock, worker_by, worker_in_zone

SECOND = 10**9
EACH_SECOND = RetryPolicy(max_attempts=9, waits=(1,), retryable=((0, 0), (500, 599)))
# With its rules, so that no table of zones is needed.
AUCKLAND = "NZST-12NZDT,M9.5.0,M4.1.0/3"


def stop(worker: Elsewhere) -> None:
    worker.line.send("stop")
    assert worker.hear() == "stopped"
    assert worker.ended() == 0


def test_a_wall_clock_that_is_set_while_a_worker_runs_neither_hastens_nor_delays_retries(
    database: Path,
) -> None:
    wall = WallClock()
    with crowd_elsewhere() as crowd, Dispatcher(database, open_networks=OPEN) as live:
        live.register("shop", crowd.url("shop"), policy=EACH_SECOND)
        enqueue(live, "evt-f3")
        worker = worker_by(database, wall)
        assert worker.hear() == "ready"
        for count, ahead in enumerate((DAY, -DAY, 0), start=1):
            eventually(lambda: crowd.count() == count)  # noqa: B023
            wall.set(ahead)
        eventually_is(live, "evt-f3", "delivered", attempts=4)
        stop(worker)
        at = [came.at for came in crowd.came()]
    assert all(later - earlier >= SECOND for earlier, later in pairwise(at))
    recorded = [ts for (ts,) in rows(database, "SELECT ts FROM dispatcher_log ORDER BY position")]
    assert recorded[-1] - recorded[0] < DAY * 1000


def test_a_worker_that_begins_with_a_clock_a_day_off_goes_on_from_the_time_of_the_log(
    database: Path,
) -> None:
    """Behind it with a warning, and with the waits that were promised; ahead of it what waits is due."""
    wall = WallClock()
    with crowd_elsewhere() as crowd, Dispatcher(database, open_networks=OPEN) as live:
        live.register("shop", crowd.url("shop"), policy=EACH_SECOND)
        enqueue(live, "evt-f3")
        for count, (ahead, warns) in enumerate(((0, False), (-DAY, True), (DAY, False), (0, True)), start=1):
            wall.set(ahead)
            worker = worker_by(database, wall)
            said = [worker.hear()]
            if warns:
                said.append(worker.hear())
            assert "ready" in said
            assert [" behind the log" in one for one in said if one != "ready"] == [True] * warns
            end = "delivered" if count == 4 else "pending"
            eventually_is(live, "evt-f3", end, attempts=count)
            stop(worker)
        at = [came.at for came in crowd.came()]
    # The third was due at once, by a clock that ran a day ahead.
    assert at[1] - at[0] >= SECOND
    assert at[3] - at[2] >= SECOND
    recorded = [ts for (ts,) in rows(database, "SELECT ts FROM dispatcher_log ORDER BY position")]
    assert recorded == sorted(recorded)
    assert recorded[-1] - recorded[0] >= DAY * 1000


def test_a_retry_waits_as_long_in_every_time_zone(
    live: Dispatcher, receiver: Receiver, database: Path, clock: MovedClock
) -> None:
    live.register("shop", receiver.url)
    receiver.answer("one", 503, 200)
    enqueue(live, "one")
    worker = worker_in_zone(database, clock, AUCKLAND)
    assert worker.hear() in (12 * 3600, 13 * 3600)
    assert receiver.next().event == "one"
    eventually_is(live, "one", "pending", attempts=1)
    ((ts, data),) = rows(database, "SELECT ts, data FROM dispatcher_log WHERE type = 'AttemptRecorded'")
    assert json.loads(data)["retry_at"] == ts + 30_000
    assert live.status("shop", "one")["next_attempt_at"] == ts + 30_000
    clock.move(29.999)
    live.register("look", receiver.url)
    enqueue(live, "look", endpoint_id="look")
    assert receiver.next().event == "look"
    receiver.assert_quiet()
    clock.move(0.001)
    assert receiver.next().event == "one"
    eventually_is(live, "one", "delivered", attempts=2)
    stop(worker)


def test_the_date_of_a_retry_after_is_meant_in_gmt_in_every_time_zone(
    live: Dispatcher, receiver: Receiver, database: Path, clock: MovedClock
) -> None:
    live.register("shop", receiver.url)
    date = formatdate(time.time() + 1800, usegmt=True)
    receiver.answer("one", Reply(503, (("Retry-After", date),)))
    enqueue(live, "one")
    worker = worker_in_zone(database, clock, AUCKLAND)
    worker.hear()
    eventually_is(live, "one", "pending", attempts=1)
    stop(worker)
    assert attempts(live, "one") == [(503, None)]
    ((data,),) = rows(database, "SELECT data FROM dispatcher_log WHERE type = 'AttemptRecorded'")
    assert 1_700_000 <= json.loads(data)["retry_after"] <= 1_800_000
