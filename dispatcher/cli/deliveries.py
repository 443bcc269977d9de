"""`dispatcher status`, `history` and `dead-letters`: what became of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dispatcher.cli import times
from dispatcher.cli.live import DEFAULT_TENANT, any_tenant_option, as_tenant_option, tenant_option
from dispatcher.cli.options import an_id, common_options
from dispatcher.cli.output import Cell, Output

if TYPE_CHECKING:
    from dispatcher.core.entries import Entry


def event_options(command: Callable[..., None]) -> Callable[..., None]:
    """An event by its id: the command is called with `event_id`, `endpoint_id` (or None) and `tenant`."""
    command = tenant_option(command)
    command = click.option(
        "--endpoint", "endpoint_id", metavar="ID", type=an_id, help="Where several have an event of this id."
    )(command)
    return click.argument("event_id", metavar="ID", type=an_id)(command)


@click.command(short_help="Show how an event stands.")
@event_options
@as_tenant_option
@common_options
def status(
    event_id: str, endpoint_id: str | None, tenant: str, as_tenant: bool, database: str, out: Output
) -> None:
    """Show the state of event ID, its attempts, and when the next one is due.

    A live one explains itself: why, what it waits behind and what waits for it, and whether a request is
    under way.
    """
    from dispatcher.audit import standing
    from dispatcher.audit.names import event_name
    from dispatcher.audit.tenant_view import status_for_tenant

    with standing.standing(database) as state:
        if state.kind == "live":
            found = standing.status_of(state, tenant, event_id, endpoint_id)
        else:
            found = standing.status(state, event_name(state, tenant, event_id, endpoint_id))
    if as_tenant:
        found = status_for_tenant(found)
    if out.json:
        out.document(found)
    else:
        out.record(found if state.kind == "simulated" else status_in_words(found))


def status_in_words(found: dict[str, Any]) -> dict[str, Cell]:
    """What a live event's status comes to; only what is the case."""
    from dispatcher.audit.standing import MOST_COUNTED

    words: dict[str, Cell] = {
        "event": found["event_id"],
        "endpoint": found["endpoint_id"] or "not yet chosen",
    }
    if found["tenant"] != DEFAULT_TENANT:
        words["tenant"] = found["tenant"]
    if found["event_type"] is not None:
        words["type"] = found["event_type"]
    words["state"] = found["state"]
    if "accepted_at" in found:
        words["accepted"] = times.moment(found["accepted_at"])
        if found["refused"] is not None:
            words["refused because"] = found["refused"]
        return words
    words["attempts"] = f"{found['attempts']} of {found['max_attempts']}"
    if found["in_flight_since"] is not None:
        by = f", by {found['worker']}" if "worker" in found else ""
        lasting = times.span(times.now() - found["in_flight_since"])
        words["in flight"] = f"attempt {found['attempts'] + 1}, for {lasting}{by}"
    elif found["next_attempt_at"] is not None:
        due = times.ahead(found["next_attempt_at"])
        behind = found["waits_behind"]
        words["next attempt"] = (
            due if behind is None else f"after {behind}" + ("" if due == "now" else f", {due}")
        )
    if found["state"] == "held":
        words["held because"] = f"its endpoint is disabled: {found['disabled']}"
    if found["last_status"] is not None:
        error = f" ({found['last_error']})" if found["last_error"] else ""
        words["last answer"] = f"{found['last_status'] or 'none'}{error}"
    if found["waits_behind"] is not None:
        words["waits behind"] = found["waits_behind"]
    if found["blocks"]:
        count = f"{found['blocks']}" + (" or more" if found["blocks"] == MOST_COUNTED else "")
        words["blocks"] = f"{count} event{'' if count == '1' else 's'} behind it"
    if found["erased"]:
        words["payload"] = "erased" if found["scrubbed"] else "erased, not yet scrubbed"
    return words


@click.command(short_help="Show what happened to an event.")
@event_options
@as_tenant_option
@common_options
def history(
    event_id: str, endpoint_id: str | None, tenant: str, as_tenant: bool, database: str, out: Output
) -> None:
    """Show every entry of the log about event ID: position, ts and what happened."""
    from dispatcher.audit.history import as_json, sentence
    from dispatcher.audit.history import history as entries_of
    from dispatcher.audit.names import event_name, without_tenant
    from dispatcher.audit.standing import standing
    from dispatcher.audit.tenant_view import entry_for_tenant, for_tenant
    from dispatcher.log.read import entry_of

    with standing(database) as state:
        found = entries_of(state, event_name(state, tenant, event_id, endpoint_id))
    if out.json:
        entries = [as_json(row) for row in found]
        if state.kind == "live":
            entries = [without_tenant(entry) for entry in entries]
        out.document([entry_for_tenant(entry) for entry in entries] if as_tenant else entries)
        return
    columns = ("position", "ts", "what happened")
    if state.kind == "simulated":
        out.table(columns, [(row.position, row.ts, sentence(row)) for row in found])
        return
    if as_tenant:
        told = [(times.moment(row.ts), in_words(for_tenant(entry_of(row)))) for row in found]
        out.table(columns[1:], told)
    else:
        out.table(columns, [(row.position, times.moment(row.ts), in_words(entry_of(row))) for row in found])


def in_words(entry: Entry) -> str:
    """What a live entry says, with times and ids as people read them."""
    from msgspec.structs import replace

    from dispatcher.audit.history import describe

    endpoint_id = (entry.endpoint_id or "").rpartition("/")[2]
    return describe(replace(entry, endpoint_id=endpoint_id), times.moment)


@click.command(short_help="List dead events.")
@click.argument("endpoint_id", metavar="[ENDPOINT]", required=False, type=an_id)
@any_tenant_option
@as_tenant_option
@common_options
def dead_letters(
    endpoint_id: str | None, tenant: str | None, as_tenant: bool, database: str, out: Output
) -> None:
    """List the dead events of ENDPOINT, or of all, in the order of their latest death.

    Columns: event, endpoint, attempts, last status, and the position of its death in the log; live ones
    also tell the error, and when they died.
    """
    from dispatcher.audit import standing
    from dispatcher.audit.names import endpoint_name, told
    from dispatcher.audit.tenant_view import status_for_tenant

    with standing.standing(database) as state:
        name = None if endpoint_id is None else endpoint_name(state, tenant or DEFAULT_TENANT, endpoint_id)
        found = standing.dead_letters(state, name)
    columns: tuple[str, ...] = ("event_id", "endpoint_id", "attempts", "last_status", "position")
    if state.kind == "live":
        found = [one for one in map(told, found) if tenant in (None, one["tenant"])]
        columns = (*columns, "last_error", "died_at")
    if as_tenant:
        found = [status_for_tenant(one) for one in found]
        columns = tuple(column for column in columns if column != "position")
    if out.json:
        out.document(found)
        return
    for one in found if state.kind == "live" else ():
        one["endpoint_id"] = labelled(one)
        one["died_at"] = times.moment(one["died_at"])
    out.table(columns, ([one[column] for column in columns] for one in found))


def labelled(found: dict[str, Any]) -> str:
    """An endpoint's id, with its tenant unless that is the default one."""
    tenant, endpoint_id = found["tenant"], found["endpoint_id"]
    return str(endpoint_id) if tenant == DEFAULT_TENANT else f"{tenant}/{endpoint_id}"
