"""`work`: the worker as a process."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from dispatcher.audit.standing import Backlog, backlog
from dispatcher.cli.stopping import Stop
from dispatcher.cli.work import Shift
from dispatcher.live import Dispatcher
from dispatcher.log.seal import Keyring
from tests.acceptance.cli import dispatcher
from tests.acceptance.lively import OPEN, attempts, enqueue, entries, eventually, rows, state
from tests.acceptance.receiver import Receiver
from tests.acceptance.working import ONCE, due_in, events, logged, work_until_idle, working


def test_it_delivers_in_order_until_nothing_is_due(
    live_now: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live_now.register("shop", receiver.url)
    enqueue(live_now, "one", "two", "three")
    ran = work_until_idle(database)
    assert ran.code == 0
    assert receiver.events == ["one", "two", "three"]
    assert [state(live_now, event) for event in receiver.events] == ["delivered"] * 3
    log = logged(ran.err)
    assert [line["event"] for line in log] == ["started", "stopping", "stopped"]
    expected = {"attempts": 3, "delivered": 3, "retried": 0, "dead": 0, "in_flight": 0, "backlog": 0}
    assert log[-1] == {**log[-1], **expected}


def test_until_idle_does_not_wait_for_what_is_due_later(
    live_now: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live_now.register("shop", receiver.url, policy=ONCE)
    receiver.answer("one", 503)
    enqueue(live_now, "one", "two")
    ran = work_until_idle(database)
    (stopped,) = events(logged(ran.err), "stopped")
    assert (ran.code, receiver.events, stopped["backlog"]) == (0, ["one"], 2)
    assert 0 < stopped["next_due_in"] <= 3600 * 1000


def test_until_idle_waits_for_requests_in_flight(
    live_now: Dispatcher, receiver: Receiver, database: Path
) -> None:
    looks = iter(range(100))

    class Unasked(Stop):
        """After a few looks the receiver answers."""

        def wait(self, seconds: float) -> bool:
            if next(looks) == 3:
                receiver.release()
            return super().wait(seconds)

    live_now.register("shop", receiver.url)
    enqueue(live_now, "one")
    with receiver.holding(), live_now.worker(grace=0) as worker:
        receiver.next()
        Shift(database=str(database), worker=worker, line=None).last(Unasked(), 0, until_idle=True)
    assert state(live_now, "one") == "delivered"


def test_the_backlog_is_what_enabled_endpoints_have_to_deliver(live_now: Dispatcher, database: Path) -> None:
    assert backlog(database)[:2] == (0, None)
    for endpoint in ("shop", "other"):
        live_now.register(endpoint, "http://127.0.0.1:1/hook")
        live_now.enqueue(endpoint, 1)
        live_now.enqueue(endpoint, 2)
    live_now.disable("other")
    found = backlog(database)
    assert (found.pending, found.next_due_at is not None) == (2, True)
    assert due_in(database) <= 0
    live_now.disable("shop")
    assert backlog(database)[:2] == (0, None)


def test_a_clock_behind_the_log_stands_at_its_last_entry() -> None:
    assert Backlog(1, next_due_at=1_000, ts=900).due_in(0) == 100
    assert Backlog(1, next_due_at=1_000, ts=900).due_in(990) == 10
    assert Backlog(0, next_due_at=None, ts=900).due_in(0) is None


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_end_it_claims_nothing_more_and_lets_requests_finish(
    live_now: Dispatcher, receiver: Receiver, database: Path, how: signal.Signals
) -> None:
    live_now.register("shop", receiver.url)
    with receiver.holding(), working(database) as worker:
        enqueue(live_now, "one", "two")
        receiver.next()
        worker.ask(how)
        stopping = worker.until("stopping")
        assert (stopping["because"], stopping["in_flight"]) == (how.name, 1)
        receiver.release()
        stopped = worker.until("stopped")
        assert worker.ended() == 0
    assert (stopped["delivered"], stopped["released"]) == (1, 0)
    assert [state(live_now, event) for event in ("one", "two")] == ["delivered", "pending"]
    receiver.assert_quiet()


def test_what_does_not_finish_within_the_grace_is_released_and_does_not_count(
    live_now: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live_now.register("shop", receiver.url)
    enqueue(live_now, "one")
    with receiver.holding(), working(database, "--grace", "0") as worker:
        receiver.next()
        worker.ask(signal.SIGTERM)
        assert worker.until("stopped")["released"] == 1
        assert worker.ended() == 0
    assert entries(live_now, "one") == ["Enqueued", "AttemptReleased"]
    assert live_now.status("shop", "one")["attempts"] == 0
    assert rows(database, "SELECT count(*) FROM dispatcher_claims") == [(0,)]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once_and_its_claim_stays_until_it_expires(
    live_now: Dispatcher, receiver: Receiver, database: Path, how: signal.Signals
) -> None:
    live_now.register("shop", receiver.url)
    enqueue(live_now, "one")
    with receiver.holding(), working(database, "--grace", "3600") as worker:
        receiver.next()
        worker.ask(signal.SIGTERM)
        worker.until("stopping")
        worker.ask(how)
        assert worker.ended() == -how
        assert entries(live_now, "one") == ["Enqueued"]
        assert rows(database, "SELECT count(*) FROM dispatcher_claims") == [(1,)]


def test_started_before_there_is_a_database_it_makes_one(receiver: Receiver, database: Path) -> None:
    with working(database) as worker:
        with Dispatcher(database, open_networks=OPEN) as live:
            live.register("shop", receiver.url)
            enqueue(live, "one")
            assert receiver.next().event == "one"
            eventually(lambda: state(live, "one") == "delivered")
        worker.ask(signal.SIGTERM)
        assert worker.ended() == 0


def test_networks_can_be_opened_by_the_environment(
    live_now: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live_now.register("shop", receiver.url)
    enqueue(live_now, "one")
    ran = dispatcher(
        "work", "--until-idle", "--database", str(database),
        at=database.parent, DISPATCHER_OPEN_NETWORKS="10.0.0.0/8,127.0.0.0/8",
    )  # fmt: skip
    assert (ran.code, attempts(live_now, "one")) == (0, [(200, None)])


@pytest.mark.parametrize("network", ["shop.example", "127.0.0.1/8"])
def test_a_network_that_is_none_is_wrong_usage(tmp_path: Path, network: str) -> None:
    ran = dispatcher("work", "--open-network", network, at=tmp_path)
    assert ran.code == 2
    assert list(tmp_path.iterdir()) == []


def test_its_name_and_concurrency_can_be_set(
    live_now: Dispatcher, receiver: Receiver, database: Path
) -> None:
    live_now.register("shop", receiver.url, order="none")
    enqueue(live_now, "one", "two", "three")
    assert work_until_idle(database, "--name", "night", "--concurrency", "1").code == 0
    assert receiver.most_at_once["/hook"] == 1
    attempt = live_now.history("shop", "one")[-1]
    assert attempt["data"]["worker"] == "night"


def test_another_master_key_stops_it_before_anything_is_sent(receiver: Receiver, database: Path) -> None:
    with Dispatcher(database, open_networks=OPEN, keyring=Keyring([bytes(32)])) as live:
        live.register("shop", receiver.url)
        enqueue(live, "one")
    for key, code in (("", "master_key_missing"), ("AAAA", "master_key_invalid")):
        ran = work_until_idle(database, **({"DISPATCHER_MASTER_KEY": key} if key else {}))
        (line,) = logged(ran.err)
        assert (ran.code, line["error"]["code"]) == (4, code)
    receiver.assert_quiet()


def test_a_simulated_log_is_refused(example: Path) -> None:
    ran = dispatcher("work", "--json", at=example)
    assert (ran.code, ran.error["code"]) == (2, "wrong_kind")
