"""What an endpoint that hangs takes from the others.

100 endpoints with ten events each, all due: the time from the start of a worker in this process until the
last of them has arrived and been recorded. backlog: besides, one endpoint has 200,000 events pending, which
were there first, and its receiver reads requests and never answers. alone: the same without them.

Each round delivers from a new copy of a database on disk; the receiver is a process of its own.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.bench.live import build, fresh, opened, until_recorded
from tests.bench.measure import arguments, in_turns, median_of, print_line, rounded, summary
from tests.bench.receiver import Receiver

EVENTS_EACH = 10


class Hanging:
    """Both databases, and what each round takes on a copy."""

    def __init__(self, folder: Path, receiver: Receiver, backlog: int, others: int) -> None:
        self._receiver = receiver
        self._folder = folder
        self._events = others * EVENTS_EACH
        names = [f"other-{n}" for n in range(others)]
        urls = {name: f"{receiver.url}/{name}" for name in names} | {"hanging": f"{receiver.url}/hang"}
        for side, hanging in (("backlog", backlog), ("alone", 0)):
            build(folder / side, urls, ["hanging"] * hanging + names * EVENTS_EACH)

    def backlog(self) -> dict[str, float]:
        return self._delivered("backlog")

    def alone(self) -> dict[str, float]:
        return self._delivered("alone")

    def _delivered(self, side: str) -> dict[str, float]:
        copy = fresh(self._folder / side, self._folder / "measured.db")
        with opened(copy) as live:
            self._receiver.expect(self._events)
            start = time.monotonic()
            with live.worker(grace=0):
                arrived = self._receiver.arrived()
                end = max(arrived.at, until_recorded(copy, "other-%"))
        return {"seconds": end - start, "hanging": arrived.hanging}


def main() -> None:
    given = arguments(__doc__, 200_000, endpoints=100)
    with tempfile.TemporaryDirectory() as folder, Receiver() as receiver:
        hanging = Hanging(Path(folder), receiver, given.size, given.others["endpoints"])
        measured = in_turns({"backlog": hanging.backlog, "alone": hanging.alone}, given.rounds)
    assert all(one["hanging"] for one in measured["backlog"]), "nothing was hanging"
    line = {
        "ratio": rounded(median_of(measured["backlog"], "seconds") / median_of(measured["alone"], "seconds")),
        **{f"{side}_seconds": summary([one["seconds"] for one in all_]) for side, all_ in measured.items()},
        "hanging_requests": median_of(measured["backlog"], "hanging"),
        "backlog": given.size,
        "others": given.others["endpoints"] * EVENTS_EACH,
    }
    print_line("hanging", "backlog_seconds / alone_seconds <= 1.2", line)


if __name__ == "__main__":
    main()
