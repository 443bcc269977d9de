"""`dispatcher log`: the entries themselves."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable

import click

from dispatcher.cli.failure import a_finding
from dispatcher.cli.options import POSITION, common_options
from dispatcher.cli.output import Output, Table, flush
from dispatcher.cli.progress import Bar

LAST_SHOWN = 20
POLL_MILLISECONDS = 100

COLUMNS = ("position", "ts", "type", "endpoint_id", "delivery_id", "what happened")

LAST_HELP = f"Only the last N. [default: {LAST_SHOWN}, or all with --after]"
REMEDY = (
    "Views and tiles can be made again: `dispatcher db rebuild`. If it is about the log itself, keep the"
    " file as it is, and compare it with a backup."
)


@click.group()
def log() -> None:
    """Show, name and verify the log."""


@log.command()
@click.option("--after", type=POSITION, metavar="N", help="Only entries after position N.")
@click.option("--last", type=POSITION, metavar="N", help=LAST_HELP)
@click.option("--follow", "-f", is_flag=True, help="Go on with new entries as they come, until Ctrl-C.")
@common_options
def tail(after: int | None, last: int | None, follow: bool, database: str, out: Output) -> None:
    """Show the last entries of the log.

    Columns: position, ts, type, endpoint, delivery, what happened. With --json one object a line, as the
    entry lies in the table dispatcher_log.
    """
    from dispatcher.audit.history import as_json, sentence
    from dispatcher.log.pages import pages

    if last is None and after is None:
        last = LAST_SHOWN
    table = None if out.json else Table(out, COLUMNS)
    wait = waiting() if follow else None
    for rows in pages(database, after=after or 0, last=last, wait=wait):
        if table is None:
            for row in rows:
                out.document(as_json(row))
        else:
            table.add([(*row[:3], row.endpoint_id, row.delivery_id, sentence(row)) for row in rows])


def waiting() -> Callable[[], None]:
    """Lets a moment pass, after sending what was written. Raises BrokenPipeError when its reader is gone."""
    readers = select.poll()
    if sys.stdout is not None:
        readers.register(sys.stdout.fileno(), 0)

    def wait() -> None:
        flush()
        if readers.poll(POLL_MILLISECONDS):
            raise BrokenPipeError

    return wait


@log.command(short_help="Print the log's head, to keep.")
@common_options
def head(database: str, out: Output) -> None:
    """Print POSITION:ROOT: keep it, and `log verify --head` can later tell that the log still begins so."""
    from dispatcher import head as head_of

    found = head_of(database)
    if out.json:
        position, _, root = found.partition(":")
        out.document({"position": int(position), "root": root})
    else:
        out.line(found)


@log.command(short_help="Check that the log is what was written.")
@click.option("--head", "kept_head", metavar="POSITION:ROOT", help="A head that `log head` printed earlier.")
@common_options
def verify(kept_head: str | None, database: str, out: Output) -> None:
    """Check every hash, fold the log again and compare all that is derived from it. Changes nothing.

    Prints the number of entries and the head. Or else prints a finding a line, as position and what is
    wrong, and exits with 1.
    """
    from dispatcher.audit.verify import verify as verify_log

    with Bar("verifying") as bar:
        entries, head, findings = verify_log(database, kept_head=kept_head, progress=bar)
    if out.json:
        told = [finding._asdict() for finding in findings]
        out.document({"ok": not findings, "entries": entries, "head": head, "findings": told})
    elif findings:
        out.table(("position", "finding"), findings)
    else:
        out.record({"findings": 0, "entries": entries, "head": head})
    if findings:
        raise a_finding(out, f"findings in a log of {entries} entries: {len(findings)}", REMEDY)
