"""`dispatcher enqueue`, `publish`, `revive` and `cancel`: what is asked for events."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from dispatcher.cli.deliveries import event_options
from dispatcher.cli.live import actor_option, opened, tenant_option
from dispatcher.cli.options import an_id, common_options
from dispatcher.cli.output import Output
from dispatcher.cli.sensitive import HINT, Discreet, Sensitive, name_and_value
from dispatcher.cli.times import a_time
from dispatcher.errors import UsageError

LARGEST = 256 * 1024


def content_options(command: Callable[..., None]) -> Callable[..., None]:
    """What `enqueue` and `publish` share: the command is called with `body`, and the rest by name."""

    @wraps(command)
    def called(payload: str | None, file: str | None, headers: tuple[str, ...], **given: Any) -> None:
        if (payload is None) == (file is None):
            raise click.UsageError("give a PAYLOAD, - for standard input, or --file: one of them")
        body = read(file) if payload is None or payload == "-" else os.fsencode(payload)
        command(body=body, headers=[name_and_value(header, "--header") for header in headers], **given)

    options = (
        click.argument("payload", required=False, metavar="[PAYLOAD|-]"),
        click.option("--file", metavar="FILE", help="Send what this file holds."),
        click.option(
            "--event-id",
            metavar="ID",
            type=an_id,
            help="Its id: a repeat is accepted once. [default: a new one]",
        ),
        click.option("--content-type", metavar="TYPE", help="[default: application/json]"),
        click.option(
            "--header",
            "headers",
            multiple=True,
            type=Sensitive(),
            metavar="'NAME: VALUE'|@FILE",
            help="Send this header. Repeatable.",
        ),
        click.option("--order-key", metavar="TEXT", help="Keep order only with events of the same key."),
    )
    for option in reversed(options):
        called = option(called)
    return called


@click.command(cls=Discreet, short_help="Accept an event for delivery.", epilog=HINT)
@click.argument("endpoint_id", metavar="ENDPOINT", type=an_id)
@content_options
@click.option("--type", metavar="TYPE", help="Its type: kept with it.")
@tenant_option
@actor_option
@common_options
def enqueue(endpoint_id: str, body: bytes, tenant: str, database: str, out: Output, **given: Any) -> None:
    """Accept an event for ENDPOINT: PAYLOAD, the content of a file, or standard input (-), byte for byte.

    Prints its id once it is durable. Whichever worker runs on the database delivers it.
    """
    with opened(database) as live:
        accepted = live.enqueue(endpoint_id, body, tenant=tenant, **given)
    if out.json:
        out.document({"tenant": tenant, "endpoint_id": endpoint_id, "event_id": accepted})
    else:
        out.line(accepted)


@click.command(cls=Discreet, short_help="Accept an event for all that want it.", epilog=HINT)
@click.argument("type", metavar="TYPE")
@content_options
@tenant_option
@actor_option
@common_options
def publish(type: str, body: bytes, tenant: str, database: str, out: Output, **given: Any) -> None:
    """Accept an event of TYPE for each endpoint that wants it, as `endpoint add` and `set` say with --type.

    PAYLOAD, the content of a file, or standard input (-) is sent in each endpoint's format. Prints the
    event's id once it is durable, then the endpoints that want it, if there are any.
    """
    with opened(database) as live:
        published = live.publish(type, body, tenant=tenant, **given)
    if out.json:
        out.document({"tenant": tenant, **published._asdict()})
    else:
        out.line(published.event_id)
        for endpoint_id in published.endpoints or ():
            out.line(endpoint_id)


def read(file: str | None) -> bytes:
    """A payload from a file, or from standard input; no more than shows that it is too long."""
    if file is None:
        return sys.stdin.buffer.read(LARGEST + 1)
    try:
        with open(file, "rb") as opened_file:
            return opened_file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", "Name a file that can.") from None


@click.command(short_help="Send dead events again.")
@click.argument("endpoint_id", metavar="ENDPOINT", type=an_id)
@click.argument("event_ids", nargs=-1, metavar="[EVENT]...", type=an_id)
@click.option("--all", "everything", is_flag=True, help="All that are dead now.")
@click.option(
    "--since", type=a_time, metavar="TIME", help="Those that died then or later: a time, or 2h ago."
)
@click.option("--until", type=a_time, metavar="TIME", help="Those that died before.")
@tenant_option
@actor_option
@common_options
def revive(
    endpoint_id: str,
    event_ids: tuple[str, ...],
    everything: bool,
    since: int | None,
    until: int | None,
    tenant: str,
    actor: str | None,
    database: str,
    out: Output,
) -> None:
    """Make dead events of ENDPOINT pending again, with no attempts, at their original places.

    Name them, or say --all, or when they died: TIME is such as 2026-11-30T20:00 (local unless it says
    otherwise), or an age such as 90s, 30m, 2h or 7d. Prints how many.
    """
    spanned = since is not None or until is not None
    if bool(event_ids) + everything + spanned != 1:
        raise click.UsageError("name events, or give --all, or --since and --until: one of them")
    with opened(database) as live:
        revived = live.revive(
            endpoint_id, event_ids or None, died_since=since, died_until=until, tenant=tenant, actor=actor
        )
    if out.json:
        out.document({"tenant": tenant, "endpoint_id": endpoint_id, "revived": revived})
    else:
        out.record({"revived": revived})


@click.command(short_help="Give up a pending event.")
@event_options
@actor_option
@common_options
def cancel(
    event_id: str, endpoint_id: str | None, tenant: str, actor: str | None, database: str, out: Output
) -> None:
    """Give up event ID: it is not attempted any more. Refused while its request is under way."""
    with opened(database) as live:
        at = live.endpoint_of(event_id, tenant=tenant) if endpoint_id is None else endpoint_id
        live.cancel(at, event_id, tenant=tenant, actor=actor)
    if out.json:
        out.document({"tenant": tenant, "endpoint_id": at, "event_id": event_id, "state": "cancelled"})
    else:
        out.line(f"{event_id} is cancelled")
