"""Releases of the future, whose schema is newer than this one's."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dispatcher.log import migrate
from dispatcher.log import open as opening

NEXT = f"{int(max(migrate.known_revisions())) + 1:04}"

# A column, as SQLite adds and drops it without making the table anew, and a table.
NEXT_SCRIPT = f"""
\"\"\"Notes.\"\"\"

import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{max(migrate.known_revisions())}"


def upgrade():
    op.add_column("dispatcher_endpoints", sa.Column("note", sa.Text))
    op.create_table("dispatcher_notes", sa.Column("n", sa.Integer, primary_key=True))


def downgrade():
    op.drop_table("dispatcher_notes")
    op.drop_column("dispatcher_endpoints", "note")
"""


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes this the release that brings the schema after the newest, by the given script."""

    def make(script: str) -> None:
        scripts = tmp_path / "later release" / "migrations"
        shutil.copytree(migrate.SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
        (scripts / "versions" / f"{NEXT}_notes.py").write_text(script, encoding="utf-8")
        monkeypatch.setattr(migrate, "SCRIPTS", scripts)
        monkeypatch.setattr(migrate, "REVISION", NEXT)
        monkeypatch.setattr(opening, "REVISION", NEXT)

    return make
