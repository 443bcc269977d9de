"""How an error is told: on stderr, what happened and what to do."""

from __future__ import annotations

import json
import sys
from typing import NamedTuple

import click

from dispatcher.cli.output import Output, shown
from dispatcher.errors import DispatcherError, ExtraMissing, StorageError, UsageError

LIVE_PACKAGES = ("aiodns", "aiohttp", "cryptography", "idna", "yarl")


class Failure(NamedTuple):
    """An error in the words of the command line."""

    code: str
    message: str
    remedy: str
    exit_code: int

    @classmethod
    def of(cls, error: DispatcherError | click.ClickException | OSError) -> Failure:
        match error:
            case DispatcherError():
                return cls(error.code, str(error), error.remedy, error.exit_code)
            case click.ClickException():
                context = getattr(error, "ctx", None)
                path = "dispatcher" if context is None else context.command_path
                message = error.format_message().rstrip(".")
                remedy = f"`{path} --help` shows how it is used."
                return cls(UsageError.code, message, remedy, UsageError.exit_code)
            case OSError():
                named = "" if error.filename is None else f"{error.filename}: "
                remedy = "Look at the disk, and at where the output goes."
                return cls(StorageError.code, f"{named}{error.strerror}", remedy, StorageError.exit_code)


def extra_missing(error: ModuleNotFoundError) -> ExtraMissing:
    """What to say when a package of live delivery is not there; raises what misses any other."""
    package = (error.name or "").partition(".")[0]
    if package not in LIVE_PACKAGES:
        raise error
    return ExtraMissing(f"live delivery needs the package {package}, which is not installed")


def a_finding(out: Output, message: str, remedy: str) -> DispatcherError | click.exceptions.Exit:
    """Ends a command that has answered that something is wrong. JSON has said it all."""
    return click.exceptions.Exit(DispatcherError.exit_code) if out.json else DispatcherError(message, remedy)


def report(failure: Failure, *, as_json: bool) -> int:
    """Tell the user, and return the exit code."""
    if as_json:
        told = {"code": failure.code, "message": failure.message, "remedy": failure.remedy}
        print(json.dumps({"error": told}), file=sys.stderr)
    else:
        print(f"error: {shown(failure.message)}\n{shown(failure.remedy)}", file=sys.stderr)
    return failure.exit_code
