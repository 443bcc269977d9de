"""`run` against the naive model, on generated histories: in memory, on a file, split over several calls."""

from __future__ import annotations

import itertools
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatcher import head, run
from tests.model import Model
from tests.notation import S, exact, state
from tests.strategies import histories, json_like, nonsense

UNHURRIED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


STATES = ("pending", "held", "delivered", "dead")
STATUSES = "SELECT delivery_id, state, attempts, next_attempt_at FROM dispatcher_delivery_status"
ENQUEUED = "SELECT count(*) FROM dispatcher_log WHERE type = 'Enqueued'"


def _position(database: str) -> int:
    return int(head(database).partition(":")[0])


def _split(operations: list[Any], cuts: list[int]) -> list[list[Any]]:
    """The operations in consecutive calls, some of them perhaps empty."""
    edges = [0, *sorted(cut % (len(operations) + 1) for cut in cuts), len(operations)]
    return [operations[start:end] for start, end in itertools.pairwise(edges)]


@settings(UNHURRIED, max_examples=200)
@given(histories())
def test_run_in_memory_answers_what_the_model_answers(operations: list[Any]) -> None:
    assert exact(run(operations)) == exact(Model().run(operations))


@settings(UNHURRIED, max_examples=40)
@given(histories())
def test_run_on_a_file_answers_what_the_model_answers_and_counts_its_entries(operations: list[Any]) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as directory:
        database = str(Path(directory) / "log.db")
        assert exact(run(operations, database)) == exact(model.run(operations))
        assert _position(database) == model.position


@settings(UNHURRIED, max_examples=40)
@given(histories())
def test_a_file_shows_what_status_says_and_every_enqueued_event_in_one_state(operations: list[Any]) -> None:
    model = Model()
    model.run(operations)
    with tempfile.TemporaryDirectory() as directory:
        database = str(Path(directory) / "log.db")
        run(operations, database)
        with closing(sqlite3.connect(database)) as connection:
            shown = {event_id: state(*fields) for event_id, *fields in connection.execute(STATUSES)}
            (enqueued,) = connection.execute(ENQUEUED).fetchone()
    assert shown == {event.id: model.run([S(model.last_ts or 0, event.id)])[0] for event in model.events}
    counts = Counter(str(status["state"]) for status in shown.values())
    assert {"enqueued": enqueued, **{name: counts[name] for name in STATES}} == model.counts()


@settings(UNHURRIED, max_examples=40)
@given(histories(), st.lists(st.integers(0, 1000), min_size=1, max_size=4))
def test_a_history_split_over_several_calls_gives_equal_results_and_equal_heads(
    operations: list[Any], cuts: list[int]
) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as directory:
        whole, split = str(Path(directory) / "whole.db"), str(Path(directory) / "split.db")
        run(operations, whole)
        for call in _split(operations, cuts):
            assert exact(run(call, split)) == exact(model.run(call))
            assert _position(split) == model.position
        assert head(split) == head(whole)


@settings(UNHURRIED, max_examples=120)
@given(histories(nonsense()))
def test_whatever_an_operation_contains_run_answers_what_the_model_answers(operations: list[Any]) -> None:
    results = run(operations)
    assert len(results) == len(operations)
    assert exact(results) == exact(Model().run(operations))


@settings(UNHURRIED, max_examples=60)
@given(st.lists(json_like(), max_size=6))
def test_whatever_stands_for_an_operation_run_answers_once_for_each(operations: list[Any]) -> None:
    assert exact(run(operations)) == exact(Model().run(operations))


@settings(UNHURRIED, max_examples=20)
@given(histories(nonsense()), st.lists(st.integers(0, 1000), min_size=1, max_size=2))
def test_whatever_an_operation_contains_a_file_is_left_as_the_model_says(
    operations: list[Any], cuts: list[int]
) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as directory:
        database = str(Path(directory) / "log.db")
        for call in _split(operations, cuts):
            assert exact(run(call, database)) == exact(model.run(call))
        assert _position(database) == model.position
