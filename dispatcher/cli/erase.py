"""`dispatcher erase`: payloads made unreadable for ever."""

from __future__ import annotations

import sys

import click

from dispatcher.cli.failure import a_finding
from dispatcher.cli.live import DEFAULT_TENANT, actor_option, opened
from dispatcher.cli.options import an_id, common_options
from dispatcher.cli.output import Output, shown
from dispatcher.cli.progress import Bar
from dispatcher.cli.times import a_time
from dispatcher.errors import Refused

REMEDY = "Run it again when their requests are over."


@click.command(short_help="Erase payloads for ever.")
@click.argument("event_id", required=False, metavar="[EVENT]", type=an_id)
@click.option("--endpoint", "endpoint_id", metavar="ID", type=an_id, help="Whose event, or events, it is.")
@click.option("--all", "everything", is_flag=True, help="All of an endpoint, or of a tenant.")
@click.option("--older-than", type=a_time, metavar="TIME", help="Those enqueued before: a time, or 30d ago.")
@click.option("--tenant", metavar="ID", help="Whose endpoint it is, or all of its. [default: default]")
@click.option("--yes", is_flag=True, help="Do not ask.")
@actor_option
@common_options
def erase(
    event_id: str | None,
    endpoint_id: str | None,
    everything: bool,
    older_than: int | None,
    tenant: str | None,
    yes: bool,
    actor: str | None,
    database: str,
    out: Output,
) -> None:
    """Make payloads, and what was answered to them, unreadable for ever; this cannot be undone.

    Of EVENT; or of an endpoint's or a tenant's events: --all that are there, or those --older-than a TIME
    such as 2026-11-30T20:00 (local unless it says otherwise), or an age such as 90s, 30m, 2h or 7d.

    A pending event is cancelled with it. One that is being sent is refused if it is named, else left; then
    the exit code is 1.
    """
    if (event_id is not None) + everything + (older_than is not None) != 1:
        raise click.UsageError("name an EVENT, or give --all, or --older-than: one of them")
    if event_id is None and endpoint_id is None and tenant is None:
        raise click.UsageError("say of which events: give --endpoint, or --tenant")
    # Not of an empty one: that would be everything, where a script forgot to set a variable.
    of = DEFAULT_TENANT if tenant is None else tenant
    with opened(database) as live:
        if event_id is not None:
            at = live.endpoint_of(event_id, tenant=of) if endpoint_id is None else endpoint_id
            confirm(f"the payload of {event_id} at {at}", yes)
            erased, left = live.erase(at, [event_id], tenant=of, actor=actor)
            told = {"tenant": of, "endpoint_id": at, "event_id": event_id}
        else:
            whose = f"tenant {of}" if endpoint_id is None else endpoint_id
            some = "all payloads" if older_than is None else "older payloads"
            confirm(f"{some} of {whose}", yes)
            with Bar("erasing") as bar:
                if endpoint_id is None:
                    erased, left = live.erase_tenant(of, older_than=older_than, actor=actor, progress=bar)
                else:
                    erased, left = live.erase(
                        endpoint_id, older_than=older_than, tenant=of, actor=actor, progress=bar
                    )
            told = {"tenant": of} if endpoint_id is None else {"tenant": of, "endpoint_id": endpoint_id}
    if out.json:
        out.document({**told, "erased": erased, "in_flight": left})
    elif event_id is not None:
        out.line(f"{event_id} is erased")
    else:
        out.record({"erased": erased, "in flight, left": left})
    if left:
        raise a_finding(out, f"{left} that are being sent were left as they are", REMEDY)


def confirm(what: str, yes: bool) -> None:
    """Ask, on a terminal, whether it is meant; raises Refused unless it is."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise Refused("not_confirmed", f"erasing {what} cannot be undone, and nobody was there to confirm it")
    print(shown(f"Erase {what}, for ever?"), "[y/N]", end=" ", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("not_confirmed", "it was not confirmed, and nothing was erased")
