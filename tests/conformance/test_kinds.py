"""Simulated and live histories never share a log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher import head, run
from dispatcher.core.entries import Kind
from dispatcher.core.operations import Register
from dispatcher.core.policy import PROMISED
from dispatcher.errors import WrongKind
from dispatcher.log.append import appending
from dispatcher.log.open import Database
from dispatcher.log.read import log_kind
from tests.notation import P, Q, R, S
from tests.ramdisk import ramdisk


@pytest.fixture
def file() -> Iterator[Path]:
    with ramdisk() as folder:
        yield folder / "log.db"


def _register(file: Path, kind: Kind, endpoint_id: str = "a") -> None:
    with Database(file) as database, appending(database, kind) as log:
        log.apply(Register(endpoint_id=endpoint_id, url="u", policy=PROMISED), 0)


def _kind(file: Path) -> Kind | None:
    with Database(file, "read") as database, database.read() as connection:
        return log_kind(connection)


@pytest.mark.parametrize("operations", [[], [R("b")], [P(0)], [S(0, "m")], [Q(0, "a", "m", [200])]])
def test_run_refuses_a_live_log_and_leaves_it_as_it_was(file: Path, operations: list[Any]) -> None:
    _register(file, "live")
    before = head(file)
    with pytest.raises(WrongKind) as caught:
        run(operations, file)
    assert "live" in str(caught.value)
    assert caught.value.remedy
    assert head(file) == before


def test_live_delivery_refuses_a_simulated_log_and_leaves_it_as_it_was(file: Path) -> None:
    run([R("a")], file)
    before = head(file)
    with pytest.raises(WrongKind, match="simulated"):
        _register(file, "live", "b")
    assert head(file) == before


def test_a_log_without_entries_is_of_neither_kind(file: Path) -> None:
    run([P(0), S(0, "m"), Q(0, "a", "m", [200])], file)
    assert _kind(file) is None
    _register(file, "live")
    assert _kind(file) == "live"


def test_a_log_of_the_same_kind_is_continued(file: Path) -> None:
    _register(file, "live")
    _register(file, "live", "b")
    assert head(file).startswith("3:")
