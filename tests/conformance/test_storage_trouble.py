"""A full disk and a disk that cannot be written: an error that says what to do, and nothing lost."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dispatcher import head, run
from dispatcher.audit.verify import verify
from dispatcher.errors import DatabaseFull, DatabaseReadOnly, StorageError
from dispatcher.log.open import Database
from dispatcher.log.rebuild import rebuild
from tests.notation import P, Q, R, S, state
from tests.ramdisk import occupy, ramdisk, small_disk

NOBODY = 65534
HISTORY = [R("a"), Q(0, "a", "m", [503, 200]), P(0)]


@pytest.fixture
def folder() -> Iterator[Path]:
    with ramdisk() as place:
        place.chmod(0o755)
        yield place


@contextmanager
def _unprivileged() -> Iterator[None]:
    """As a user to whom permissions apply: they mean nothing to root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def tiny_disk(folder: Path) -> Iterator[Path]:
    """A file system of 512 KiB."""
    with small_disk(folder, 512) as place:
        yield place


def _batch(number: int) -> list[Any]:
    return [Q(number, "a", f"n-{number}-{n}", [200]) for n in range(40)]


def _fill(file: Path) -> tuple[int, str]:
    """Enqueue until there is no room; the batch that did not fit, and the head before it."""
    for number in range(1, 1000):
        kept = head(file)
        try:
            run(_batch(number), file)
        except DatabaseFull:
            return number, kept
    raise AssertionError("it was never full")


def test_a_disk_that_fills_up_loses_nothing_and_work_goes_on_when_there_is_room(tiny_disk: Path) -> None:
    file, filler = tiny_disk / "log.db", tiny_disk / "reserve"
    filler.write_bytes(b"x" * 128 * 1024)
    run(HISTORY, file)
    number, kept = _fill(file)
    assert head(file) == kept
    assert verify(file, kept_head=kept).findings == []
    filler.unlink()
    assert run(_batch(number), file) == ["queued"] * 40
    assert verify(file, kept_head=kept).findings == []


def test_on_a_disk_without_a_byte_left_reading_goes_on_and_writing_says_why_not(tiny_disk: Path) -> None:
    file = tiny_disk / "log.db"
    run(HISTORY, file)
    kept = head(file)
    filler = occupy(tiny_disk)
    for operations in (_batch(1), [P(30)]):
        with pytest.raises(StorageError) as caught:
            run(operations, file)
        assert caught.value.remedy
    filler.unlink()
    assert head(file) == kept
    assert run([S(0, "m")], file) == [state("pending", 1, 30)]
    assert verify(file, kept_head=kept).findings == []


def test_a_new_database_that_has_no_room_can_be_made_later(tiny_disk: Path) -> None:
    file = tiny_disk / "log.db"
    filler = occupy(tiny_disk)
    with pytest.raises(StorageError):
        run(HISTORY, file)
    filler.unlink()
    assert run([*HISTORY, S(0, "m")], file)[-1] == state("pending", 1, 30)
    assert verify(file).findings == []


def _limited(pages: int) -> Callable[[Database], sqlite3.Connection]:
    connect = Database._connect

    def limited(database: Database) -> sqlite3.Connection:
        connection = connect(database)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    return limited


@pytest.mark.parametrize(("size", "room"), [(400, 0), (4_000, 0), (12_000, 300)])
def test_a_database_that_may_not_grow_loses_nothing(
    folder: Path, size: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full when the call ends, and full in the middle of it, after thousands of entries were written."""
    operations = [Q(1, "a", f"n-{number}", [200]) for number in range(size)]
    file = folder / "log.db"
    run(HISTORY, file)
    kept = head(file)
    pages = file.stat().st_size // 4096
    with monkeypatch.context() as patched:
        patched.setattr(Database, "_connect", _limited(pages + room))
        with pytest.raises(DatabaseFull) as caught:
            run(operations, file)
        assert str(file) in str(caught.value)
        assert head(file) == kept
        assert run([S(0, "m")], file) == [state("pending", 1, 30)]
    assert run(operations, file) == ["queued"] * len(operations)
    assert verify(file, kept_head=kept).findings == []


PERMISSIONS = {
    "a file that may only be read": (0o444, 0o777),
    "a folder in which nothing can be made": (0o666, 0o555),
    "both": (0o444, 0o555),
    "a file that may not even be read": (0o000, 0o777),
    "a folder that may not be entered": (0o666, 0o000),
}


@pytest.mark.parametrize("permission", PERMISSIONS)
def test_what_may_not_be_written_is_refused_and_left_as_it_was(folder: Path, permission: str) -> None:
    place = folder / "place"
    place.mkdir()
    file = place / "log.db"
    run(HISTORY, file)
    kept, before = head(file), file.read_bytes()
    for_file, for_folder = PERMISSIONS[permission]
    file.chmod(for_file)
    place.chmod(for_folder)
    try:
        with _unprivileged():
            for write in (lambda: run([P(30)], file), lambda: rebuild(file)):
                with pytest.raises(StorageError) as caught:
                    write()
                assert caught.value.remedy
                assert str(file) in str(caught.value)
    finally:
        place.chmod(0o755)
        file.chmod(0o644)
    assert file.read_bytes() == before
    assert head(file) == kept
    assert run([P(30)], file) == [["m #2 200 delivered"]]


@pytest.mark.parametrize(
    "permission", ["a file that may only be read", "a folder in which nothing can be made"]
)
def test_what_may_not_be_written_is_called_read_only(folder: Path, permission: str) -> None:
    place = folder / "place"
    place.mkdir()
    file = place / "log.db"
    run(HISTORY, file)
    file.chmod(PERMISSIONS[permission][0])
    place.chmod(PERMISSIONS[permission][1])
    try:
        with _unprivileged(), pytest.raises(DatabaseReadOnly):
            run([P(30)], file)
    finally:
        place.chmod(0o755)


def test_a_folder_in_which_nothing_can_be_made_is_no_place_for_a_new_database(folder: Path) -> None:
    place = folder / "place"
    place.mkdir(0o555)
    with _unprivileged(), pytest.raises(StorageError):
        run(HISTORY, place / "log.db")
    assert list(place.iterdir()) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="open files are listed by /proc")
def test_an_error_leaves_no_file_open(folder: Path) -> None:
    """Else the disk that had the trouble cannot be taken away."""
    place = folder / "place"
    place.mkdir()
    file = place / "log.db"
    run(HISTORY, file)
    file.chmod(0o444)
    place.chmod(0o555)
    caught: StorageError | None = None
    try:
        with _unprivileged():
            run([P(30)], file)
    except StorageError as error:
        caught = error
    finally:
        place.chmod(0o755)
    assert caught is not None
    opened = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.exists()]
    assert [name for name in opened if name.startswith(str(place))] == []
