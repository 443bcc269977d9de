"""The options that every command has, and the kinds of values that commands take."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from dispatcher.cli.output import Output

POSITION = click.IntRange(0, 2**63 - 1)


def an_id(value: str) -> str:
    """The id of an event or endpoint. Where the locale is not UTF-8, its bytes arrive as surrogates."""
    try:
        return os.fsencode(value).decode()
    except UnicodeError:
        raise click.BadParameter("an id is UTF-8 text.") from None


def a_place(value: str) -> str:
    """Where a database is."""
    if not value:
        raise click.BadParameter("it is empty; name a file.")
    return value


def json_option(command: Callable[..., None]) -> Callable[..., None]:
    """--json: the command is called with `out`, an Output."""
    return click.option(
        "--json",
        "out",
        is_flag=True,
        callback=lambda context, parameter, as_json: Output(as_json=as_json),
        help="Print JSON.",
    )(command)


def database_option(default: str, *, envvar: str | None = None) -> Callable[..., Callable[..., None]]:
    """--database: the command is called with `database`, a place."""
    return click.option(
        "--database",
        type=a_place,
        envvar=envvar,
        default=default,
        show_default=True,
        show_envvar=True,
        metavar="PATH|URL",
        help="The SQLite file, or its SQLAlchemy URL.",
    )


def common_options(command: Callable[..., None]) -> Callable[..., None]:
    """--database and --json: the command is called with `database`, a place, and `out`, an Output."""
    return database_option("dispatcher.db", envvar="DISPATCHER_DATABASE")(json_option(command))
