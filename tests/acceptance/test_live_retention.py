"""Payloads that are kept for a time only, after their final outcome."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import Refused
from dispatcher.live import Dispatcher
from dispatcher.worker.housekeeping import Housekeeping
from dispatcher.worker.retention import apply_retention
from tests.acceptance.conftest import Command, Opened
from tests.acceptance.lively import MovedClock, bury, enqueue, entries, log_length, rows
from tests.acceptance.test_live_concurrency import race
from tests.acceptance.test_live_erasure import ONCE, URL, erased

DAY = 86_400


def keep_house(live: Dispatcher) -> None:
    Housekeeping(live._committer).round()


def test_a_payload_is_erased_so_long_after_its_final_outcome(
    live: Dispatcher, database: Path, clock: MovedClock
) -> None:
    live.register("shop", URL, policy=ONCE, keep_payloads=2)
    enqueue(live, "dead", "cancelled", "pending")
    clock.move(3 * DAY)
    bury(live, "dead")
    live.cancel("shop", "cancelled")
    clock.move(2 * DAY)
    keep_house(live)
    assert erased(database) == [], "not before the time is over"
    clock.move(0.001)
    keep_house(live)
    assert erased(database) == ["dead", "cancelled"]
    assert entries(live, "dead")[-1] == "PayloadErased"
    assert live.history("shop", "dead")[-1]["data"]["actor"] == "retention"
    length = log_length(database)
    keep_house(live)
    assert log_length(database) == length


def test_one_that_was_revived_is_kept_until_so_long_after_it_died_again(
    live: Dispatcher, database: Path, clock: MovedClock
) -> None:
    live.register("shop", URL, policy=ONCE, keep_payloads=1)
    enqueue(live, "one", "two")
    bury(live, "one", "two")
    clock.move(DAY)
    live.revive("shop", ["one", "two"])
    bury(live, "two")
    clock.move(1)
    keep_house(live)
    assert erased(database) == []
    clock.move(DAY)
    keep_house(live)
    assert erased(database) == ["two"]


def test_it_can_be_made_shorter_and_longer_and_taken_away(
    live: Dispatcher, database: Path, clock: MovedClock
) -> None:
    live.register("shop", URL, policy=ONCE)
    enqueue(live, "one", "two")
    bury(live, "one")
    clock.move(3 * DAY)
    keep_house(live)
    live.update("shop", keep_payloads=5)
    keep_house(live)
    assert erased(database) == []
    live.update("shop", keep_payloads=0.5)
    keep_house(live)
    assert erased(database) == ["one"]
    bury(live, "two")
    live.update("shop", keep_payloads="forever")
    clock.move(3 * DAY)
    keep_house(live)
    assert erased(database) == ["one"]


def test_many_are_erased_in_transactions_of_bounded_size_and_another_process_goes_on(
    live: Dispatcher, database: Path, clock: MovedClock, opened: Opened
) -> None:
    ids = [f"e{n}" for n in range(700)]
    live.register("shop", URL, policy=ONCE, keep_payloads=1)
    enqueue(live, *ids)
    bury(live, *ids)
    clock.move(DAY + 1)
    step = partial(apply_retention, endpoint_id="default/shop")
    assert live._committer.submit(step).result() is True
    assert live._committer.submit(step).result() is True
    some = len(erased(database))
    assert 0 < some < 500
    keep_house(opened())
    assert erased(database) == ids
    assert rows(database, "SELECT count(*) FROM dispatcher_unscrubbed") == [(0,)]


@pytest.mark.parametrize("wrong", [0, -1, "soon", True, float("nan"), float("inf"), 1e12])
def test_a_time_that_is_none_is_refused(live: Dispatcher, wrong: Any) -> None:
    live.register("shop", URL)
    with pytest.raises(Refused, match="keep_payloads"):
        live.update("shop", keep_payloads=wrong)
    with pytest.raises(Refused, match="keep_payloads"):
        live.register("other", URL, keep_payloads=wrong)


def test_it_is_set_and_shown_on_the_command_line(command: Command, database: Path) -> None:
    assert command("endpoint", "add", "shop", URL, "--keep-payloads", "30").code == 0
    assert ["keep_payloads", "30d"] in command("endpoint", "show", "shop").lines
    assert command("endpoint", "set", "shop", "--keep-payloads", "0.5").out == "shop changed: keep_payloads\n"
    assert command("endpoint", "show", "shop", "--json").json["keep_payloads"] == DAY * 500
    assert command("endpoint", "set", "shop", "--keep-payloads", "forever").code == 0
    assert ["keep_payloads", "forever"] in command("endpoint", "show", "shop").lines
    assert command("endpoint", "set", "shop", "--keep-payloads", "soon").code == 2


def test_two_workers_that_keep_house_at_once_erase_each_payload_once(
    live: Dispatcher, opened: Opened, database: Path, clock: MovedClock
) -> None:
    live.register("shop", URL, policy=ONCE, keep_payloads=1)
    ids = [f"evt-{n}" for n in range(300)]
    live.enqueue_many([{"endpoint_id": "shop", "payload": 1, "event_id": event_id} for event_id in ids])
    bury(live, *ids)
    clock.move(DAY + 1)
    both = (live, opened())
    race(len(both), lambda n: keep_house(both[n]))
    assert sorted(erased(database)) == sorted(ids)


def test_how_far_an_erasure_of_many_has_come_is_told(live: Dispatcher) -> None:
    ids = [f"evt-{n}" for n in range(1200)]
    for endpoint_id in ("shop", "other"):
        live.register(endpoint_id, URL)
        live.enqueue_many(
            [{"endpoint_id": endpoint_id, "payload": 1, "event_id": event_id} for event_id in ids]
        )
    seen: list[tuple[int, int]] = []
    assert (
        live.erase_tenant("default", progress=lambda done, total: seen.append((done, total))).erased == 2400
    )
    assert seen == sorted(seen)
    assert len(seen) > 4
    assert len({total for _, total in seen}) == 1
    assert seen[-1][0] == seen[-1][1]
