"""What Alembic runs around the migrations, for `dispatcher db upgrade` and for `alembic` in a checkout.

The dispatcher may live inside an application's own database: its revision is kept apart, and objects without
the prefix `dispatcher_` are never looked at. All the steps of a command are one write transaction.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from alembic import context
from alembic.operations.ops import MigrationScript
from alembic.runtime.migration import MigrationContext
from alembic.util import CommandError
from sqlalchemy import Connection

from dispatcher.errors import DispatcherError
from dispatcher.log.open import Database, sqlite_path
from dispatcher.log.schema import VERSION_TABLE, metadata


def main() -> None:
    if context.is_offline_mode():
        raise CommandError("--sql cannot be used: a migration looks at the log before it changes anything")
    given: Connection | None = context.config.attributes.get("connection")
    if given is not None:
        migrate(given)
        return
    logging.basicConfig(format="%(message)s")
    logging.getLogger("alembic.runtime.migration").setLevel(logging.INFO)
    named = context.get_x_argument(as_dictionary=True).get("database")
    target = str(named or os.environ.get("DISPATCHER_DATABASE") or "dispatcher.db")
    try:
        with _opened(target) as database, database.write() as connection:
            migrate(connection)
    except DispatcherError as error:
        raise CommandError(f"{error}. {error.remedy}") from error


def migrate(connection: Connection) -> None:
    """Run the command on a connection that is in a write transaction; the caller commits it."""
    # Alembic would make it, too, but in other words than a new database that starts with the last schema.
    connection.exec_driver_sql(
        f"CREATE TABLE IF NOT EXISTS {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
    )
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        transactional_ddl=True,
        include_name=is_ours,
        on_version_apply=context.config.attributes.get("on_version_apply"),
        process_revision_directives=number_the_revision,
    )
    context.run_migrations()
    if not context.get_context().get_current_heads():
        # Alembic leaves it behind, empty. With it a database looks as if it held a log.
        connection.exec_driver_sql(f"DROP TABLE {VERSION_TABLE}")


def is_ours(name: str | None, kind: str, parents: object) -> bool:
    return kind != "table" or (name or "").startswith("dispatcher_")


def number_the_revision(
    migration: MigrationContext, revision: str | Iterable[str | None] | Iterable[str], scripts: list[Any]
) -> None:
    """Revisions are counted, 0001, 0002 …, and not named at random: the order shows in a listing."""
    latest = context.script.get_current_head()
    for script in scripts:
        assert isinstance(script, MigrationScript)
        script.rev_id = f"{int(latest or 0) + 1:04}"


def _opened(target: str) -> Database:
    path = sqlite_path(target)
    if path is not None and not Path(path).exists():
        Path(path).touch()
    return Database(target, "upgrade")


main()
