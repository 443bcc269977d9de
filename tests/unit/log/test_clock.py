"""The time of live entries: the wall clock as it was, and the time since."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from dispatcher.log.clock import ProcessClock

MILLISECOND = 1_000_000
Set = Callable[[int, int], None]


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Set:
    """Sets the wall clock and the time since the machine's start, in milliseconds."""

    def at(wall: int, since: int) -> None:
        monkeypatch.setattr("dispatcher.log.clock.time.time_ns", lambda: wall * MILLISECOND)
        monkeypatch.setattr("dispatcher.log.clock.time.monotonic_ns", lambda: since * MILLISECOND)

    return at


def test_it_begins_with_the_wall_clock_and_goes_on_with_the_time_since(clocks: Set) -> None:
    clock = ProcessClock()
    clocks(1000, 10)
    assert clock.now(None) == 1000
    clocks(1005, 15)
    assert clock.now(1000) == 1005


@pytest.mark.parametrize("wall", [0, 10**12], ids=["back", "ahead"])
def test_a_step_of_the_wall_clock_changes_nothing(wall: int, clocks: Set) -> None:
    clock = ProcessClock()
    clocks(1000, 10)
    clock.now(None)
    clocks(wall, 17)
    assert clock.now(1000) == 1007


def test_another_processs_later_entry_raises_it_for_good(clocks: Set) -> None:
    clock = ProcessClock()
    clocks(1000, 10)
    assert clock.now(5000) == 5000
    clocks(1001, 11)
    assert clock.now(5000) == 5001
    assert clock.now(None) == 5001


def test_it_never_goes_back(clocks: Set) -> None:
    clock = ProcessClock()
    told: list[int] = []
    for n, (wall, last) in enumerate([(1000, None), (3, 900), (2000, 1500), (1, 1400), (5, None)]):
        clocks(wall, n)
        told.append(clock.now(last))
        assert last is None or told[-1] >= last
    assert told == sorted(told)


def test_a_clock_behind_the_log_is_said_once_when_a_process_begins(
    clocks: Set, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ProcessClock()
    clocks(1000, 10)
    with caplog.at_level(logging.WARNING, "dispatcher.log"):
        clock.now(5000)
        clock.now(9000)
    assert [record.getMessage() for record in caplog.records] == ["the clock is 4000 ms behind the log"]


def test_it_counts_in_milliseconds_since_1970() -> None:
    assert 1_750_000_000_000 < ProcessClock().now(None) < 10_000_000_000_000
