"""`dispatcher status`, `history` and `dead-letters`: what became of events."""

from __future__ import annotations

import click

from dispatcher.cli.options import an_id, common_options
from dispatcher.cli.output import Output


@click.command(short_help="Show how an event stands.")
@click.argument("event_id", metavar="ID", type=an_id)
@common_options
def status(event_id: str, database: str, out: Output) -> None:
    """Show the state of event ID, its attempts, and when the next one is due."""
    from dispatcher.audit import standing

    found = standing.status(database, event_id)
    if out.json:
        out.document(found)
    else:
        out.record(found)


@click.command(short_help="Show what happened to an event.")
@click.argument("event_id", metavar="ID", type=an_id)
@common_options
def history(event_id: str, database: str, out: Output) -> None:
    """Show every entry of the log about event ID: position, ts and what happened."""
    from dispatcher.audit.history import as_json, sentence
    from dispatcher.audit.history import history as entries_of

    found = entries_of(database, event_id)
    if out.json:
        out.document([as_json(row) for row in found])
    else:
        told = [(row.position, row.ts, sentence(row)) for row in found]
        out.table(("position", "ts", "what happened"), told)


@click.command(short_help="List dead events.")
@click.argument("endpoint_id", metavar="[ENDPOINT]", required=False, type=an_id)
@common_options
def dead_letters(endpoint_id: str | None, database: str, out: Output) -> None:
    """List the dead events of ENDPOINT, or of all, in the order of their latest death.

    Columns: event, endpoint, attempts, last status, and the position of its death in the log.
    """
    from dispatcher.audit import standing

    found = standing.dead_letters(database, endpoint_id)
    if out.json:
        out.document(found)
        return
    columns = ("event_id", "endpoint_id", "attempts", "last_status", "position")
    out.table(columns, ([dead[column] for column in columns] for dead in found))
