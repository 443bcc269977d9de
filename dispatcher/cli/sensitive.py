"""Values that other users of the machine must not see, and that no message repeats."""

from __future__ import annotations

import sys
from typing import Any

import click

LONGEST = 64 * 1024
HINT = "Arguments are visible to other users: @FILE takes it from a file, @- from standard input."


class Sensitive(click.ParamType[str]):
    """A text that may stand in a file (`@FILE`) or come from standard input (`@-`), less its last newline."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not isinstance(value, str) or not value.startswith("@"):
            return str(value)
        if value == "@-" and ctx is not None:
            if ctx.meta.get(__name__):
                self.fail("standard input is read for another option already.", param, ctx)
            ctx.meta[__name__] = True
        try:
            return _read(value[1:]).removesuffix("\n").removesuffix("\r")
        except OSError as error:
            # Not by its name: a secret that begins with @ would be told.
            self.fail(f"the file after @ cannot be read: {error.strerror}.", param, ctx)
        except UnicodeError:
            self.fail("the file after @ holds no text.", param, ctx)


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.buffer.read(LONGEST).decode()
    with open(file, "rb") as opened:
        return opened.read(LONGEST).decode()


class Discreet(click.Command):
    """A command whose arguments may be secret: one too many is refused without being repeated."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if rest:
            ctx.fail("there is an argument too many; put quotes around what holds spaces")
        return rest


def name_and_value(text: str, option: str) -> tuple[str, str]:
    """The two halves of `Name: value`."""
    name, colon, value = text.partition(":")
    if not colon:
        raise click.UsageError(f"{option} takes a header as 'Name: value'")
    return name.strip(), value.strip()
