"""`upgrade`: which databases it takes, that it is all or nothing, and one at a time."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher import head, run
from dispatcher.errors import DatabaseMissing, NotADatabase, SchemaTooNew, SchemaTooOld
from dispatcher.log import migrate
from dispatcher.log.schema import REVISION
from tests.migration import databases
from tests.migration.conftest import NEXT, NEXT_SCRIPT
from tests.migration.databases import APPLICATION, CONTINUED, HISTORY

ROOT = Path(__file__).parents[2]


def test_an_older_schema_is_refused_with_what_to_do_and_left_as_it_is(
    release: Callable[[str], None], tmp_path: Path
) -> None:
    database = _folder(tmp_path) / "log.db"
    run(HISTORY, database)
    release(NEXT_SCRIPT)
    before = _files(database)
    with pytest.raises(SchemaTooOld, match=f"has schema {REVISION}, this release needs {NEXT}") as refusal:
        run(CONTINUED, database)
    assert "dispatcher db upgrade" in refusal.value.remedy
    assert _files(database) == before


def test_an_older_schema_is_upgraded_and_the_log_goes_on(
    release: Callable[[str], None], tmp_path: Path
) -> None:
    database = tmp_path / "log.db"
    run(HISTORY, database)
    kept = head(database)
    release(NEXT_SCRIPT)
    steps: list[str] = []
    assert migrate.upgrade(database, steps.append) == (REVISION, NEXT)
    assert steps == [f"{NEXT}: Notes."]
    assert head(database) == kept
    assert run(CONTINUED, database) == run([*HISTORY, *CONTINUED])[len(HISTORY) :]


def test_a_newest_schema_is_left_untouched(tmp_path: Path) -> None:
    database = _folder(tmp_path) / "log.db"
    run(HISTORY, database)
    before = _files(database)
    steps: list[str] = []
    assert migrate.upgrade(database, steps.append) == (REVISION, REVISION)
    assert steps == []
    assert _files(database) == before


def test_an_applications_database_gets_a_log_and_keeps_all_it_had(tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    databases.make(database, APPLICATION)
    before = databases.contents(database)
    assert migrate.upgrade(f"sqlite:///{database}") == (None, REVISION)
    after = databases.contents(database)
    assert set(before.master) < set(after.master)
    assert all(after.rows[table] == rows for table, rows in before.rows.items())
    assert run(HISTORY, database) == run(HISTORY)


@pytest.mark.parametrize(
    "use", [lambda database: run([], database), head, migrate.upgrade], ids=["run", "head", "upgrade"]
)
def test_a_newer_schema_is_refused_and_no_byte_of_it_changes(
    use: Callable[[Path], object], tmp_path: Path
) -> None:
    database = _folder(tmp_path) / "log.db"
    run(HISTORY, database)
    databases.make(database, "UPDATE dispatcher_alembic_version SET version_num = '9999'")
    before = _files(database)
    with pytest.raises(SchemaTooNew, match="has schema 9999") as refusal:
        use(database)
    assert "newer release" in refusal.value.remedy
    assert _files(database) == before


def test_a_newer_schema_that_came_while_waiting_for_the_lock_is_refused(
    release: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "log.db"
    run(HISTORY, database)
    release(NEXT_SCRIPT)
    databases.make(database, "UPDATE dispatcher_alembic_version SET version_num = '9999'")
    before = databases.contents(database)
    monkeypatch.setattr("dispatcher.log.open.read_revision", lambda path, must_exist: REVISION)
    with pytest.raises(SchemaTooNew):
        migrate.upgrade(database)
    assert databases.contents(database) == before


def test_an_upgrade_that_fails_changes_nothing(release: Callable[[str], None], tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    databases.make(database, APPLICATION)
    before = databases.contents(database)
    release(NEXT_SCRIPT.replace("\n\n\ndef downgrade", "\n    raise ArithmeticError\n\n\ndef downgrade"))
    with pytest.raises(ArithmeticError):
        migrate.upgrade(database)
    assert databases.contents(database) == before, "neither the older schemas nor half of the last"


@pytest.mark.parametrize("target", [None, ":memory:", "sqlite://"])
def test_there_is_nothing_to_upgrade_in_memory(target: str | None) -> None:
    with pytest.raises(DatabaseMissing):
        migrate.upgrade(target)


def test_only_a_database_that_is_there_is_upgraded(tmp_path: Path) -> None:
    with pytest.raises(DatabaseMissing):
        migrate.upgrade(tmp_path / "missing.db")
    (tmp_path / "letter.txt").write_text("Dear database,\n", encoding="utf-8")
    with pytest.raises(NotADatabase):
        migrate.upgrade(tmp_path / "letter.txt")
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


UPGRADE = """
import sys
from dispatcher.log.migrate import upgrade

print("ready", flush=True)
print(*upgrade(sys.argv[1]))
"""


def test_upgrades_at_once_wait_for_each_other_and_one_does_the_work(tmp_path: Path) -> None:
    database = tmp_path / "app.db"
    databases.make(database, APPLICATION)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", UPGRADE, str(database)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(3)
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        connection.execute("COMMIT")
    answers = sorted(process.communicate(timeout=60)[0] for process in processes)
    found_done = f"{REVISION} {REVISION}\n"
    assert answers == [found_done, found_done, f"None {REVISION}\n"]
    assert run(HISTORY, database) == run(HISTORY)


@pytest.mark.parametrize(
    ("options", "variable", "expected"),
    [
        (["-x", "database=named.db"], "other.db", "named.db"),
        ([], "variable.db", "variable.db"),
        ([], "", "dispatcher.db"),
    ],
    ids=["named", "in the environment", "by default"],
)
def test_alembic_upgrades_from_a_checkout(
    options: list[str], variable: str, expected: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-W", "error", "-m", "alembic", "-c", str(ROOT / "alembic.ini"), *options]
    environment = {**os.environ, "DISPATCHER_DATABASE": variable}
    subprocess.run(
        [*command, "upgrade", "head"], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    assert [file.name for file in tmp_path.iterdir()] == [expected]
    assert run(HISTORY, tmp_path / expected) == run(HISTORY)
    refused = subprocess.run(
        [*command, "downgrade", "base"],
        cwd=tmp_path,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert refused.returncode != 0
    assert "FAILED: dispatcher_log holds entries" in refused.stdout + refused.stderr
    assert "Traceback" not in refused.stderr


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "database"
    folder.mkdir()
    return folder


def _files(database: Path) -> dict[str, bytes]:
    """All there is in the database's folder."""
    return {file.name: file.read_bytes() for file in database.parent.iterdir()}
