"""A large log is checked by two processes side by side: they find what one would."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher import head, run
from dispatcher.audit import verify as verifying
from dispatcher.audit.tree import check_tree
from dispatcher.audit.verify import Verification, verify
from dispatcher.errors import StorageError
from dispatcher.log import read
from dispatcher.log.open import Database
from tests.forgery import forge, make, rewrite
from tests.notation import Q
from tests.ramdisk import ramdisk


@pytest.fixture
def file() -> Iterator[Path]:
    with ramdisk() as folder:
        make("simulated", folder / "log.db")
        yield folder / "log.db"


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any log is large enough."""
    monkeypatch.setattr(verifying, "ENTRIES_WORTH_A_PROCESS", 1)


def _alone(file: Path, kept: str | None = None) -> Verification:
    return verify(file, kept_head=kept)


def _beside(file: Path, kept: str | None = None) -> Verification:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(verifying, "ENTRIES_WORTH_A_PROCESS", 1)
        return verify(file, kept_head=kept)


DAMAGES = {
    "none": None,
    "an entry": "UPDATE dispatcher_log SET data = '{}' WHERE position = 300",
    "a hash": "UPDATE dispatcher_log SET hash = x'00' WHERE position = 300",
    "a tile": "UPDATE dispatcher_tiles SET hash = zeroblob(32) WHERE number = 1",
    "a tile too many": "INSERT INTO dispatcher_tiles VALUES (8, 9, zeroblob(32))",
    "a gap": "DELETE FROM dispatcher_log WHERE position = 300",
    "bytes that are no text": "UPDATE dispatcher_log SET data = CAST(x'ff' AS TEXT) WHERE position = 300",
    "bytes that are no text in a hash": (
        "UPDATE dispatcher_log SET hash = CAST(x'ff' AS TEXT) WHERE position = 300"
    ),
    "a view": "UPDATE dispatcher_endpoints SET pending = 0",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_two_processes_find_what_one_finds(file: Path, damage: str) -> None:
    statement = DAMAGES[damage]
    if statement is not None:
        forge(file, statement)
    found = _beside(file)
    assert found == _alone(file)
    assert (found.findings == []) is (statement is None)


def test_the_kept_head_is_checked_beside_as_well(file: Path) -> None:
    kept = head(file)
    assert _beside(file, kept).findings == []
    rewrite(file, lambda rows: rows[:-5])
    assert _beside(file, kept) == _alone(file, kept)
    assert _beside(file, kept).findings != []
    assert _beside(file).findings == []


def test_a_check_that_ends_early_is_an_error_and_not_a_clean_log(
    file: Path, beside: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(StorageError, match="ended early"):
        verify(file)


def test_what_is_appended_while_the_check_begins_is_no_finding(
    file: Path, beside: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second process looks a moment later than the first: at entries and at tiles that are new."""
    start = verifying.tree_process

    def later(*arguments: Any) -> Any:
        run([Q(10**7, "a", f"late-{number}", [200]) for number in range(300)], file)
        return start(*arguments)

    entries = verify(file).entries
    monkeypatch.setattr(verifying, "tree_process", later)
    verified = verify(file)
    assert (verified.entries, verified.findings) == (entries, [])


@pytest.mark.parametrize("until", [1, 255, 256, 257, 511, 600])
def test_a_part_of_a_log_can_be_checked(file: Path, until: int) -> None:
    with Database(file, "read") as database, database.read() as connection:
        assert list(check_tree(connection, until)) == []


@pytest.mark.parametrize("size", [1, 100, 101, 300, 512, 600])
@pytest.mark.parametrize("page", [1, 100, 257])
def test_a_kept_head_is_checked_wherever_it_lies_in_a_page(
    file: Path, page: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "ROWS_PER_FETCH", page)
    with ramdisk() as folder:
        early = folder / "early.db"
        make("simulated", early)
        rewrite(early, lambda rows: rows[:size])
        kept = head(early)
    assert verify(file, kept_head=kept).findings == []
    assert len(verify(file, kept_head=f"{size}:{'0' * 64}").findings) == 1


@pytest.mark.parametrize("how", [_alone, _beside])
def test_progress_never_goes_back_and_ends_when_all_is_done(
    file: Path, how: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "ROWS_PER_FETCH", 100)
    told: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patched:
        if how is _beside:
            patched.setattr(verifying, "ENTRIES_WORTH_A_PROCESS", 1)
        entries = verify(file, progress=lambda done, total: told.append((done, total))).entries
    assert {total for _, total in told} == {2 * entries}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (2 * entries, 2 * entries)
    assert len(told) >= 8
