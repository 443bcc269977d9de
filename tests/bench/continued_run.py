"""What one operation costs on a long log, against a short one of the same shape.

Each side is one call of `run` with one operation on a log that is there already: 1,000,000 entries, or 2,000.
Both end with the same 1,000 pending events at the same 100 endpoints; the long one has some 1,250 times as
many deliveries done before. The four operations: enqueue, status of a pending event, a process that attempts
exactly one event, disable.

Every measurement is a process of its own with a copy of the file of its own, synced to disk and in the
system's cache on both sides; before the call that process has imported everything and run one small example
in memory. Seconds are those of the call alone, most of which is waiting for the disk: cpu_seconds leave that
out. Peak memory is the process's from its start (getrusage), and the increase is over its peak before the
call.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.measure import (
    arguments,
    durable,
    in_child,
    in_turns,
    median_of,
    print_line,
    rounded,
    summary,
)
from tests.bench.workload import endpoint

SHORTER = 500
"""How many times the short log goes into the long one."""


class Logs:
    """The long and the short log, built once, and what one operation on a copy of each takes."""

    def __init__(self, folder: Path, entries: int) -> None:
        self._folder = folder
        self.entries = {"long": entries, "short": entries // SHORTER}
        self.pending = max(10, self.entries["short"] // 20 * 10)
        self._ts: dict[str, int] = {}
        for log, size in self.entries.items():
            request = {
                "history": "pending_after",
                "given": [size, self.pending],
                "database": str(folder / log),
            }
            built = in_child(request)
            assert built["refused"] == 0
            self._ts[log] = built["ts"] + 20
            durable(folder / log)

    def one(self, log: str, operation: list[Any]) -> dict[str, Any]:
        """One operation, at the time when one event is due, on a fresh copy."""
        copy = self._folder / "measured.db"
        shutil.copyfile(self._folder / log, copy)
        durable(copy)
        name, *rest = operation
        answer = in_child({"operations": [[name, self._ts[log], *rest]], "database": str(copy)})
        assert answer["refused"] == 0, answer
        assert name != "process" or len(answer["last"]) == 1, answer
        return answer

    def operations(self) -> list[list[Any]]:
        return [
            ["enqueue", endpoint(0), "new", [200]],
            ["status", "wait-0-5"],
            ["process"],
            ["disable", endpoint(0)],
        ]


def compared(logs: Logs, operation: list[Any], rounds: int) -> dict[str, Any]:
    """The two ratios of an operation, and what they come from."""
    measured = in_turns(
        {"long": lambda: logs.one("long", operation), "short": lambda: logs.one("short", operation)}, rounds
    )
    long, short = measured["long"], measured["short"]
    line: dict[str, Any] = {
        "ratio": rounded(median_of(long, "seconds") / median_of(short, "seconds")),
        "cpu_ratio": rounded(median_of(long, "cpu_seconds") / median_of(short, "cpu_seconds")),
        "memory_ratio": rounded(median_of(long, "peak_kib") / median_of(short, "peak_kib")),
    }
    for log, answers in measured.items():
        line[f"{log}_seconds"] = summary([answer["seconds"] for answer in answers])
        line[f"{log}_cpu_seconds"] = summary([answer["cpu_seconds"] for answer in answers])
        line[f"{log}_peak_kib"] = summary([answer["peak_kib"] for answer in answers])
        line[f"{log}_increase_kib"] = summary(
            [answer["peak_kib"] - answer["baseline_kib"] for answer in answers]
        )
    return line


def main() -> None:
    given = arguments(__doc__, 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        logs = Logs(Path(folder), given.size)
        operations = {
            operation[0]: compared(logs, operation, given.rounds) for operation in logs.operations()
        }
    line = {
        "ratio": max(operation["ratio"] for operation in operations.values()),
        "memory_ratio": max(operation["memory_ratio"] for operation in operations.values()),
        "entries": logs.entries,
        "pending": logs.pending,
        "operations": operations,
    }
    print_line("continued_run", "long_seconds / short_seconds <= 3 and long_peak / short_peak <= 3", line)


if __name__ == "__main__":
    main()
