"""Entries go to the database some thousand at a time: where one portion ends never shows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dispatcher import head, run
from dispatcher.audit.verify import verify
from dispatcher.errors import StorageError
from dispatcher.log.writer import ROWS_PER_STEP
from tests.forgery import forge
from tests.notation import DL, D, E, P, Q, R, S, exact
from tests.ramdisk import ramdisk

EVENTS = 4_500


@pytest.fixture
def folder() -> Iterator[Path]:
    with ramdisk() as place:
        yield place


@cache
def _operations() -> list[Any]:
    """About 12,000 entries, of which the events of one endpoint die and are revived at once."""
    endpoints = ("a", "b", "c")
    operations: list[Any] = [R(endpoint) for endpoint in endpoints]
    operations += [Q(0, endpoints[n % 3], f"m-{n}", [404 if n % 3 else 503]) for n in range(EVENTS)]
    operations += [P(0), DL(0, "b"), D(1, "b"), E(2, "b", True), P(2), S(2, "m-1"), DL(2)]
    return operations


@cache
def _expected() -> tuple[str, list[Any]]:
    """The head and the results when each call is small."""
    with ramdisk() as place:
        file, results = place / "log.db", []
        operations = _operations()
        for start in range(0, len(operations), 997):
            results += run(operations[start : start + 997], file)
        return head(file), results


# Of entries: one for the opening, three registrations, then events.
@pytest.mark.parametrize("first", [ROWS_PER_STEP - 1, ROWS_PER_STEP, ROWS_PER_STEP + 1])
def test_calls_of_about_a_portion_are_what_small_calls_are(folder: Path, first: int) -> None:
    file, cut = folder / "log.db", first - 1
    results = run(_operations()[:cut], file)
    assert head(file).startswith(f"{first}:")
    assert verify(file).findings == []
    results += run(_operations()[cut:], file)
    assert (head(file), exact(results)) == (_expected()[0], exact(_expected()[1]))
    assert verify(file).findings == []


def test_a_call_of_many_portions_is_what_small_calls_are(folder: Path) -> None:
    file = folder / "log.db"
    results = run(_operations(), file)
    assert (head(file), exact(results)) == (_expected()[0], exact(_expected()[1]))
    assert verify(file, kept_head=_expected()[0]).findings == []


def test_what_fails_while_the_last_portion_is_written_fails_the_call(folder: Path) -> None:
    """It is written beside the caller, who must hear of it before anything is committed."""
    file = folder / "log.db"
    run([R("a")], file)
    kept = head(file)
    forge(file, "INSERT INTO dispatcher_tiles VALUES (8, 5, zeroblob(32))")
    with pytest.raises(StorageError):
        run([Q(0, "a", f"n-{number}", [200]) for number in range(ROWS_PER_STEP)], file)
    assert head(file) == kept
    assert run([S(0, "n-0")], file) == ["error: unknown event"]


def test_a_large_call_in_memory_answers_the_same() -> None:
    assert exact(run(_operations())) == exact(_expected()[1])
