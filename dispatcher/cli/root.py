"""The `dispatcher` command: its groups, and how every run of it ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from dispatcher.cli.db import db
from dispatcher.cli.deliveries import dead_letters, history, status
from dispatcher.cli.demo import demo
from dispatcher.cli.endpoint import endpoint
from dispatcher.cli.erase import erase
from dispatcher.cli.events import cancel, enqueue, publish, revive
from dispatcher.cli.failure import Failure, extra_missing, report
from dispatcher.cli.inbox import inbox
from dispatcher.cli.log import log
from dispatcher.cli.output import finish_stdout, flush, prepare_stdout
from dispatcher.cli.receive import receive
from dispatcher.cli.replay import replay
from dispatcher.cli.run import run
from dispatcher.cli.work import work
from dispatcher.errors import DispatcherError

INTERRUPTED = 130

EPILOG = """\
\b
Output:
  on a terminal  aligned columns, colour, progress bars on stderr
  piped          tab-separated, no header; control characters as \\n, \\t, \\x1b
  --json         one JSON document; `log tail`, `replay` and `receive` print one
                 object a line

\b
Exit codes:
  0    done (also when the reader of a pipe went away, and when `work` or
       `receive` was told to end)
  1    a check found something
  2    wrong usage
  3    no such event or endpoint
  4    the database, or what the output goes to, cannot serve
  5    the log is corrupt
  130  interrupted with Ctrl-C, which is how `log tail --follow` ends

\b
Errors go to stderr: what happened, then what to do about it. With --json
they are {"error": {"code": ..., "message": ..., "remedy": ...}}.
"""


def show_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        print(f"dispatcher {version('webhook-dispatcher')}")
    except PackageNotFoundError:
        print("dispatcher (from a checkout; not installed)")
    context.exit()


class InOrder(click.Group):
    """Lists its commands in the order in which they were added: daily work first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=show_version, help="Show it."
)
def dispatcher() -> None:
    """Deliver webhooks, live or in simulated time, and ask the log what happened.

    Every operation is an entry of one tamper-evident log in a SQLite file. Begin with
    `dispatcher demo`.
    """


for command in (
    *(demo, run, endpoint, enqueue, publish, work, receive),
    *(status, history, dead_letters, inbox, revive, cancel, erase),
    *(log, replay, db),
):
    dispatcher.add_command(command)


def main() -> NoReturn:
    """Run the command line of this process, and exit with the code that its help documents."""
    sys.exit(outcome(sys.argv[1:]))


def outcome(arguments: Sequence[str]) -> int:
    """The exit code that a command line comes to. Whatever it has to say is written when this returns."""
    prepare_stdout()
    try:
        code = execute(arguments)
        flush()
    except BrokenPipeError:
        code = 0  # Whoever read the output has seen enough.
    except KeyboardInterrupt:
        code = INTERRUPTED
    except ModuleNotFoundError as error:
        finish_stdout()
        code = report(Failure.of(extra_missing(error)), as_json="--json" in arguments)
    except (DispatcherError, click.ClickException, OSError) as error:
        finish_stdout()
        code = report(Failure.of(error), as_json="--json" in arguments)
    finish_stdout()
    return code


def execute(arguments: Sequence[str]) -> int:
    # Not dispatcher.main(), which has endings of its own for a closed pipe and for Ctrl-C.
    try:
        with dispatcher.make_context("dispatcher", list(arguments)) as context:
            dispatcher.invoke(context)
    except click.exceptions.Exit as finished:
        return finished.exit_code
    except click.exceptions.NoArgsIsHelpError as unfinished:
        print(unfinished.format_message(), file=sys.stderr)
        return unfinished.exit_code
    return 0
