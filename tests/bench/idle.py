"""What a worker takes that has nothing to do: the CPU seconds of its process over ten seconds by the clock.

The process holds a dispatcher and its worker, started before, on a database with 100 endpoints and nothing
pending.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.bench.live import build, worker_elsewhere
from tests.bench.measure import arguments, in_turns, median_of, print_line, rounded, summary

ENDPOINTS = 100


def main() -> None:
    given = arguments(__doc__, 10)
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "idle.db"
        build(database, {f"endpoint-{n}": f"http://127.0.0.1/{n}" for n in range(ENDPOINTS)}, [])
        with worker_elsewhere(database) as worker:

            def idle() -> dict[str, float]:
                worker.send(None)
                cpu, start = worker.recv(), time.monotonic()
                time.sleep(given.size)
                worker.send(None)
                return {"cpu": worker.recv() - cpu, "clock": time.monotonic() - start}

            rounds = in_turns({"idle": idle}, given.rounds)["idle"]
    line = {
        "ratio": rounded(median_of(rounds, "cpu") / median_of(rounds, "clock")),
        "idle_cpu_seconds": summary([one["cpu"] for one in rounds]),
        "seconds": given.size,
        "endpoints": ENDPOINTS,
    }
    print_line("idle", "idle_cpu_seconds / seconds < 0.01", line)


if __name__ == "__main__":
    main()
