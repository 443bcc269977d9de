"""`dispatcher endpoint`: where events go."""

from __future__ import annotations

from typing import Any

import click

from dispatcher.cli.options import an_id, common_options
from dispatcher.cli.output import Cell, Output

COLUMNS = ("endpoint_id", "state", "pending", "held", "delivered", "dead", "cancelled", "url")


@click.group()
def endpoint() -> None:
    """Show endpoints."""


@endpoint.command(name="list")
@common_options
def list_endpoints(database: str, out: Output) -> None:
    """List every endpoint with the number of its events in each state, in the order of registration."""
    from dispatcher.audit import standing

    found = standing.endpoints(database)
    if out.json:
        out.document(found)
    else:
        out.table(COLUMNS, [[each[column] for column in COLUMNS] for each in found])


@endpoint.command()
@click.argument("endpoint_id", metavar="ID", type=an_id)
@common_options
def show(endpoint_id: str, database: str, out: Output) -> None:
    """Show endpoint ID: its counts, what is due next, and its retry policy."""
    from dispatcher.audit import standing

    found = standing.endpoint(database, endpoint_id)
    if out.json:
        out.document(found)
    else:
        policy = found.pop("policy")
        out.record({**found, **policy_in_words(policy)})


def policy_in_words(policy: dict[str, Any]) -> dict[str, Cell]:
    ranges = (f"{low}" if low == high else f"{low}-{high}" for low, high in policy["retryable"])
    return {
        **policy,
        "waits": " ".join(map(str, policy["waits"])),
        "retryable": " ".join(ranges),
    }
