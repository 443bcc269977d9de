"""`dispatcher work`: the worker, as a process."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import click

from dispatcher.cli.failure import Failure, report
from dispatcher.cli.live import open_network_option, opened
from dispatcher.cli.livelog import LEVELS, LiveLine, logger, logging_to_stderr, tell
from dispatcher.cli.options import common_options
from dispatcher.cli.output import Output
from dispatcher.cli.stopping import Stop, stopping
from dispatcher.errors import DispatcherError, StorageError

if TYPE_CHECKING:
    from dispatcher.audit.standing import Backlog
    from dispatcher.worker.worker import Worker

TICK_SECONDS = 0.2
LOOK_SECONDS = 1.0
SUMMARY_SECONDS = 60.0
RATE_SECONDS = 5.0


@click.command(short_help="Deliver what is due, until told to stop.")
@click.option(
    "--grace",
    type=click.FloatRange(0, 3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long requests in flight may take to finish when it stops.",
)
@click.option("--concurrency", type=click.IntRange(1, 10_000), metavar="N", help="Requests at once.")
@click.option(
    "--per-tenant", type=click.IntRange(1, 10_000), metavar="N", help="Of one tenant, over all workers."
)
@click.option("--name", metavar="NAME", help="What the log calls this worker. [default: HOST/PID]")
@open_network_option
@click.option("--until-idle", is_flag=True, help="End when nothing is due now.")
@click.option(
    "--log-level", type=click.Choice(LEVELS), help="[default: info; on a terminal warning, above a live line]"
)
@common_options
def work(
    grace: float,
    concurrency: int | None,
    per_tenant: int | None,
    name: str | None,
    open_networks: tuple[str, ...],
    until_idle: bool,
    log_level: str | None,
    database: str,
    out: Output,
) -> None:
    """Deliver what is due, signed and in order, until Ctrl-C or SIGTERM.

    Then nothing more is begun, requests in flight may finish within the grace, and the rest is left to
    the next worker. A second signal ends it at once. Several workers may share a database, which is made
    if there is none.

    On a terminal it shows how it goes; anywhere else, or with --json, it logs on stderr, an object a line.
    """
    as_json = out.json or sys.stderr is None or not sys.stderr.isatty()
    chosen: dict[str, Any] = {"concurrency": concurrency, "per_tenant": per_tenant, "name": name}
    options = {option: value for option, value in chosen.items() if value is not None}
    try:
        with (
            stopping() as stop,
            logging_to_stderr(log_level, as_json=as_json) as line,
            opened(database, open_networks, create=True) as live,
            live.worker(grace=grace, **options) as worker,
        ):
            Shift(database, worker, line).last(stop, grace, until_idle=until_idle)
    except DispatcherError as error:
        if not as_json:
            raise
        # Also where --json was not asked for: every line of the log is JSON.
        raise click.exceptions.Exit(report(Failure.of(error), as_json=True)) from None


class Shift:
    """A worker at work, and what is told of it."""

    def __init__(self, database: str, worker: Worker, line: LiveLine | None) -> None:
        self._database = database
        self._worker = worker
        self._line = line
        self._backlog: Backlog | None = None
        self._attempts: deque[tuple[float, int]] = deque()
        self._looked_at = self._summed_up_at = time.monotonic()

    def last(self, stop: Stop, grace: float, *, until_idle: bool) -> None:
        """Until the process is asked to end, or nothing is due. Raises what ended the worker by itself."""
        tell("started", f"worker {self._worker.name} started", worker=self._worker.name)
        self._look()
        while not stop.wait(TICK_SECONDS):
            if self._worker.join(0):
                raise self._worker.failure or StorageError("the worker ended by itself")
            if self._line is not None:
                self._line.draw(self._progress())
            now = time.monotonic()
            if until_idle or now - self._looked_at >= LOOK_SECONDS:
                self._looked_at = now
                self._look()
            if now - self._summed_up_at >= SUMMARY_SECONDS:
                self._summed_up_at = now
                self._tell_figures("summary")
            if until_idle and self._is_idle():
                break
        self._end(stop, grace)

    def _end(self, stop: Stop, grace: float) -> None:
        in_flight = self._worker.figures().in_flight
        asked = "nothing is due" if stop.signal is None else stop.signal.name
        text = f"stopping ({asked}): up to {grace:g} s for {in_flight} in flight; once more ends it at once"
        tell("stopping", text, because=asked, in_flight=in_flight)
        if self._line is not None and in_flight:
            self._line.draw(text)
        self._worker.stop(grace)
        self._look()
        self._tell_figures("stopped")
        if self._line is not None:
            self._line.print(f"stopped: {self._figures()}")

    def _look(self) -> None:
        """See what the database says. A moment in which it cannot is not the end of the worker."""
        from dispatcher.audit import standing

        try:
            self._backlog = standing.backlog(self._database, mail=self._worker.sends_mail)
        except StorageError as error:
            logger.warning("%s. %s", error, error.remedy)

    def _tell_figures(self, event: str) -> None:
        figures = self._worker.figures()
        standing: dict[str, Any] = {
            "attempts": figures.attempts,
            "backlog": None if self._backlog is None else self._backlog.pending,
            "next_due_in": self._due_in(),
        }
        tell(event, f"{event}: {self._figures()}", **figures._asdict(), **standing)

    def _is_idle(self) -> bool:
        # A claimed event is due until its result is recorded: so this waits for what is in flight, too.
        due_in = self._due_in()
        return self._backlog is not None and (due_in is None or due_in > 0)

    def _due_in(self) -> int | None:
        return None if self._backlog is None else self._backlog.due_in(time.time_ns() // 1_000_000)

    def _progress(self) -> str:
        from dispatcher.cli.recorded import in_seconds

        now, figures = time.monotonic(), self._worker.figures()
        self._attempts.append((now, figures.attempts))
        while now - self._attempts[0][0] > RATE_SECONDS:
            self._attempts.popleft()
        since, before = self._attempts[0]
        rate = (figures.attempts - before) / (now - since) if now > since else 0.0
        due_in = self._due_in()
        due = "-" if due_in is None else "now" if due_in <= 0 else f"in {in_seconds(due_in)}"
        backlog = "?" if self._backlog is None else self._backlog.pending
        busy = f"{rate:.0f}/s  in flight {figures.in_flight}"
        return f"{busy}  {self._figures()}  backlog {backlog}  next due {due}"

    def _figures(self) -> str:
        """In words, without those that are seldom more than nothing."""
        figures = self._worker.figures()
        seldom = {"lost": figures.lost, "released": figures.released}
        told = {"delivered": figures.delivered, "retried": figures.retried, "dead": figures.dead}
        told |= {name: count for name, count in seldom.items() if count}
        return "  ".join(f"{name} {count}" for name, count in told.items())
