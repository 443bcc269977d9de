"""`dispatcher replay`: the log, gone through again."""

from __future__ import annotations

import click

from dispatcher.cli.failure import a_finding
from dispatcher.cli.options import POSITION, common_options
from dispatcher.cli.output import Output
from dispatcher.cli.progress import Bar

REMEDY = "`dispatcher log verify` tells whether the log was changed; keep the file as it is."


@click.command(short_help="Go through the log again.")
@click.option("--until", type=POSITION, metavar="POSITION", help="Go no further than this entry.")
@click.option("--until-ts", type=int, metavar="TS", help="Go no further than the last entry of this time.")
@click.option("--check", is_flag=True, help="Decide everything again, and compare.")
@common_options
def replay(until: int | None, until_ts: int | None, check: bool, database: str, out: Output) -> None:
    """Print every attempt as it was recorded. Nothing is sent again.

    With --check nothing is listed: everything is decided again from the recorded facts, and the exit code
    is 1 when an entry is not what the rules make of those before it.

    Columns: position, ts, endpoint, event, attempt. With --json one object a line (with --check one in all).
    """
    if until is not None and until_ts is not None:
        raise click.UsageError("give --until or --until-ts, not both")
    if check:
        check_again(until, until_ts, database, out)
        return
    from dispatcher.audit.replay import Attempt
    from dispatcher.audit.replay import replay as attempts

    found = attempts(database, until=until, until_ts=until_ts)
    if out.json:
        for attempt in found:
            out.document(attempt._asdict())
    else:
        out.table(Attempt._fields, found)


def check_again(until: int | None, until_ts: int | None, database: str, out: Output) -> None:
    from dispatcher.audit.replay import check

    with Bar("deciding again") as bar:
        finding = check(database, until=until, until_ts=until_ts, progress=bar)
    if out.json:
        out.document({"ok": finding is None, "finding": None if finding is None else finding._asdict()})
    elif finding is None:
        out.line("every entry is what the rules make of those before it")
    else:
        out.table(finding._fields, [finding])
    if finding is not None:
        raise a_finding(out, "an entry is not what the rules make of those before it", REMEDY)
