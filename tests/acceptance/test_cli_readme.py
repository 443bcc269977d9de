"""What the README says of the command line, the library and the tables is all there, and true."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import click
import pytest

from dispatcher.cli.root import EPILOG
from dispatcher.cli.root import dispatcher as root
from dispatcher.log.schema import metadata
from tests.acceptance.cli import ROOT, dispatcher, environment


@pytest.fixture(scope="module")
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_command_and_option_of_it_is_in_the_table(readme: str) -> None:
    table = readme.split("\n## Command line\n")[1].split("\n## ")[0]
    for name, command in _leaves(root, "dispatcher"):
        assert f"`{name}" in table, name
        for parameter in command.params:
            assert isinstance(parameter, click.Argument) or parameter.opts[0] in table, (name, parameter.opts)


def _leaves(group: click.Group, path: str) -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    for name, command in group.commands.items():
        named = f"{path} {name}"
        found += _leaves(command, named) if isinstance(command, click.Group) else [(named, command)]
    return found


def test_exit_codes_are_those_of_the_help(readme: str) -> None:
    table = readme.split("| exit code |")[1].split("\n\n")[0]
    assert re.findall(r"^\| (\d+) \|", table, re.MULTILINE) == re.findall(r"^  (\d+) ", EPILOG, re.MULTILINE)


def test_every_column_of_every_table_is_explained(readme: str) -> None:
    for table in metadata.sorted_tables:
        section = readme.split(f"**`{table.name}`**")[1].split("\n**`")[0]
        missing = [column.name for column in table.columns if f"`{column.name}`" not in section]
        assert not missing, table.name


def test_the_python_examples_run(readme: str, tmp_path: Path) -> None:
    examples = re.findall(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    # One that begins with the name of a file is a file of somebody's project.
    whole = [example for example in examples if not example.startswith("# ")]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(whole)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == dispatcher("log", "head", "--database", "library.db", at=tmp_path).out


def test_the_check_by_hand_accepts_the_log_and_nothing_else(readme: str, example: Path) -> None:
    (script,) = re.findall(r"<<'EOF'\n(.*?)^EOF$", readme, re.DOTALL | re.MULTILINE)
    kept = dispatcher("log", "head", at=example).out.strip()

    def check() -> tuple[int, str]:
        command = [sys.executable, "-", "dispatcher.db", kept]
        done = subprocess.run(command, cwd=example, input=script, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    assert check() == (0, "51 entries are those of the kept head\n")
    with closing(sqlite3.connect(example / "dispatcher.db")) as connection:
        connection.execute("DROP TRIGGER dispatcher_log_no_update")
        connection.execute("UPDATE dispatcher_log SET ts = ts + 1 WHERE position = 51")
        connection.commit()
    assert check() == (1, "")
