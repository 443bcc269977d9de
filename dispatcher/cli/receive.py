"""`dispatcher receive`: a receiver, for development."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from dispatcher.cli.log import waiting
from dispatcher.cli.options import json_option
from dispatcher.cli.output import Output, Table, flush
from dispatcher.cli.sensitive import Sensitive
from dispatcher.cli.stopping import Stop, stopping
from dispatcher.errors import UsageError

if TYPE_CHECKING:
    from dispatcher.cli.receiver import Arrival, Receiver

COLUMNS = ("time", "method", "path", "event_id", "attempt", "signature", "answer", "body")
BODY_SHOWN = 60


def statuses(value: str) -> tuple[int, ...]:
    """Apart by commas."""
    try:
        answers = tuple(map(int, value.split(",")))
    except ValueError:
        answers = ()
    if not answers or any(answer != 0 and not 200 <= answer <= 599 for answer in answers):
        raise click.BadParameter("give statuses of 200 to 599, or 0, apart by commas: 503,503,200.")
    return answers


@click.command(short_help="Receive webhooks, for development.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes any.")
@click.option(
    "--answer",
    "answers",
    type=statuses,
    default="200",
    show_default=True,
    metavar="STATUS,...",
    help="What the attempts of each event get, the last one repeating; 0 closes the connection.",
)
@click.option(
    "--secret",
    "secrets",
    type=Sensitive(),
    multiple=True,
    envvar="DISPATCHER_SECRET",
    show_envvar=True,
    metavar="SECRET|@FILE|@-",
    help="Answer 401 to what is not signed with it, or with another one given.",
)
@click.option(
    "--delay", type=click.FloatRange(0, 3600), default=0.0, metavar="SECONDS", help="Before each answer."
)
@json_option
def receive(port: int, answers: tuple[int, ...], secrets: tuple[str, ...], delay: float, out: Output) -> None:
    """Receive webhooks on 127.0.0.1, and show them, until Ctrl-C.

    Columns: time, method, path, event, which of its attempts this is, signature, answer, and the
    beginning of the body. A signature is verified or invalid where secrets are given, else unchecked.
    """
    from dispatcher.cli.receiver import Receiver

    check(secrets)
    try:
        receiver = Receiver(port, answers=answers, secrets=secrets, delay=delay)
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be used: {error.strerror}", "Name another one with --port, or 0 for any."
        ) from None
    with stopping() as stop, closing(receiver):
        receiver.listen()
        say(out, {"listening": receiver.url}, f"listening on {receiver.url}, until Ctrl-C")
        counted = show_arrivals(receiver, out, stop)
    if out.terminal and not out.json:
        print()  # What a terminal shows of Ctrl-C has a line of its own.
    summarize(out, counted)


def check(secrets: tuple[str, ...]) -> None:
    """Raises InvalidSecret for one that is none."""
    from dispatcher.delivery.signing import parse_verifier

    for secret in secrets:
        parse_verifier(secret)


def show_arrivals(receiver: Receiver, out: Output, stop: Stop) -> Counter[str]:
    """Show what arrives until the process is asked to end; then how many there were of each kind."""
    table = None if out.json else Table(out, COLUMNS)
    counted: Counter[str] = Counter()
    wait = waiting()
    while stop.signal is None:
        wait()
        while not receiver.arrivals.empty():
            arrival = receiver.arrivals.get()
            counted.update(("requests", f"answered {arrival.answer}", f"signature {arrival.signature}"))
            if table is None:
                out.document(as_json(arrival))
            else:
                table.add([row(arrival)])
    flush()
    return counted


def row(arrival: Arrival) -> tuple[str | int | None, ...]:
    at = datetime.fromtimestamp(arrival.at).strftime("%H:%M:%S.%f")[:-3]
    body = arrival.body.decode(errors="backslashreplace")
    return (
        at,
        *(arrival.method, arrival.path, arrival.event_id or None, arrival.attempt),
        *(arrival.signature, arrival.answer),
        body if len(body) <= BODY_SHOWN else f"{body[:BODY_SHOWN]}...",
    )


def as_json(arrival: Arrival) -> dict[str, object]:
    at = datetime.fromtimestamp(arrival.at, UTC).isoformat(timespec="milliseconds")
    return arrival._asdict() | {
        "at": at.replace("+00:00", "Z"),
        "event_id": arrival.event_id or None,
        "body": arrival.body.decode(errors="replace"),
    }


def summarize(out: Output, counted: Counter[str]) -> None:
    requests = counted.pop("requests", 0)
    kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(counted.items()))
    say(out, {"requests": requests, **counted}, f"requests: {requests}" + (kinds and f", {kinds}"))


def say(out: Output, document: dict[str, object], text: str) -> None:
    """What is no arrival goes to stderr."""
    if sys.stderr is not None:
        print(json.dumps(document) if out.json else text, file=sys.stderr, flush=True)
