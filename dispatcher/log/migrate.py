"""Bringing a database's schema up to this release. Alembic is imported here only, and only when needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from dispatcher.errors import DatabaseMissing
from dispatcher.log.open import Database, Target, sqlite_path, wrong_revision
from dispatcher.log.schema import REVISION, VERSION_TABLE

if TYPE_CHECKING:
    from alembic.config import Config

Progress = Callable[[str], None]

_PACKAGE = Path(__file__).resolve().parents[1]
# Inside the package when it comes from a wheel, beside it in a checkout.
SCRIPTS = _PACKAGE / "migrations"
if not SCRIPTS.is_dir():
    SCRIPTS = _PACKAGE.parent / "migrations"

# Alembic keeps what it is working on in module globals.
_one_at_a_time = threading.Lock()


def known_revisions() -> frozenset[str]:
    """Every schema that this release can read or upgrade, told from the file names alone."""
    return frozenset(script.name.partition("_")[0] for script in SCRIPTS.glob("versions/[0-9]*_*.py"))


def upgrade(target: Target, progress: Progress | None = None) -> tuple[str | None, str]:
    """Upgrade an existing database to this release's schema; the revisions (before, after).

    The revision before is None for a database without a log, which gets one. All steps are one transaction:
    after a failure the database is what it was. Upgrades of one database at a time wait for each other, and
    the later ones find nothing to do. `progress` is told of each step. Raises SchemaTooNew for a newer schema
    and DatabaseMissing when there is no file, or only memory.
    """
    if sqlite_path(target) is None:
        raise DatabaseMissing("a database in memory has nothing to upgrade")
    with _one_at_a_time, Database(target, "upgrade") as database:
        if database.revision == REVISION:
            return REVISION, REVISION
        with database.write() as connection:
            # Asked again: another upgrade may have held the lock until now.
            before = _revision(connection)
            if before == REVISION:
                return REVISION, REVISION
            if before is not None and before not in known_revisions():
                raise wrong_revision(database.place, before)
            from alembic import command

            command.upgrade(alembic_config(connection, progress), REVISION)
    return before, REVISION


def alembic_config(connection: Connection, progress: Progress | None = None) -> Config:
    """For Alembic's commands on a connection that is in a write transaction, which the caller commits."""
    from alembic.config import Config

    def report(*, step: Any, **_: Any) -> None:
        if progress is not None:
            progress(f"{step.up_revision_id}: {step.up_revision.doc}")

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes.update(connection=connection, on_version_apply=report)
    return config


def _revision(connection: Connection) -> str | None:
    from alembic.runtime.migration import MigrationContext

    return MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE}
    ).get_current_revision()
