"""Generated inputs of `run`: histories that mostly make sense, and values that make none."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests import hostile
from tests.notation import DL, URL, D, E, P, Q, S

MAX_STEPS = 30
LONG = 10_000_000
FRESH = "<fresh>"  # stands for an event id that the history hasn't used yet

ENDPOINTS = st.sampled_from(["a", "b", "c"])
EVENTS = st.sampled_from([f"evt-{number}" for number in range(1, 9)])
NEW_EVENTS = st.sampled_from([*[FRESH] * 9, "evt-1", "evt-2", "evt-3"])
DELTAS = st.sampled_from([0, 0, 0, 1, 29, 30, 30, 31, 60, 120, 240, 300, 300, 1000])
WAITS = [30, 60, 120, 240, 300]
FAILURES = [503, 500, 429, 408, 0]
OUTCOMES = st.one_of(
    st.lists(st.sampled_from([200, 404, 410, 301, 204, 100, *FAILURES]), min_size=1, max_size=4),
    st.lists(st.sampled_from(FAILURES), min_size=1, max_size=2),
    st.lists(st.sampled_from(FAILURES), min_size=1, max_size=6).map(lambda failures: [*failures, 200]),
    st.sampled_from([[404], [410, 200], [500, 404], [599], [100], [299]]),
)
BAD_OUTCOMES: st.SearchStrategy[Any] = st.sampled_from(
    [
        [],
        [600],
        [-1],
        [True],
        [200, False],
        [99],
        [200.0],
        ["200"],
        [None],
        (200,),
        "200",
        200,
        None,
        {},
        [[200]],
    ]
)
BAD_TEXTS: st.SearchStrategy[Any] = st.sampled_from(
    ["", "\0", "a\0", "\ud800", "a\udfff", "\ud83d\ude00", "x" * 257, "x" * 2049, None, 5, True, b"a", ["a"]]
)
ODD_TEXTS = st.sampled_from(
    ["A", " a", "a ", "é", "e\u0301", "\U0001f631", "\ufeff", "\uffff", "a\nb", "%", "_", "'", '"', "x" * 256]
)

# A step is a distance in time and what happens then, given the ts that was reached.
Step = tuple[int, Callable[[int], Any]]


def _step(operation: Callable[[int], Any]) -> st.SearchStrategy[Step]:
    return DELTAS.map(lambda delta: (delta, operation))


def _with(values: st.SearchStrategy[Any], build: Callable[[int, Any], Any]) -> st.SearchStrategy[Step]:
    """Steps whose operation needs drawn values."""
    return values.flatmap(lambda value: _step(lambda ts: build(ts, value)))


def _patience(endurance: int, earliness: int) -> list[Step]:
    """Retries awaited one after the other, each looked for a little early or late."""
    return [(max(0, wait + earliness), P) for wait in WAITS[:endurance]]


def _pause(endpoint_id: str, replay_dead: bool, delta: int, meanwhile: list[Step]) -> list[Step]:
    """An endpoint disabled and, after a while, enabled again."""
    closing: list[Step] = [(delta, lambda ts: E(ts, endpoint_id, replay_dead)), (0, P)]
    return [(0, lambda ts: D(ts, endpoint_id)), *meanwhile, *closing]


PROCESS = _step(P)
ENQUEUE = _with(st.tuples(ENDPOINTS, NEW_EVENTS, OUTCOMES), lambda ts, value: Q(ts, *value))
STATUS = _with(EVENTS, S)
DEAD_LETTERS = _with(st.lists(ENDPOINTS, max_size=1), lambda ts, value: DL(ts, *value))
DISABLE = _with(ENDPOINTS, D)
ENABLE = _with(st.tuples(ENDPOINTS, st.booleans()), lambda ts, value: E(ts, *value))
REGISTER = _with(ENDPOINTS, lambda ts, value: ["register", ts, value, URL])
READ = st.one_of(STATUS, DEAD_LETTERS)
VALID = st.one_of(PROCESS, PROCESS, PROCESS, ENQUEUE, ENQUEUE, READ, READ, DISABLE, ENABLE, REGISTER)
SEQUENCES = st.one_of(
    st.builds(_patience, st.integers(1, 5), st.sampled_from([0, 0, 0, -1, 1])),
    st.builds(_pause, ENDPOINTS, st.booleans(), DELTAS, st.lists(VALID, max_size=2)),
    st.lists(ENQUEUE, min_size=2, max_size=3),
)

BACKWARDS: st.SearchStrategy[Callable[[int], Any]] = st.sampled_from([lambda ts: ts - 1, lambda ts: ts - 400])
BAD_STAMPS: st.SearchStrategy[Callable[[int], Any]] = st.sampled_from(
    [
        lambda ts: True,
        lambda ts: float(ts),
        lambda ts: str(ts),
        lambda ts: None,
        lambda ts: 2**53 + 1,
        lambda ts: -(2**53) - 1,
        lambda ts: 2**64,
    ]
)


def _restamped(step: Step, stamp: Callable[[int], Any]) -> Step:
    """The same step, its operation dated otherwise."""
    delta, operation = step
    return delta, lambda ts: [operation(ts)[0], stamp(ts), *operation(ts)[2:]]


def _replaced(step: Step, place: int, value: Any) -> Step:
    """The same step with one part of its operation replaced; past the end, one part more."""
    delta, operation = step

    def replaced(ts: int) -> list[Any]:
        parts = operation(ts)
        return [*parts[:place], value, *parts[place + 1 :]]

    return delta, replaced


def _shortened(step: Step, length: int) -> Step:
    delta, operation = step
    return delta, lambda ts: operation(ts)[:length]


BAD_NAMES: st.SearchStrategy[Any] = st.sampled_from(["", "Process", "processes", "_append", None, 0, ["a"]])
PLACES = st.integers(0, 5)
INVALID = st.one_of(
    st.builds(_restamped, VALID, BAD_STAMPS),
    st.builds(_restamped, VALID, BACKWARDS),
    st.builds(_restamped, VALID, BACKWARDS),
    st.builds(_replaced, VALID, st.integers(2, 5), BAD_TEXTS),
    st.builds(_replaced, VALID, st.integers(2, 5), ODD_TEXTS),
    st.builds(_replaced, ENQUEUE, st.just(4), BAD_OUTCOMES),
    st.builds(_replaced, ENABLE, st.just(3), st.sampled_from([0, 1, None, "true", [True]])),
    st.builds(_replaced, VALID, st.just(0), BAD_NAMES),
    st.builds(_shortened, VALID, st.integers(0, 4)),
)


def _told(opening: list[Any], start: int, sequences: list[list[Step]]) -> list[Any]:
    """Steps laid out in time (some as tuples: they count too), then a look at what became of every event."""
    operations: list[Any] = [["register", start, endpoint_id, URL] for endpoint_id in opening]
    ts = start
    events = 0
    for delta, operation in itertools.chain.from_iterable(sequences):
        ts += delta
        parts = operation(ts)
        if type(parts) is list and any(part is FRESH for part in parts):
            events += 1
            parts = [f"evt-{events}" if part is FRESH else part for part in parts]
        operations.append(tuple(parts) if len(operations) % 7 == 3 and type(parts) is list else parts)
    return [*operations, *(S(ts, f"evt-{number}") for number in range(1, events + 1)), DL(ts)]


def histories(invalid: st.SearchStrategy[Step] = INVALID) -> st.SearchStrategy[list[Any]]:
    """Operations over few endpoints and events, one in ten or so `invalid`, in non-decreasing time."""
    step = st.integers(0, 5).flatmap(lambda number: invalid if number == 5 else VALID)
    single = step.map(lambda step: [step])
    sequences = st.one_of(single, single, SEQUENCES)
    return st.builds(
        _told,
        st.sampled_from([["a", "b", "c"], ["c", "a", "b"], ["b", "a"], []]),
        st.sampled_from([0, 0, 1_000, -40, 1_800_000_000]),
        st.sampled_from([0, 12]).flatmap(
            lambda least: st.lists(sequences, min_size=least, max_size=MAX_STEPS)
        ),
    )


def _strings() -> st.SearchStrategy[Any]:
    lengths = st.sampled_from([1, 256, 257, 2048, 2049, 70_000, LONG])
    return st.one_of(
        st.text(max_size=8),
        st.text(st.characters(categories=["Cs", "Cc", "Co", "Cn"]), max_size=4),
        st.builds(lambda letter, length: letter * length, st.sampled_from("aé\U0001f631"), lengths),
        st.sampled_from(["process", "register", "true", "None", "0", "nan"]),
    )


def _numbers() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.integers(),
        st.sampled_from([2**53, 2**53 + 1, -(2**53), 2**63, -(2**63) - 1, 2**64, 10**4000, -(10**4000)]),
        st.floats(),
        st.sampled_from([0.0, -0.0, 1.0, 30.0, float("nan"), float("inf"), 1e308]),
        st.complex_numbers(),
        st.decimals(),
    )


def _misbehaving() -> st.SearchStrategy[Any]:
    texts = st.sampled_from(["a", "evt-1", "process", "", "\ud800"])
    numbers = st.sampled_from([0, 30, 200, -1, 2**64])
    items = st.lists(st.sampled_from(["process", 0, 200, 503]), max_size=3)
    return st.one_of(
        st.builds(hostile.HostileStr, texts),
        st.builds(hostile.LyingStr, texts),
        st.builds(hostile.HostileInt, numbers),
        st.builds(hostile.LyingInt, numbers),
        st.builds(hostile.HostileFloat, st.floats()),
        st.builds(hostile.HostileList, items),
        st.builds(hostile.LyingList, items),
        st.builds(hostile.HostileTuple, items),
        st.builds(lambda: hostile.HostileDict()),
        st.builds(lambda: hostile.HostileObject()),
        st.builds(hostile.impostor, st.sampled_from([str, int, bool, list, tuple, dict, float, type(None)])),
        st.builds(hostile.classless),
        st.builds(hostile.endless),
    )


DISGUISES: st.SearchStrategy[dict[type, Callable[[Any], Any]]] = st.sampled_from(
    [
        {str: hostile.HostileStr, int: hostile.HostileInt, list: hostile.HostileList},
        {str: hostile.LyingStr, int: hostile.LyingInt, list: hostile.LyingList},
    ]
)


def _disguised(step: Step, disguises: dict[type, Callable[[Any], Any]]) -> Step:
    """The same step, its parts of subclasses that misbehave: it still means the same."""
    delta, operation = step

    def disguised(part: Any) -> Any:
        return disguises[type(part)](part) if type(part) in disguises and part is not FRESH else part

    return delta, lambda ts: [disguised(part) for part in operation(ts)]


def json_like() -> st.SearchStrategy[Any]:
    """Whatever may stand anywhere in an operation: JSON, what JSON lacks, and things that fight back."""
    scalars = st.one_of(
        st.none(),
        st.booleans(),
        _numbers(),
        _strings(),
        st.binary(max_size=4),
        _misbehaving(),
        st.sampled_from([..., object, len, datetime.UTC, frozenset(), range(3), memoryview(b"a")]),
    )
    keys = st.one_of(st.text(max_size=3), st.integers(), st.none())
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(inner, max_size=4).map(tuple),
            st.dictionaries(keys, inner, max_size=3),
        ),
        max_leaves=8,
    )


def nonsense() -> st.SearchStrategy[Step]:
    """Steps for `histories`: any value for an operation, or in the place of any one of its parts."""
    values = json_like()
    return st.one_of(
        values.map(lambda value: (0, lambda ts: value)),
        st.builds(_replaced, VALID, PLACES, values),
        st.builds(_disguised, VALID, DISGUISES),
        st.builds(_replaced, ENQUEUE, st.just(4), st.lists(values, min_size=1, max_size=2)),
    )
