"""When a worker looks for work, when it does not, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dispatcher.delivery.transport import Answer, Request, Transport
from dispatcher.errors import MasterKeyMissing
from dispatcher.live import Dispatcher
from dispatcher.log.commit import Committer
from dispatcher.log.seal import Keyring
from dispatcher.log.watch import Watch
from dispatcher.testing import Delayed, ManualClock, ScriptedTransport
from dispatcher.worker.worker import MANY, Figures, Worker
from tests.acceptance.lively import MovedClock, Prompted, eventually, locked, rows, state

URL = "https://shop.example/hook"
FIRST, SECOND = (bytes([n]) * 32 for n in (1, 2))


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def file(memory_folder: Path) -> Path:
    return memory_folder / "live.db"


class Looks:
    """Counts how often a worker looked whether others had written, and the transactions it asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks = self.turns = 0
        changed, submit = Watch.changed, Committer.submit

        def looking(watch: Watch) -> bool:
            self.looks += 1
            return changed(watch)

        def submitting(committer: Committer, *arguments: Any) -> Any:
            self.turns += 1
            return submit(committer, *arguments)

        monkeypatch.setattr(Watch, "changed", looking)
        monkeypatch.setattr(Committer, "submit", submitting)

    def pass_by(self, count: int = 5) -> None:
        """Until the worker has looked so many more times."""
        before = self.looks
        eventually(lambda: self.looks >= before + count)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(monkeypatch)


@contextmanager
def delivering(
    file: Path, transport: Transport, clock: MovedClock, **options: Any
) -> Iterator[tuple[Dispatcher, Worker]]:
    with Dispatcher(file, clock=clock, transport=transport) as live:
        live.register("shop", URL)
        with live.worker(poll=0.005, **options) as worker:
            yield live, worker


def test_an_idle_worker_asks_for_no_transaction(file: Path, clock: MovedClock, looks: Looks) -> None:
    with delivering(file, ScriptedTransport(), clock) as (live, _):
        live.enqueue("shop", 1, event_id="one")
        eventually(lambda: state(live, "one") == "delivered")
        looks.pass_by(3)
        before = looks.turns
        looks.pass_by()
        assert looks.turns == before


def test_a_worker_waits_for_the_next_due_time_without_transactions(
    file: Path, clock: MovedClock, looks: Looks
) -> None:
    transport = ScriptedTransport()
    transport.script("one", [503, 200])
    with delivering(file, transport, clock) as (live, worker):
        live.enqueue("shop", 1, event_id="one")
        eventually(lambda: worker.figures().retried == 1)
        looks.pass_by(3)
        before = looks.turns
        clock.move(29.999)
        looks.pass_by()
        assert (looks.turns, len(transport.requests)) == (before, 1)
        clock.move(0.001)
        eventually(lambda: state(live, "one") == "delivered")


def test_another_processs_entries_wake_a_worker(file: Path, clock: MovedClock, looks: Looks) -> None:
    with delivering(file, ScriptedTransport(), clock) as (live, _), Dispatcher(file, clock=clock) as other:
        looks.pass_by(3)
        other.enqueue("shop", 1, event_id="one")
        eventually(lambda: state(live, "one") == "delivered")


def test_a_full_worker_asks_for_no_transaction_however_much_comes(
    file: Path, clock: MovedClock, looks: Looks
) -> None:
    transport = Prompted()
    with delivering(file, transport, clock, concurrency=1) as (live, worker):
        live.enqueue("shop", 1, event_id="first")
        assert transport.asked.wait(20)
        eventually(lambda: worker.figures().in_flight == 1)
        before = looks.turns
        for n in range(10):
            live.enqueue("shop", 1, event_id=f"e{n}")
        assert looks.turns == before + 10
        transport.may_answer.set()
        eventually(lambda: worker.figures().delivered == 11)


def test_what_cannot_be_recorded_now_is_recorded_later_and_not_sent_again(
    file: Path, clock: MovedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport, troubled = Prompted(), threading.Event()
    turn = Worker._turn

    async def noting(worker: Worker, limit: int) -> Any:
        took = await turn(worker, limit)
        if took is None:
            troubled.set()
        return took

    monkeypatch.setattr(Worker, "_turn", noting)
    monkeypatch.setattr("dispatcher.worker.worker.TROUBLED_PAUSE", 0.01)
    monkeypatch.setattr("dispatcher.log.open.BUSY_WAIT_SECONDS", 0)
    with delivering(file, transport, clock) as (live, _):
        live.enqueue("shop", 1, event_id="one")
        assert transport.asked.wait(20)
        with locked(file):
            transport.may_answer.set()
            assert troubled.wait(20)
        eventually(lambda: state(live, "one") == "delivered")
        assert live.status("shop", "one")["attempts"] == 1


@pytest.mark.parametrize(("others", "waits"), [(MANY - 2, False), (MANY - 1, True)])
def test_an_answer_waits_a_moment_for_those_of_many_other_requests(
    file: Path, clock: MovedClock, monkeypatch: pytest.MonkeyPatch, others: int, waits: bool
) -> None:
    gathering = threading.Event()
    wait = Worker._wait

    async def noting(worker: Worker, seconds: float | None) -> None:
        if seconds is not None and seconds > 1000:
            gathering.set()
        await wait(worker, seconds)

    monkeypatch.setattr(Worker, "_wait", noting)
    monkeypatch.setattr("dispatcher.worker.worker.GATHERING", 3600)
    held = ManualClock()
    transport = ScriptedTransport(Delayed(1, Answer(status=200)), held)
    transport.script("first", [200])
    with delivering(file, transport, clock) as (live, worker):
        live.update("shop", order="none", concurrency=100)
        live.enqueue_many([("shop", n) for n in range(others)])
        eventually(lambda: len(transport.requests) == others)
        live.enqueue("shop", 1, event_id="first")
        if waits:
            assert gathering.wait(20)
            assert worker.figures().attempts == 0
        else:
            eventually(lambda: worker.figures().attempts == 1)
        assert worker._loop is not None
        worker._loop.call_soon_threadsafe(held.advance, 1)
        eventually(lambda: worker.figures().attempts == others + 1)


def test_figures_count_what_became_of_attempts(file: Path, clock: MovedClock) -> None:
    transport = ScriptedTransport()
    transport.script("late", [503, 200])
    transport.script("dead", [404])
    with delivering(file, transport, clock) as (live, worker):
        assert worker.figures() == Figures()
        for event_id in ("dead", "good", "late"):
            live.enqueue("shop", 1, event_id=event_id)
        eventually(lambda: worker.figures().retried == 1)
        clock.move(30)
        eventually(lambda: worker.figures() == Figures(delivered=2, retried=1, dead=1))
        assert worker.figures().attempts == 4


def test_a_claim_that_another_worker_let_expire_is_counted_as_lost(file: Path, clock: MovedClock) -> None:
    with Dispatcher(file, clock=clock) as live:
        live.register("shop", URL)
        live.enqueue("shop", 1, event_id="one")
        with live._database.write() as connection:
            connection.exec_driver_sql(
                "INSERT INTO dispatcher_claims"
                " VALUES (1, 'default/shop', '', 'default/shop/one', 3, 1, 'other', ?, ?)",
                (clock.ms, clock.ms + 40_000),
            )
    with Dispatcher(file, clock=clock, transport=ScriptedTransport()) as live, live.worker() as worker:
        clock.move(40)
        assert worker.figures().lost == 0
        clock.move(0.001)
        eventually(lambda: worker.figures() == Figures(retried=1, lost=1))


def test_an_endpoint_under_a_missing_master_key_stops_the_worker_and_spends_no_attempt(
    file: Path, clock: MovedClock, caplog: pytest.LogCaptureFixture
) -> None:
    with Dispatcher(file, clock=clock, keyring=Keyring([FIRST])) as live:
        live.register("first", URL)
    with Dispatcher(file, clock=clock, keyring=Keyring([SECOND, FIRST])) as live:
        live.register("shop", URL)
        live.enqueue("shop", 1, event_id="one")
    transport = ScriptedTransport()
    with Dispatcher(file, clock=clock, keyring=Keyring([FIRST]), transport=transport) as live:
        with pytest.raises(MasterKeyMissing), live.worker() as worker:
            assert worker.join(20)
        assert isinstance(worker.failure, MasterKeyMissing)
        assert live.status("shop", "one")["attempts"] == 0
        assert rows(file, "SELECT count(*) FROM dispatcher_claims") == [(0,)]
    assert transport.requests == []
    assert "DISPATCHER_MASTER_KEY" in caplog.text


class Faulty:
    """A transport that breaks its promise."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    async def send(self, request: Request) -> Answer:
        self.asked.set()
        raise RuntimeError("a fault of ours")

    async def close(self) -> None:
        """There is nothing to let go of."""


def test_a_fault_of_ours_costs_one_attempt_and_not_the_worker(
    file: Path, clock: MovedClock, caplog: pytest.LogCaptureFixture
) -> None:
    transport = Faulty()
    with delivering(file, transport, clock) as (live, worker):
        live.enqueue("shop", 1, event_id="one")
        assert transport.asked.wait(20)
        eventually(lambda: worker.figures().in_flight == 0)
        clock.move(41)
        eventually(lambda: worker.figures().lost == 1)
        assert live.history("shop", "one")[-1]["data"]["error"] == "lost"
    assert "a fault of ours" in caplog.text


def test_a_stopped_worker_has_recorded_everything(file: Path, clock: MovedClock) -> None:
    with Dispatcher(file, clock=clock, transport=ScriptedTransport()) as live:
        live.register("shop", URL)
        for n in range(50):
            live.enqueue("shop", n, event_id=f"e{n}")
        with live.worker() as worker:
            eventually(lambda: worker.figures().delivered > 3)
        assert not worker.figures().in_flight
        counts = rows(file, "SELECT delivered FROM dispatcher_endpoints")
        assert counts == [(worker.figures().delivered,)]
        assert rows(file, "SELECT count(*) FROM dispatcher_claims") == [(0,)]
