"""`dispatcher run`: operations in, results out."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import click

from dispatcher.cli.options import common_options
from dispatcher.cli.output import Cell, Output, flush
from dispatcher.cli.progress import Bar
from dispatcher.errors import UsageError

DEFAULT_DATABASE = "dispatcher.db"
LONGEST_SHOWN = 200

A_LIST = 'Give a JSON list of operations, such as [["register", 0, "shop", "https://shop.example/hooks"]].'


@click.command(short_help="Run operations in simulated time.")
@click.argument("file", required=False, metavar="[FILE|-]")
@click.option("--example", is_flag=True, help="Run the example that comes with the dispatcher.")
@common_options
def run(file: str | None, example: bool, database: str, out: Output) -> None:
    """Run a JSON list of operations, from FILE or from standard input (-), in simulated time.

    The database is made if there is none; a log that is there already is continued. All operations of
    a run are one transaction. A refused operation is a result, "error: ...", and the exit code stays 0.

    Prints ts, operation and result of each; with --json the list of the results.
    """
    if (file is None) != example:
        raise click.UsageError(
            "name a FILE of operations, or - for standard input, or --example: one of them"
        )
    operations = parse(example_text(), "the example") if file is None else parse(read(file), named(file))

    from dispatcher import run as run_operations

    with Bar("running") as bar:
        results = run_operations(bar.over(operations, then="writing"), database)
    if out.json:
        out.document(results)
    else:
        out.table(("ts", "operation", "result"), listing(operations, results, out.terminal))
    refused = sum(1 for result in results if is_refusal(result))
    if example and not out.json:
        suggest(out, database)
    if refused:
        flush()
        print(f"refused: {refused} of {len(results)} operations", file=sys.stderr)
        if example:
            print("The example is made for a new database: name one with --database.", file=sys.stderr)


def named(file: str) -> str:
    return "standard input" if file == "-" else file


def example_text() -> bytes:
    return (files("dispatcher") / "examples" / "outage.json").read_bytes()


def read(file: str) -> bytes:
    """A file's content, or that of standard input. Raises UsageError."""
    try:
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as opened:
            return opened.read()
    except FileNotFoundError:
        message = f"there is no file {file}"
    except IsADirectoryError:
        message = f"{file} is a folder"
    except OSError as error:
        message = f"{named(file)} cannot be read: {error.strerror}"
    raise UsageError(message, "Name a file that holds a JSON list of operations, or - for standard input.")


def parse(text: bytes, name: str) -> list[Any]:
    """The list that a JSON text is. Raises UsageError, which tells where but never what was in the text."""
    try:
        operations = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"{name} is not JSON: {where}: {error.msg}", A_LIST) from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not JSON: byte {error.start} is not UTF-8", A_LIST) from None
    except ValueError:
        raise UsageError(f"{name} holds a number of more digits than can be read", A_LIST) from None
    except RecursionError:
        raise UsageError(f"{name} holds lists that are nested too deeply", A_LIST) from None
    if not isinstance(operations, list):
        raise UsageError(f"{name} holds no list, but one JSON {KINDS[type(operations)]}", A_LIST)
    return operations


KINDS = {dict: "object", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


def listing(operations: list[Any], results: list[Any], terminal: bool) -> Iterator[tuple[Cell, Cell, Cell]]:
    """(ts, operation, result) of each; on a terminal every attempt of a `process` has a line of its own."""
    for operation, result in zip(operations, results, strict=True):
        ts, said = told(operation)
        lines = answer(result)
        if not terminal:
            yield ts, said, ", ".join(lines)
            continue
        yield ts, said, lines[0]
        for line in lines[1:]:
            yield "", "", line


def told(operation: Any) -> tuple[Cell, str]:
    """An operation's ts, if it has one, and the rest of it in words."""
    if not isinstance(operation, list) or len(operation) < 2 or not isinstance(operation[0], str):
        return "", shortened(json.dumps(operation, ensure_ascii=False))
    name, ts, *arguments = operation
    words = [part if isinstance(part, str) else json.dumps(part, ensure_ascii=False) for part in arguments]
    return ts if type(ts) is int else json.dumps(ts), shortened(" ".join([name, *words]))


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def answer(result: Any) -> list[str]:
    """A result in words, as one or more lines."""
    match result:
        case True:
            return ["true"]
        case []:
            return ["nothing"]
        case list():
            return result
        case {"state": state, "attempts": attempts, "next_attempt_at": next_attempt_at}:
            due = "" if next_attempt_at is None else f", next at {next_attempt_at}"
            return [f"{state}, {attempts} attempt{'' if attempts == 1 else 's'}{due}"]
        case _:
            return [str(result)]


def is_refusal(result: Any) -> bool:
    return isinstance(result, str) and result.startswith("error: ")


def suggest(out: Output, database: str) -> None:
    """What to look at after the example."""
    where = "" if database == DEFAULT_DATABASE else f" --database {shlex.quote(database)}"
    out.line("")
    out.line("Try next:")
    for command in ("history pick-201", "endpoint list", "log verify"):
        out.line(f"  dispatcher {command}{where}")
