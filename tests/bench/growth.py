"""Whether an operation costs more in a long history than in a short one.

Each side is one call of `run` on a new file: 1,000,000 operations, or 20,000, of one mix of all seven kinds,
in which every thousand is like every other (`workload.mixed`). Every measurement is a process of its own,
which has made its operations, imported everything and run one small example before the clock starts; `run`
itself pauses the garbage collector. The ratio is that of the seconds per operation.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.bench.measure import arguments, in_child, in_turns, median_of, print_line, rounded, summary

SHORTER = 50


def one(path: Path, operations: int) -> dict[str, Any]:
    """A history on a new file."""
    path.unlink(missing_ok=True)
    answer = in_child({"history": "mixed", "given": [operations], "database": str(path)})
    assert answer["refused"] == 0, answer
    return {
        "microseconds": answer["seconds"] / operations * 1e6,
        "cpu_microseconds": answer["cpu_seconds"] / operations * 1e6,
        "seconds": answer["seconds"],
        "peak_kib": answer["peak_kib"],
        "entries": answer["entries"],
    }


def main() -> None:
    given = arguments(__doc__, 1_000_000)
    sizes = {"short": given.size // SHORTER, "long": given.size}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "measured.db"
        measured = in_turns(
            {"short": lambda: one(path, sizes["short"]), "long": lambda: one(path, sizes["long"])},
            given.rounds,
        )
    line: dict[str, Any] = {
        "ratio": rounded(
            median_of(measured["long"], "microseconds") / median_of(measured["short"], "microseconds")
        ),
        "cpu_ratio": rounded(
            median_of(measured["long"], "cpu_microseconds") / median_of(measured["short"], "cpu_microseconds")
        ),
        "operations": sizes,
        "entries": {side: answers[-1]["entries"] for side, answers in measured.items()},
    }
    for side, answers in measured.items():
        line[f"{side}_seconds"] = summary([answer["seconds"] for answer in answers])
        line[f"{side}_microseconds_per_operation"] = summary([answer["microseconds"] for answer in answers])
        line[f"{side}_peak_kib"] = median_of(answers, "peak_kib")
    print_line("growth", "long / short, by microseconds per operation, <= 1.3", line)


if __name__ == "__main__":
    main()
