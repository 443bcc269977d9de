"""`dispatcher endpoint`: where events go."""

from __future__ import annotations

from typing import Any

import click

from dispatcher.cli import times
from dispatcher.cli.deliveries import labelled
from dispatcher.cli.endpoint_settings import add, rotate_secret, set_endpoint
from dispatcher.cli.failure import a_finding
from dispatcher.cli.live import (
    DEFAULT_TENANT,
    actor_option,
    any_tenant_option,
    as_tenant_option,
    open_network_option,
    opened,
    tenant_option,
)
from dispatcher.cli.options import an_id, common_options
from dispatcher.cli.output import Cell, Output

REMEDY = "Look at what answers at its url; `dispatcher endpoint set` changes how it is called."

COLUMNS = ("endpoint_id", "state", "pending", "held", "delivered", "dead", "cancelled", "url")


@click.group()
def endpoint() -> None:
    """Say where events go, pause and resume, and show how endpoints stand."""


endpoint.add_command(add)
endpoint.add_command(set_endpoint)


@endpoint.command(name="list", short_help="List endpoints.")
@any_tenant_option
@common_options
def list_endpoints(tenant: str | None, database: str, out: Output) -> None:
    """List every endpoint with the number of its events in each state, in the order of registration."""
    from dispatcher.audit import standing
    from dispatcher.audit.names import told

    with standing.standing(database) as state:
        found = standing.endpoints(state)
    if state.kind == "live":
        found = [one for one in map(told, found) if tenant in (None, one["tenant"])]
    if out.json:
        out.document(found)
        return
    for one in found if state.kind == "live" else ():
        one["endpoint_id"] = labelled(one)
    out.table(COLUMNS, [[each[column] for column in COLUMNS] for each in found])


@endpoint.command(short_help="Show one endpoint.")
@click.argument("endpoint_id", metavar="ID", type=an_id)
@tenant_option
@common_options
def show(endpoint_id: str, tenant: str, database: str, out: Output) -> None:
    """Show endpoint ID: its counts, what is due next, and its retry policy."""
    from dispatcher.audit import standing
    from dispatcher.audit.names import endpoint_name, told

    with standing.standing(database) as state:
        found = standing.endpoint(state, endpoint_name(state, tenant, endpoint_id))
    if state.kind == "live":
        found = told(found)
    if out.json:
        out.document(found)
        return
    policy = found.pop("policy")
    if state.kind == "live":
        found["disable_when_gone"] = "yes" if found["disable_when_gone"] else "no"
        if found.pop("tenant") != DEFAULT_TENANT:
            found["endpoint_id"] = f"{tenant}/{endpoint_id}"
        found["types"] = "all" if found["types"] is None else " ".join(found["types"]) or "none"
        found["body_format"] = found["body_format"] or "given"
        kept = found["keep_payloads"]
        found["keep_payloads"] = "forever" if kept is None else times.span(kept)
        if found["next_due_at"] is not None:
            found["next_due_at"] = times.ahead(found["next_due_at"])
        policy["waits"] = [times.span(wait) for wait in policy["waits"]]
        policy["retry_after_cap"] = times.span(policy["retry_after_cap"])
    out.record({**found, **policy_in_words(policy)})


def policy_in_words(policy: dict[str, Any]) -> dict[str, Cell]:
    ranges = (f"{low}" if low == high else f"{low}-{high}" for low, high in policy["retryable"])
    return {
        **policy,
        "waits": " ".join(map(str, policy["waits"])),
        "retryable": " ".join(ranges),
    }


@endpoint.command(short_help="Resume deliveries.")
@click.argument("endpoint_id", metavar="ID", type=an_id)
@click.option("--replay-dead", is_flag=True, help="Send its dead events again, too.")
@tenant_option
@actor_option
@common_options
def enable(
    endpoint_id: str, replay_dead: bool, tenant: str, actor: str | None, database: str, out: Output
) -> None:
    """Resume the deliveries of endpoint ID: all its pending events are due at once."""
    with opened(database) as live:
        revived = live.enable(endpoint_id, replay_dead=replay_dead, tenant=tenant, actor=actor)
    if out.json:
        out.document({"tenant": tenant, "endpoint_id": endpoint_id, "state": "enabled", "revived": revived})
    else:
        out.line(f"{endpoint_id} is enabled" + (f", dead events revived: {revived}" if replay_dead else ""))


@endpoint.command(short_help="Pause deliveries.")
@click.argument("endpoint_id", metavar="ID", type=an_id)
@click.option("--reason", metavar="TEXT", default="requested", show_default=True, help="Shown and kept.")
@tenant_option
@actor_option
@common_options
def disable(
    endpoint_id: str, reason: str, tenant: str, actor: str | None, database: str, out: Output
) -> None:
    """Pause the deliveries of endpoint ID: its events are accepted and held until it is enabled."""
    with opened(database) as live:
        live.disable(endpoint_id, reason, tenant=tenant, actor=actor)
    if out.json:
        told = {"tenant": tenant, "endpoint_id": endpoint_id, "state": "disabled", "disabled": reason}
        out.document(told)
    else:
        out.line(f"{endpoint_id} is disabled: {reason}")


@endpoint.command(short_help="Send one test request now.")
@click.argument("endpoint_id", metavar="ID", type=an_id)
@tenant_option
@as_tenant_option
@open_network_option
@common_options
def test(
    endpoint_id: str,
    tenant: str,
    as_tenant: bool,
    open_networks: tuple[str, ...],
    database: str,
    out: Output,
) -> None:
    """Send one signed {"type":"dispatcher.test"} to endpoint ID now, past its queue, even if it is disabled.

    Nothing is kept. The exit code is 1 unless the answer is a success.
    """
    with opened(database, open_networks) as live:
        found = live.test(endpoint_id, tenant=tenant, as_tenant=as_tenant)
    if out.json:
        out.document(found)
    else:
        answer = found["status"] or "none"
        error = f" ({found['error']})" if found["error"] else ""
        out.record(
            {
                "result": "delivered" if found["ok"] else "failed",
                "answer": f"{answer}{error}",
                "after": f"{found['duration_ms']} ms",
                "body kept": f"{found['body_bytes']} bytes",
            }
        )
    if not found["ok"]:
        raise a_finding(out, "the endpoint did not take the test request", REMEDY)


endpoint.add_command(rotate_secret)
