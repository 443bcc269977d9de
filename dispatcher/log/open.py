"""Finding a database, telling what it is, and opening it."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from sqlalchemy import Connection as Connection
from sqlalchemy import create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool, QueuePool, StaticPool

from dispatcher.errors import (
    DatabaseMissing,
    NotADatabase,
    SchemaTooNew,
    SchemaTooOld,
    UnsupportedDatabase,
)
from dispatcher.log.schema import REVISION, VERSION_TABLE, sqlite_script
from dispatcher.log.storage_errors import BUSY_WAIT_SECONDS, storage_errors
from dispatcher.log.watch import Watch

Target = str | os.PathLike[str] | None
"""Where a database is: None for a private one in memory, a path, or a SQLAlchemy URL."""
Access = Literal["create", "write", "read", "upgrade"]

CACHE_KIB = 64 * 1024


def sqlite_path(target: Target) -> str | None:
    """The file that a target names; None for memory. UnsupportedDatabase for any other kind of database."""
    if target is None:
        return None
    if isinstance(target, str) and "://" in target:
        try:
            url = make_url(target)
        except ArgumentError:
            raise UnsupportedDatabase("the database's URL cannot be understood") from None
        if url.get_backend_name() != "sqlite":
            raise UnsupportedDatabase(f"databases of kind {url.get_backend_name()!r} are not supported")
        path = url.database or ":memory:"
    else:
        path = os.fspath(target)
    return None if path in (":memory:", "") else path


class Database:
    """One open database: transactions on it, and its name for messages. Close it, or use it in `with`."""

    def __init__(
        self, target: Target, access: Access = "create", *, tolerant: bool = False, lasting: bool = False
    ) -> None:
        """Open it, making it first if access is "create" and there is none.

        A file is identified before a byte of it is touched: one that is no database, or whose schema is
        too old or too new, is refused and left as it was. "upgrade" takes any file but one that is too new.

        A lasting one keeps its connections from one transaction to the next, until it is closed. A tolerant
        one reads text that is no UTF-8 with surrogates in it, where others raise TextDamaged.
        """
        self._tolerant = tolerant
        self.path = sqlite_path(target)
        self.place = self.path or "the database in memory"
        self._access = access
        with storage_errors(self.place):
            self.revision = (
                None if self.path is None else read_revision(self.path, must_exist=access != "create")
            )
            if self.revision is None and access in ("write", "read"):
                raise DatabaseMissing(f"{self.place} holds no dispatcher log")
            if self.revision not in (None, REVISION):
                wrong = wrong_revision(self.place, self.revision)
                if access != "upgrade" or isinstance(wrong, SchemaTooNew):
                    raise wrong
            self._engine = create_engine(
                "sqlite://",
                creator=self._connect,
                poolclass=StaticPool if self.path is None else QueuePool if lasting else NullPool,
                hide_parameters=True,
            )
            event.listen(self._engine, "begin", _begin)
            if self.revision is None and access == "create":
                self._create()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """The one write transaction at a time; what it did stays only if the block ends well."""
        with (
            storage_errors(self.place),
            self._engine.connect().execution_options(dispatcher_begin="IMMEDIATE") as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one moment of the database. Keep it short: it holds back checkpoints."""
        with storage_errors(self.place), self._engine.connect() as connection, connection.begin():
            yield connection

    def watch(self) -> Watch:
        """Tells when others have written. Close it."""
        with storage_errors(self.place):
            return Watch(self._connect())

    def empty_wal(self, wait: float) -> bool:
        """Bring what was committed into the file and empty the log beside it, where erased keys may stand.

        Whether it could within `wait` seconds: whoever reads or writes holds it back.
        """
        with storage_errors(self.place), closing(self._connect()) as connection:
            connection.execute(f"PRAGMA busy_timeout = {round(wait * 1000)}")
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _connect(self) -> sqlite3.Connection:
        if self.path is None:
            name = ":memory:"
        else:
            name = _uri(self.path, "ro" if self._access == "read" else "rwc")
        connection = sqlite3.connect(
            name,
            uri=self.path is not None,
            timeout=BUSY_WAIT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if self._tolerant:
            connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        if self.path is not None and self._access in ("create", "write"):
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                _switch_to_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
            # Pages of the indexes that did not fit the cache would be written over and over again before
            # the commit; so a transaction's pages stay in memory until then.
            connection.execute("PRAGMA cache_spill = OFF")
            # No copy of a key in a page that was split or given up.
            connection.execute("PRAGMA secure_delete = ON")

    def _create(self) -> None:
        with self.write() as connection:
            if not _has_schema(connection):
                for statement in sqlite_script():
                    connection.exec_driver_sql(statement)


@contextmanager
def reading(database: Database | Target) -> Iterator[Connection]:
    """A read transaction on an open database, or on one that is opened for it alone."""
    if isinstance(database, Database):
        with database.read() as connection:
            yield connection
    else:
        with Database(database, "read") as opened, opened.read() as connection:
            yield connection


def read_revision(path: str, *, must_exist: bool) -> str | None:
    """The schema revision of a file, read without changing it; None when no dispatcher log is in it yet.

    The file is opened by SQLite alone. When a process closes a file, it gives up every lock that it holds on
    it, SQLite's too, unless SQLite does the closing: others would then take the database for unused.
    """
    try:
        size = os.stat(path).st_size
    except FileNotFoundError:
        if must_exist:
            raise DatabaseMissing(f"there is no database at {path}") from None
        if not Path(path).absolute().parent.is_dir():
            raise DatabaseMissing(
                f"there is no folder {Path(path).absolute().parent}",
                "Make the folder first, or name another one.",
            ) from None
        return None
    except OSError as error:
        raise NotADatabase(f"{path} cannot be read: {error.strerror}") from None
    if not Path(path).is_file():
        raise NotADatabase(f"{path} is not a file")
    if size == 0:
        return None
    # Whoever may write takes the files beside the database away again; one who only reads leaves them there.
    mode = "ro" if os.path.exists(f"{path}-wal") else "rw"
    connection = sqlite3.connect(_uri(path, mode), uri=True, timeout=BUSY_WAIT_SECONDS)
    try:
        known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (VERSION_TABLE,)).fetchone()
        if known is None:
            return None
        row = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
        return None if row is None else str(row[0])
    finally:
        connection.close()


def wrong_revision(place: str, revision: str | None) -> SchemaTooOld | SchemaTooNew:
    from dispatcher.log.migrate import known_revisions

    if revision in known_revisions():
        return SchemaTooOld(f"{place} has schema {revision}, this release needs {REVISION}")
    return SchemaTooNew(f"{place} has schema {revision}, this release knows none newer than {REVISION}")


def _has_schema(connection: Connection) -> bool:
    found = connection.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE name = ?", (VERSION_TABLE,))
    return found.first() is not None


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Change a file's journal mode. That needs the file alone, and does not wait for others: a lock does."""
    deadline = time.monotonic() + BUSY_WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")


def _begin(connection: Connection) -> None:
    how = connection.get_execution_options().get("dispatcher_begin", "DEFERRED")
    connection.exec_driver_sql(f"BEGIN {how}")


def _uri(path: str, mode: str) -> str:
    return f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode={mode}"
