"""What `run` can say, the live path does: the same attempts, statuses, dead letters and refusals."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ramdisk import ramdisk
from tests.simulation.agreement import URL_OF, History, told_by_run, told_by_the_live_path
from tests.strategies import DELTAS, OUTCOMES

ENDPOINTS = st.sampled_from(sorted(URL_OF))


def enqueue(endpoint_id: str, number: int, outcomes: list[int]) -> tuple[Any, ...]:
    return "enqueue", endpoint_id, f"{endpoint_id}-{number}", outcomes


OPERATIONS = st.one_of(
    *[st.builds(enqueue, ENDPOINTS, st.integers(0, 9), OUTCOMES)] * 3,
    st.tuples(st.just("enable"), ENDPOINTS, st.booleans()),
    st.tuples(st.just("disable"), ENDPOINTS),
    ENDPOINTS.map(lambda name: ("register", name, URL_OF[name])),
)
OPENING = [(0, ("register", name, URL_OF[name])) for name in "ba"]
HISTORIES = st.lists(st.tuples(DELTAS, OPERATIONS), max_size=30).map(lambda steps: [*OPENING, *steps])


def test_run_and_the_live_path_agree() -> None:
    with ramdisk() as folder:
        numbers = count()

        @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
        @given(HISTORIES)
        def agree(history: History) -> None:
            assert_agreement(history, folder / f"run-{next(numbers)}.db", folder)

        agree()


def assert_agreement(history: History, database: Path, folder: Path) -> None:
    simulated = told_by_run(history, database)
    live = told_by_the_live_path(history, folder)
    for step, one, other in zip(history, simulated, live, strict=True):
        assert one == other, step


def test_a_history_of_every_operation_agrees(tmp_path: Path) -> None:
    history: History = [
        *OPENING,
        (0, enqueue("a", 1, [503, 200])),
        (0, enqueue("a", 2, [404])),
        (0, enqueue("c", 1, [200])),
        (0, enqueue("b", 1, [0])),
        (30, enqueue("a", 2, [200])),
        (10, ("disable", "b")),
        (600, enqueue("b", 2, [200])),
        (0, ("enable", "b", False)),
        (5000, ("disable", "b")),
        (1, ("enable", "b", True)),
        (1, ("enable", "b", True)),
        (0, ("register", "a", URL_OF["a"])),
    ]
    assert_agreement(history, tmp_path / "run.db", tmp_path)
    last = told_by_run(history, tmp_path / "again.db")[-1]
    assert last.answer == "duplicate_endpoint"
    assert last.attempts["a"] == ["a-1 #1 503 retry at 30", "a-1 #2 200 delivered", "a-2 #1 404 dead"]
    assert last.statuses["c-1"] == "unknown_event"
    assert last.dead == {"a": ["a-2"], "b": [], "c": "unknown_endpoint"}
    assert last.statuses["b-1"]["attempts"] == 1
