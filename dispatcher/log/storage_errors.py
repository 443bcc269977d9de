"""From what SQLite says to what the caller can do about it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from dispatcher.errors import (
    DatabaseBusy,
    DatabaseFull,
    DatabaseReadOnly,
    NotADatabase,
    StorageError,
    TextDamaged,
)

BUSY_WAIT_SECONDS = 30


@contextmanager
def storage_errors(place: str) -> Iterator[None]:
    """Raise what the database reports as one of our StorageErrors: it names the file, never its contents."""
    try:
        yield
    except DBAPIError as error:
        raise typed(place, error.orig) from error
    except sqlite3.Error as error:
        raise typed(place, error) from error


def typed(place: str, error: BaseException | None) -> StorageError:
    name = getattr(error, "sqlite_errorname", None) or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return DatabaseBusy(f"{place} was locked by another process for more than {BUSY_WAIT_SECONDS} s")
    if name == "SQLITE_FULL":
        return DatabaseFull(f"{place} cannot grow: the disk is full")
    if name.startswith("SQLITE_READONLY"):
        return DatabaseReadOnly(f"{place} cannot be written")
    if name == "SQLITE_NOTADB":
        return NotADatabase(f"{place} is not a SQLite database")
    if str(error).startswith("Could not decode to UTF-8"):
        return TextDamaged(f"{place} holds text that is no UTF-8")
    return StorageError(f"{place}: {error} ({name or type(error).__name__})")
