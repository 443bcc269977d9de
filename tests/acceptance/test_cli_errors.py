"""How the command line refuses, helps, and is interrupted; and that it asks for no more than it needs."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import click
import pytest

from dispatcher import errors, run
from dispatcher.cli.root import EPILOG
from dispatcher.cli.root import dispatcher as root
from tests.acceptance.cli import Ran, dispatcher, environment, on_terminal, started

QUESTIONS = [
    ["status", "x"],
    ["history", "x"],
    ["dead-letters"],
    ["endpoint", "list"],
    ["endpoint", "show", "x"],
    ["endpoint", "set", "x", "--method", "PUT"],
    ["endpoint", "enable", "x"],
    ["endpoint", "disable", "x"],
    ["endpoint", "test", "x"],
    ["endpoint", "rotate-secret", "x"],
    ["enqueue", "x", "x"],
    ["publish", "x", "x"],
    ["inbox"],
    ["inbox", "retry", "--all"],
    ["inbox", "drop", "--all"],
    ["revive", "x", "--all"],
    ["cancel", "x"],
    ["erase", "x"],
    ["log", "tail"],
    ["log", "tail", "--follow"],
    ["log", "head"],
    ["log", "verify"],
    ["replay"],
    ["replay", "--check"],
    ["db", "rebuild"],
    ["db", "upgrade"],
    ["db", "rewrap"],
    ["db", "scrub"],
]


def commands(group: click.Group = root, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path]
    for name, command in group.commands.items():
        found += commands(command, (*path, name)) if isinstance(command, click.Group) else [(*path, name)]
    return found


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_without_a_database_a_question_is_exit_code_4_and_makes_none(
    question: list[str], tmp_path: Path
) -> None:
    ran = dispatcher(*question, at=tmp_path)
    assert (ran.code, ran.out) == (4, "")
    message, remedy = ran.err.splitlines()
    assert message == "error: there is no database at dispatcher.db"
    assert "--database" in remedy
    assert list(tmp_path.iterdir()) == []


def test_every_command_but_those_that_make_one_is_asked_without_a_database() -> None:
    leaves = {path for path in commands() if path and not isinstance(found(path), click.Group)}
    leaves.add(("inbox",))
    asked = {
        tuple(part for part in question if part not in ("x", "PUT") and part[0] != "-")
        for question in QUESTIONS
    }
    assert leaves - asked == {("demo",), ("run",), ("work",), ("receive",), ("endpoint", "add")}


def found(path: tuple[str, ...]) -> click.Command:
    command: click.Command = root
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
    return command


def test_every_command_takes_database_and_json() -> None:
    for path in commands():
        command = found(path)
        if not isinstance(command, click.Group):
            names = {name for parameter in command.params for name in parameter.opts}
            needed = {"--json"} if path == ("receive",) else {"--database", "--json"}
            assert needed <= names, path


def test_a_file_that_is_no_database_and_one_too_new_are_exit_code_4(example: Path) -> None:
    (example / "notes.txt").write_text("not a database, but long enough to hold a header")
    with closing(sqlite3.connect(example / "dispatcher.db")) as connection:
        connection.execute("UPDATE dispatcher_alembic_version SET version_num = '9999'")
        connection.commit()
    for place, code in (("notes.txt", "not_a_database"), ("dispatcher.db", "schema_too_new")):
        ran = dispatcher("log", "head", "--database", place, "--json", at=example)
        assert (ran.code, ran.error["code"]) == (4, code)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frob"], "No such command 'frob'"),
        (["status"], "Missing argument 'ID'"),
        (["status", "x", "--frob"], "No such option '--frob'"),
        (["log", "tail", "--last", "many"], "Invalid value for '--last'"),
        (["log", "tail", "--after", str(2**63)], "Invalid value for '--after'"),
        (["log", "head", "--database", ""], "Invalid value for '--database'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], message: str, tmp_path: Path) -> None:
    ran = dispatcher(*arguments, at=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    said, remedy = ran.err.splitlines()
    assert said.startswith(f"error: {message}")
    assert remedy.endswith("--help` shows how it is used.")
    assert dispatcher(*arguments, "--json", at=tmp_path).error["code"] == "usage"


def test_without_a_command_it_shows_its_help_as_wrong_usage(tmp_path: Path) -> None:
    ran = dispatcher(at=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Usage: dispatcher ")


def test_help_documents_every_exit_code() -> None:
    documented = {
        int(words[0])
        for line in EPILOG.split("Exit codes:")[1].splitlines()
        if (words := line.split()) and words[0].isdigit()
    }
    kinds = [errors.DispatcherError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert documented == {0, 130} | {kind.exit_code for kind in kinds}


HELP = """
import sys
from dispatcher.cli.root import outcome
for path in {paths!r}:
    assert outcome([*path, "--help"]) == 0
assert outcome(["--version"]) == 0
heavy = {{"sqlalchemy", "alembic", "msgspec", "rich", "sqlite3"}}
sys.exit(f"imported: {{heavy & sys.modules.keys()}}" if heavy & sys.modules.keys() else 0)
"""


def test_help_of_every_command_needs_no_database_and_imports_nothing_heavy(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELP.format(paths=commands())],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Exit codes:" in done.stdout
    assert "dispatcher log tail" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_one_line(tmp_path: Path) -> None:
    ran = dispatcher("--version", at=tmp_path)
    assert ran.code == 0
    assert ran.out.startswith("dispatcher ")
    assert ran.out.count("\n") == 1


def test_ctrl_c_ends_tail_follow_quietly(example: Path) -> None:
    with started("log", "tail", "--follow", "--last", "1", at=example) as tail:
        assert tail.stdout is not None
        assert tail.stdout.readline().startswith("51\t")
        tail.send_signal(signal.SIGINT)
        out, err = tail.communicate()
        assert (tail.returncode, out, err) == (130, "", "")


def test_ctrl_c_ends_a_run_that_then_leaves_nothing(tmp_path: Path) -> None:
    operations = [["register", 0, "e", "u"], *(["enqueue", 0, "e", f"m-{n}", [200]] for n in range(200_000))]
    (tmp_path / "many.json").write_text(json.dumps(operations))
    with on_terminal("run", "many.json", at=tmp_path, streams=("stderr",)) as (process, terminal):
        terminal.read_until("running")
        process.send_signal(signal.SIGINT)
        seen = terminal.read_all()
        assert process.wait() == 130
    assert "Traceback" not in seen
    ran: Ran = dispatcher("log", "head", at=tmp_path)
    assert ran.out.startswith("0:")


def test_ctrl_c_ends_verify_with_the_process_that_it_started(tmp_path: Path) -> None:
    operations = [["register", 0, "e", "u"], *(["enqueue", 0, "e", f"m-{n}", [200]] for n in range(100_000))]
    run(operations, tmp_path / "dispatcher.db")
    with on_terminal("log", "verify", at=tmp_path, streams=("stderr",)) as (process, terminal):
        terminal.read_until("verifying")
        os.killpg(process.pid, signal.SIGINT)
        seen = terminal.read_all()
        assert process.wait() == 130
    assert "Traceback" not in seen
