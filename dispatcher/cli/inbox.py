"""`dispatcher inbox`: events that applications accepted, and that are not in the log."""

from __future__ import annotations

import click

from dispatcher.cli import times
from dispatcher.cli.deliveries import labelled
from dispatcher.cli.erase import confirm
from dispatcher.cli.live import any_tenant_option, opened
from dispatcher.cli.options import common_options
from dispatcher.cli.output import Output

COMMANDLINE = click.core.ParameterSource.COMMANDLINE


@click.group(invoke_without_command=True, short_help="Show events that are not in the log yet, or never.")
@click.option("--refused", is_flag=True, help="Only those that could not be taken into the log.")
@any_tenant_option
@common_options
@click.pass_context
def inbox(context: click.Context, refused: bool, tenant: str | None, database: str, out: Output) -> None:
    """Show events that applications accepted in their own transactions, and that are not in the log.

    Those that wait are taken by the next worker, or by whoever writes next. Those that were refused stay here
    with the reason, until they are tried again or given up.

    Columns: number, when it was accepted, endpoint, event, type, and why it was refused.
    """
    if context.invoked_subcommand is not None:
        if any(context.get_parameter_source(name) is COMMANDLINE for name in context.params):
            raise click.UsageError(f"give options after the command: inbox {context.invoked_subcommand} …")
        return
    from dispatcher.audit.standing import in_inbox, standing

    with standing(database) as state:
        found = in_inbox(state)
    found = [one for one in found if tenant in (None, one["tenant"]) and (one["refused"] or not refused)]
    if out.json:
        out.document(found)
        return
    columns = ("number", "accepted", "endpoint_id", "event_id", "type", "refused")
    out.table(
        columns,
        (
            (
                one["number"],
                times.moment(one["accepted_at"]),
                labelled(one) if one["endpoint_id"] else None,
                one["event_id"],
                one["event_type"],
                one["refused"],
            )
            for one in found
        ),
    )


numbers = click.argument("numbers", nargs=-1, metavar="[NUMBER]...", type=int)
everything = click.option("--all", "everything", is_flag=True, help="All that were refused.")


@inbox.command(short_help="Try refused ones again.")
@numbers
@everything
@common_options
def retry(numbers: tuple[int, ...], everything: bool, database: str, out: Output) -> None:
    """Try to take refused events into the log again; prints how many are in it now."""
    with opened(database) as live:
        taken = live.retry_refused(_chosen(numbers, everything))
    _tell(out, "taken", taken)


@inbox.command(short_help="Give refused ones up.")
@numbers
@everything
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def drop(numbers: tuple[int, ...], everything: bool, yes: bool, database: str, out: Output) -> None:
    """Give refused events up: their payloads are unreadable from then on. Prints how many."""
    chosen = _chosen(numbers, everything)
    with opened(database) as live:
        confirm("all refused events" if chosen is None else f"{len(chosen)} refused events", yes)
        dropped = live.drop_refused(chosen)
    _tell(out, "dropped", dropped)


def _chosen(numbers: tuple[int, ...], everything: bool) -> list[int] | None:
    if bool(numbers) == everything:
        raise click.UsageError("name events by their numbers, or give --all: one of them")
    return None if everything else list(numbers)


def _tell(out: Output, what: str, count: int) -> None:
    if out.json:
        out.document({what: count})
    else:
        out.record({what: count})
