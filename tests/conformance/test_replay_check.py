"""What the rules would not have decided is found, even where every hash was computed again."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dispatcher import head, run
from dispatcher.audit.finding import Finding
from dispatcher.audit.replay import check, replay
from dispatcher.audit.verify import verify
from dispatcher.core.operations import AnyOperation, Enqueue, Erase, Record, Register, Revive
from dispatcher.core.policy import PROMISED
from dispatcher.errors import LogCorrupt
from dispatcher.log.append import appending
from dispatcher.log.open import Database
from dispatcher.log.read import LogRow
from tests.forgery import make, rewrite, rows_of_log
from tests.notation import D, E, P, Q, R
from tests.ramdisk import ramdisk


@pytest.fixture
def file() -> Iterator[Path]:
    with ramdisk() as folder:
        yield folder / "log.db"


HISTORY = [
    R("a"),
    R("b"),
    R("c"),
    Q(0, "a", "m", [503, 200]),  # 5
    Q(0, "a", "n", [404]),  # 6
    Q(0, "b", "o", [0, 0, 200]),  # 7
    Q(0, "c", "p", [500]),  # 8
    P(0),  # 9 m retry at 30, 10 o retry at 30, 11 p retry at 30
    D(5, "c"),  # 12
    P(30),  # 13 m delivered, 14 n dead, 15 o retry at 90
    D(40, "a"),  # 16
    E(50, "a", True),  # 17 n revived, 18 enabled
    P(50),  # 19 n dead
    P(89),
    P(90),  # 20 o delivered
]


def _changed(position: int, **fields: Any) -> Callable[[list[LogRow]], list[LogRow]]:
    """The entry with other data; None takes a field away."""

    def change(rows: list[LogRow]) -> list[LogRow]:
        data = {**json.loads(rows[position - 1].data), **fields}
        text = json.dumps({n: v for n, v in data.items() if v is not None}, separators=(",", ":"))
        rows[position - 1] = rows[position - 1]._replace(data=text)
        return rows

    return change


def _moved(position: int, to: int) -> Callable[[list[LogRow]], list[LogRow]]:
    def change(rows: list[LogRow]) -> list[LogRow]:
        rows.insert(to - 1, rows.pop(position - 1))
        return rows

    return change


def _without(position: int) -> Callable[[list[LogRow]], list[LogRow]]:
    return lambda rows: rows[: position - 1] + rows[position:]


def _dated(position: int, ts: int) -> Callable[[list[LogRow]], list[LogRow]]:
    def change(rows: list[LogRow]) -> list[LogRow]:
        rows[position - 1] = rows[position - 1]._replace(ts=ts)
        return rows

    return change


def _inserted(position: int, **row: Any) -> Callable[[list[LogRow]], list[LogRow]]:
    """A copy of the entry before, with other columns."""

    def change(rows: list[LogRow]) -> list[LogRow]:
        rows.insert(position - 1, rows[position - 2]._replace(**row))
        return rows

    return change


def test_the_history_is_as_the_comments_say(file: Path) -> None:
    run(HISTORY, file)
    rows = rows_of_log(file)
    assert [row.position for row in rows if row.type == "AttemptRecorded"] == [9, 10, 11, 13, 14, 15, 19, 20]
    assert [rows[n - 1].type for n in (12, 16, 17, 18)] == [
        "EndpointDisabled",
        "EndpointDisabled",
        "Revived",
        "EndpointEnabled",
    ]
    assert check(file) is None


DECISIONS: dict[str, tuple[int, dict[str, Any]]] = {
    "a later retry": (9, {"retry_at": 31}),
    "an earlier retry": (15, {"retry_at": 60}),
    "dead instead of a retry": (10, {"decision": "dead", "retry_at": None}),
    "delivered instead of a retry": (10, {"decision": "delivered", "retry_at": None}),
    "a retry instead of death": (14, {"decision": "retry", "retry_at": 60}),
    "delivered instead of dead": (19, {"decision": "delivered"}),
    "another class": (14, {"class": "retryable"}),
    "another number": (15, {"attempt": 1}),
    "a status that its script does not name": (9, {"status": 500}),
    "success that its script does not name": (
        9,
        {"status": 200, "class": "success", "decision": "delivered", "retry_at": None},
    ),
    "a class that its status does not have": (
        10,
        {"class": "permanent", "decision": "dead", "retry_at": None},
    ),
}


@pytest.mark.parametrize("decision", DECISIONS)
def test_another_decision_is_found_where_it_stands(file: Path, decision: str) -> None:
    position, fields = DECISIONS[decision]
    run(HISTORY, file)
    rewrite(file, _changed(position, **fields))
    assert not any("hash" in finding.message for finding in verify(file).findings)
    assert _position(check(file)) == position


def _position(finding: Finding | None) -> int | None:
    return None if finding is None else finding.position


FACTS: dict[str, dict[str, Any]] = {
    "a class that came with the facts": {
        "class": "permanent",
        "judged": True,
        "decision": "dead",
        "retry_at": None,
    },
    "a hint": {"status": 503, "retry_after": 600, "retry_at": 600},
    "another start": {"started_at": -1},
    "a duration": {"duration": 5},
    "an error": {"error": "lost"},
    "a worker": {"worker": "host/1"},
}


@pytest.mark.parametrize("fact", FACTS)
def test_facts_that_no_simulated_attempt_has_are_found(file: Path, fact: str) -> None:
    run(HISTORY, file)
    rewrite(file, _changed(9, **FACTS[fact]))
    assert _position(check(file)) == 9


TURNS: dict[str, tuple[Callable[[list[LogRow]], list[LogRow]], int]] = {
    "two endpoints swapped": (_moved(10, 9), 9),
    "a follower before its head": (_moved(14, 13), 13),
    "before it was due": (_dated(13, 29), 13),
    "an attempt left out": (_without(13), 13),
    "a revived one before the pause ended": (_moved(19, 18), 18),
    "at an endpoint that is disabled": (_inserted(13, endpoint_id="c", delivery_id="p", ts=30), 13),
    "of an event that does not exist": (_inserted(10, delivery_id="z"), 10),
    "of an event that is over": (_inserted(21), 21),
    "under the name of another endpoint": (_inserted(10, endpoint_id="b"), 10),
}


@pytest.mark.parametrize("turn", TURNS)
def test_an_attempt_out_of_turn_is_found(file: Path, turn: str) -> None:
    change, position = TURNS[turn]
    run(HISTORY, file)
    rewrite(file, change)
    assert _position(check(file)) == position


OTHERS: dict[str, tuple[Callable[[list[LogRow]], list[LogRow]], int]] = {
    "a revival left out": (_without(17), 17),
    "a pause ended twice": (_inserted(19, ts=50), 19),
    "a pause begun twice": (_inserted(13, ts=5), 13),
    "an endpoint registered twice": (_inserted(5, endpoint_id="c"), 5),
    "an event enqueued twice": (_inserted(6), 6),
    "a log opened twice": (
        _inserted(3, type="LogOpened", endpoint_id=None, data='{"kind":"simulated","unit":"s"}'),
        3,
    ),
    "a log in other units": (_changed(1, unit="ms"), 1),
    "an unknown endpoint disabled": (_inserted(13, endpoint_id="z", ts=5), 13),
    "a script that no one may enqueue": (_changed(5, outcomes=[700]), 5),
    "time that went backwards": (_dated(16, 29), 16),
    "time that went backwards at the start": (_dated(2, -5), 2),
}


@pytest.mark.parametrize("other", OTHERS)
def test_an_entry_that_the_rules_refuse_is_found(file: Path, other: str) -> None:
    change, position = OTHERS[other]
    run(HISTORY, file)
    rewrite(file, change)
    assert _position(check(file)) == position


def test_only_the_first_that_differs_is_reported(file: Path) -> None:
    run(HISTORY, file)
    rewrite(file, lambda rows: _changed(15, retry_at=99)(_changed(10, retry_at=31)(rows)))
    finding = check(file)
    assert finding is not None
    assert finding.position == 10
    assert "retry at 31" in finding.message
    assert "by the rules: " in finding.message
    assert "retry at 30" in finding.message


def test_only_as_much_is_checked_as_is_asked_for(file: Path) -> None:
    run(HISTORY, file)
    rewrite(file, _changed(15, retry_at=99))
    assert check(file, until=14) is None
    assert _position(check(file, until=15)) == 15
    assert check(file, until_ts=29) is None
    assert _position(check(file, until_ts=30)) == 15


def test_the_large_histories_are_as_the_rules_decide(file: Path) -> None:
    make("simulated", file)
    assert check(file) is None
    make("live", file)
    assert check(file) is None


def test_replay_tells_every_attempt_as_run_did(file: Path) -> None:
    told = [line for result in run(HISTORY, file) if isinstance(result, list) for line in result]
    attempts = list(replay(file))
    assert [attempt.record for attempt in attempts] == told
    assert [attempt.position for attempt in attempts] == [9, 10, 11, 13, 14, 15, 19, 20]
    assert [attempt.endpoint_id for attempt in attempts] == list("abcaabab")
    assert [attempt.event_id for attempt in attempts] == list("mopmnono")
    assert [attempt.ts for attempt in attempts] == [0, 0, 0, 30, 30, 30, 50, 90]
    assert [attempt.record for attempt in replay(file, until=10)] == told[:2]
    assert [attempt.record for attempt in replay(file, until_ts=30)] == told[:6]


UNREADABLE = {
    "a type of another release": {"type": "Redirected"},
    "a version of another release": {"version": 2},
    "data that is no JSON": {"data": "{"},
    "data that its type does not allow": {"data": '{"attempt":"1"}'},
}


@pytest.mark.parametrize("unreadable", UNREADABLE)
def test_an_entry_that_cannot_be_read_stops_loudly_with_its_position(file: Path, unreadable: str) -> None:
    run(HISTORY, file)

    def change(rows: list[LogRow]) -> list[LogRow]:
        rows[12] = rows[12]._replace(**UNREADABLE[unreadable])  # type: ignore[arg-type]
        return rows

    rewrite(file, change)
    with pytest.raises(LogCorrupt) as caught:
        check(file)
    assert caught.value.position == 13
    with pytest.raises(LogCorrupt) as caught:
        list(replay(file))
    assert caught.value.position == 13
    assert len(list(replay(file, until=12))) == 3


def _live(file: Path, *operations: AnyOperation) -> None:
    with Database(file) as database, appending(database, "live") as log:
        log.apply(Register(endpoint_id="a", url="u", policy=PROMISED), 0)
        for delivery in ("m", "n"):
            log.apply(Enqueue("a", delivery), 0)
            log.apply(Record(delivery, 404, 0), 0)
        for operation in operations:
            log.apply(operation, 5)


def test_deliveries_revived_one_by_one_in_any_order_are_as_the_rules_decide(file: Path) -> None:
    _live(file, Revive("a", ("n",)), Revive("a", ("m",)))
    assert check(file) is None


@contextmanager
def _five_seconds_of_work() -> Iterator[None]:
    """TimeoutError after that much time of this process's own, however busy the machine is."""

    def stop(signum: int, frame: object) -> None:
        raise TimeoutError("it goes round in a circle")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, 5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def test_a_payload_erased_twice_is_found_and_the_check_ends(file: Path) -> None:
    _live(file, Erase("m"))
    last = len(rows_of_log(file))
    rewrite(file, lambda rows: [*rows, rows[-1]])
    with _five_seconds_of_work():
        assert _position(check(file)) == last + 1


def test_a_check_that_ends_within_an_operation_finds_nothing_wrong(tmp_path: Path) -> None:
    """Enabling with replay is several entries: up to any of them the log is as the rules made it."""
    file = tmp_path / "log.db"
    operations = [["register", 0, "a", "u"], *(["enqueue", 0, "a", f"m-{n}", [404]] for n in range(3))]
    run([*operations, ["process", 0], ["disable", 1, "a"], ["enable", 2, "a", True]], file)
    entries = int(head(file).partition(":")[0])
    assert [check(file, until=position) for position in range(entries + 1)] == [None] * (entries + 1)
