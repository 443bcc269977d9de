"""`dispatcher demo`: real deliveries, to four customers within this process, in some ten seconds."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, NamedTuple

import click

from dispatcher.cli.failure import a_finding
from dispatcher.cli.live import opened
from dispatcher.cli.livelog import logging_to_stderr
from dispatcher.cli.options import database_option, json_option
from dispatcher.cli.output import Output
from dispatcher.cli.stopping import stopping
from dispatcher.errors import DatabaseMissing, DispatcherError, UsageError

if TYPE_CHECKING:
    from dispatcher.audit.verify import Verification
    from dispatcher.cli.customers import Customer, Kind
    from dispatcher.live import Dispatcher

HERE = "127.0.0.0/8"
LONGEST_SECONDS = 60.0
LOOK_SECONDS = 0.1


@click.command(short_help="See it deliver, in ten seconds.")
@database_option("demo.db")
@json_option
def demo(database: str, out: Output) -> None:
    """Deliver events to four receivers on 127.0.0.1, each with a trouble of its own, and show the outcome.

    The log goes to a new SQLite file, to be looked at afterwards. Exits with 1 if anything is not as it
    has to be.
    """
    refuse_a_log(database)
    from dispatcher.audit.verify import verify
    from dispatcher.cli.customers import KINDS, Customer

    customers = [Customer(kind) for kind in KINDS]
    try:
        # What the worker warns of is shown here in another way.
        with logging_to_stderr("error", as_json=False), opened(database, (HERE,), create=True) as live:
            if not out.json:
                introduce(KINDS, out)
            prepare(live, customers)
            deliver(live, database, customers, out)
            outcomes = [Outcome.of(customer, live) for customer in customers]
            verified = verify(database)
    finally:
        for customer in customers:
            customer.receiver.close()
    if out.json:
        out.document(as_json(outcomes, verified))
    else:
        tell(outcomes, verified, database, out)
    troubles = [trouble for outcome in outcomes for trouble in outcome.troubles]
    if troubles or verified.findings:
        found = "; ".join([*troubles, *(f"the log: {finding.message}" for finding in verified.findings)])
        raise a_finding(out, f"not all is as it has to be: {found}", "See what `dispatcher log tail` says.")


def refuse_a_log(database: str) -> None:
    from dispatcher import head

    try:
        position, _, _ = head(database).partition(":")
    except DatabaseMissing:
        return
    if position != "0":
        raise UsageError(
            f"{database} holds a log already",
            "Name another file with --database, or delete this one if it is an earlier demo's.",
        )


def introduce(kinds: tuple[Kind, ...], out: Output) -> None:
    out.line("Four endpoints on 127.0.0.1, five events each, retried after 1, 2, 2... seconds:")
    for kind in kinds:
        out.line(f"  {kind.endpoint_id + ':':<9}{kind.habit}")
    out.line("")


def prepare(live: Dispatcher, customers: list[Customer]) -> None:
    """Register the endpoints, and enqueue their events."""
    from dispatcher.cli.customers import POLICY

    for customer in customers:
        url = f"{customer.receiver.url}/hooks"
        customer.receiver.secrets.append(live.register(customer.kind.endpoint_id, url, policy=POLICY))
    for customer in customers:
        for n, event_id in enumerate(customer.kind.events, 1):
            live.enqueue(customer.kind.endpoint_id, {"order": n}, event_id=event_id)


def deliver(live: Dispatcher, database: str, customers: list[Customer], out: Output) -> None:
    """Let a worker deliver, and show it, until nothing is pending or it takes too long."""
    from dispatcher.audit import standing
    from dispatcher.cli.recorded import Recorded
    from dispatcher.cli.scoreboard import Scoreboard

    for customer in customers:
        customer.open_after(0)
    recorded, began = Recorded(database), time.monotonic()
    with Scoreboard(out) as board, stopping() as stop, live.worker() as worker:
        while True:
            elapsed = time.monotonic() - began
            for customer in customers:
                customer.open_after(elapsed)
            # First these: whatever they count is among the attempts that are read after them.
            with standing.standing(database) as state:
                endpoints = standing.endpoints(state)
            board.show(endpoints, recorded.new())
            if not any(endpoint["pending"] for endpoint in endpoints) or elapsed > LONGEST_SECONDS:
                return
            if worker.join(0):
                raise worker.failure or DispatcherError("the worker ended by itself")
            if stop.wait(LOOK_SECONDS):
                raise KeyboardInterrupt


class Outcome(NamedTuple):
    """What came of one customer's events."""

    endpoint_id: str
    arrived: list[tuple[str, int]]
    """(event, how often), in order."""
    delivered: int
    dead: list[dict[str, object]]
    troubles: list[str]

    @classmethod
    def of(cls, customer: Customer, live: Dispatcher) -> Outcome:
        name = customer.kind.endpoint_id
        states = [live.status(name, event_id)["state"] for event_id in customer.kind.events]
        dead = live.dead_letters(name)
        delivered = states.count("delivered")
        troubles = customer.troubles([letter["event_id"] for letter in dead], delivered)
        return cls(name, customer.order, delivered, dead, troubles)


def as_json(outcomes: list[Outcome], verified: Verification) -> dict[str, object]:
    told = [outcome._asdict() for outcome in outcomes]
    findings = [finding._asdict() for finding in verified.findings]
    ok = not findings and not any(outcome.troubles for outcome in outcomes)
    log = {"entries": verified.entries, "head": verified.head, "findings": findings}
    return {"ok": ok, "endpoints": told, "log": log}


def tell(outcomes: list[Outcome], verified: Verification, database: str, out: Output) -> None:
    from dispatcher.cli.customers import POISON, RETRIED

    def times(event_id: str, count: int) -> str:
        return event_id if count == 1 else f"{event_id} (x{count})"

    out.line("")
    out.line("What arrived, in this order, every request signed:")
    for one in outcomes:
        out.line(f"  {one.endpoint_id + ':':<9}{', '.join(times(*event) for event in one.arrived)}")
    for one in outcomes:
        for letter in one.dead:
            out.line(f"Dead: {letter['event_id']}, refused by {one.endpoint_id} with {letter['last_status']}")
    out.line(f"Log: {verified.entries} entries, {len(verified.findings)} findings, head {verified.head}")
    out.line("")
    out.line("Try next:")
    where = f"--database {shlex.quote(database)}"
    for command in (f"history {RETRIED}", f"status {POISON}", "log verify"):
        out.line(f"  dispatcher {command} {where}")
