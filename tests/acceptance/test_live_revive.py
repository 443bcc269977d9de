"""Dead events that come back: by name, all of an endpoint, or by when they died; in bounded transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core.operations import Erase, Record
from dispatcher.errors import Refused
from dispatcher.live import Dispatcher
from dispatcher.live.revival import REVIVED_AT_ONCE
from dispatcher.log.commit import Commit, Committer
from dispatcher.log.views import ViewSource
from tests.acceptance.lively import MovedClock, bury, enqueue, rows, state

MANY = 5_000


def erase(live: Dispatcher, *event_ids: str) -> None:
    live._do(lambda commit: [commit.apply(Erase(f"default/shop/{event_id}")) for event_id in event_ids])


def graveyard(live: Dispatcher, count: int) -> list[str]:
    """An endpoint with so many dead events; the latest enqueued died first."""
    live.register("shop", "http://127.0.0.1:1/hook")
    ids = live.enqueue_many([("shop", n) for n in range(count)])
    bury(live, *reversed(ids))
    return ids


@contextmanager
def transactions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many entries each transaction of the block appended, of those that appended any."""
    sizes: list[int] = []
    commit: Any = Committer._commit

    def counting(committer: Committer, batch: Any) -> Any:
        def counted(work: Callable[[Commit], Any]) -> Callable[[Commit], Any]:
            def done(on: Commit) -> Any:
                before = on.state.position
                result = work(on)
                sizes.append(on.state.position - before)
                return result

            return done

        return commit(committer, [piece._replace(work=counted(piece.work)) for piece in batch])

    with monkeypatch.context() as patch:
        patch.setattr(Committer, "_commit", counting)
        yield sizes
    sizes[:] = [size for size in sizes if size]


def revived(database: Path) -> list[str]:
    found = rows(database, "SELECT delivery_id FROM dispatcher_log WHERE type = 'Revived' ORDER BY position")
    return [delivery_id.rpartition("/")[2] for (delivery_id,) in found]


def test_thousands_come_back_in_enqueue_order_in_transactions_of_bounded_size(
    live: Dispatcher, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = graveyard(live, MANY)
    with transactions(monkeypatch) as sizes:
        assert live.revive("shop", actor="someone") == MANY
    assert sizes == [REVIVED_AT_ONCE] * (MANY // REVIVED_AT_ONCE)
    assert revived(database) == ids
    assert live.dead_letters("shop") == []
    assert live.revive("shop") == 0


def test_no_transaction_loads_more_of_the_dead_than_it_revives(
    opened: Callable[[], Dispatcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened() as first:
        graveyard(first, 1_200)
    live = opened()
    loaded: list[int] = []
    dead_after: Any = ViewSource.dead_after

    def counted(*arguments: Any) -> Any:
        found = dead_after(*arguments)
        loaded.append(len(found))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(ViewSource, "dead_after", counted)
        patch.delattr(ViewSource, "dead")
        assert live.revive("shop") == 1_200
    assert loaded == [500, 500, 200]


def test_enabling_with_replay_is_bounded_too_and_says_so_last(
    live: Dispatcher, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = graveyard(live, 1_200)
    live.disable("shop")
    with transactions(monkeypatch) as sizes:
        assert live.enable("shop", replay_dead=True, actor="someone") == 1_200
    assert sizes == [500, 500, 200, 1]
    assert revived(database) == ids
    kinds = [kind for (kind,) in rows(database, "SELECT type FROM dispatcher_log ORDER BY position")]
    assert [kind for kind, _ in groupby(kinds)][-3:] == ["EndpointDisabled", "Revived", "EndpointEnabled"]
    assert {state(live, event_id) for event_id in ids[:3]} == {"pending"}


def test_what_is_erased_stays_dead_and_is_not_remembered_however_much_of_it_there_is(
    opened: Callable[[], Dispatcher],
) -> None:
    with opened() as first:
        ids = graveyard(first, 1_200)
        erased = ids[:1_100:2]
        erase(first, *erased)
    live = opened()
    assert live.revive("shop") == 1_200 - 550
    assert [letter["event_id"] for letter in reversed(live.dead_letters("shop"))] == erased
    known = live._do(lambda commit: set(commit.state.deliveries))
    assert known.isdisjoint(f"default/shop/{event_id}" for event_id in erased)


def test_what_dies_again_meanwhile_stays_dead(
    live: Dispatcher, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = graveyard(live, 1_200)
    enqueue(live, "late")
    apply = Commit.apply

    def dying(commit: Commit, operation: Any) -> Any:
        entries = apply(commit, operation)
        if type(operation).__name__ == "Revive" and entries:
            again = [str(entries[0].delivery_id)]
            if operation.after == 0:
                again.append("default/shop/late")
            for delivery_id in again:
                apply(commit, Record(delivery_id, 404, commit.now, outcome="permanent"))
        return entries

    with monkeypatch.context() as patch:
        patch.setattr(Commit, "apply", dying)
        assert live.revive("shop") == 1_200
    assert revived(database) == ids
    dead = [letter["event_id"] for letter in live.dead_letters("shop")]
    assert dead == [ids[0], "late", ids[500], ids[1000]]


def test_those_that_died_in_a_span_of_time_come_back(live: Dispatcher, clock: MovedClock) -> None:
    live.register("shop", "http://127.0.0.1:1/hook")
    enqueue(live, "a", "b", "c", "d")
    times = []
    for event_id in "dabc":
        clock.move(60)
        bury(live, event_id)
        times.append(clock.ms)
    assert live.revive("shop", died_since=times[1], died_until=times[3]) == 2
    assert [letter["event_id"] for letter in live.dead_letters("shop")] == ["d", "c"]
    assert live.revive("shop", died_until=times[0]) == 0, "the end is not in it"
    assert live.revive("shop", died_since=times[3] + 1) == 0
    clock.move(60)
    bury(live, "a")
    assert live.revive("shop", died_since=times[3] + 1, died_until=clock.ms + 1) == 1, (
        "the latest death counts"
    )
    assert live.revive("shop", died_until=clock.ms + 10**9) == 2
    assert live.dead_letters("shop") == []


def test_a_dead_letter_tells_when_it_died(live: Dispatcher, clock: MovedClock) -> None:
    live.register("shop", "http://127.0.0.1:1/hook")
    enqueue(live, "a")
    clock.move(60)
    bury(live, "a")
    assert [letter["died_at"] for letter in live.dead_letters("shop")] == [clock.ms]


def test_many_are_named_in_any_order_and_one_that_cannot_be_revived_refuses_all(
    live: Dispatcher, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = graveyard(live, 1_200)
    enqueue(live, "alive")
    for wrong, code in (("alive", "not_dead"), ("none", "unknown_event")):
        with pytest.raises(Refused) as refused:
            live.revive("shop", [*ids, wrong])
        assert refused.value.code == code
    assert revived(database) == []
    with transactions(monkeypatch) as sizes:
        assert live.revive("shop", [*reversed(ids), ids[0]]) == 1_200
    assert sizes == [500, 500, 200]
    assert revived(database) == ids


def test_names_and_a_span_of_time_are_not_given_together(live: Dispatcher) -> None:
    ids = graveyard(live, 1)
    with pytest.raises(Refused) as refused:
        live.revive("shop", ids, died_since=0)
    assert refused.value.code == "invalid_argument"
    assert state(live, ids[0]) == "dead"
