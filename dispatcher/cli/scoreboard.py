"""Deliveries as they happen: a table on a terminal, a line for each attempt in a pipe, nothing in JSON."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dispatcher.cli.output import Output, flush

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from dispatcher.cli.recorded import Attempt

COUNTS = ("pending", "delivered", "dead")
COLUMNS = ("endpoint", "state", *COUNTS, "last attempt")


class Scoreboard:
    """What stands at each endpoint, and what its last attempt came to."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._last: dict[str, Attempt] = {}
        self._live: Live | None = None
        self._began = time.time_ns() // 1_000_000

    def __enter__(self) -> Scoreboard:
        if self._out.terminal and not self._out.json:
            from rich.live import Live

            self._live = Live(auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, endpoints: list[dict[str, Any]], attempts: Iterable[Attempt]) -> None:
        for attempt in attempts:
            self._last[attempt.endpoint_id] = attempt
            if self._live is None and not self._out.json:
                since = f"{(attempt.ts - self._began) / 1000:.1f}"
                event = attempt.endpoint_id, attempt.event_id, attempt.body.attempt
                self._out.table((), [(since, *event, attempt.outcome)])
        if self._live is not None:
            self._live.update(self._table(endpoints), refresh=True)
        elif not self._out.json:
            flush()

    def _table(self, endpoints: list[dict[str, Any]]) -> Table:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in COLUMNS:
            table.add_column(
                column, justify="right" if column in ("pending", "delivered", "dead") else "left"
            )
        for endpoint in endpoints:
            name = endpoint["endpoint_id"].rpartition("/")[2]
            last = self._last.get(name)
            pending, delivered, dead = (str(endpoint[state]) for state in COUNTS)
            if pending == "0":
                state = "[green]done[/]"
            elif last is not None and last.body.decision == "retry":
                state = "[yellow]retrying[/]"
            else:
                state = "delivering"
            dead = "0" if dead == "0" else f"[red]{dead}[/]"
            answer = "" if last is None else last.outcome
            table.add_row(name, state, pending, delivered, dead, answer)
        return table
