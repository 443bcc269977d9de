"""One call of `run` in a process of its own: reads a request as JSON, prints what it took.

The request names the database and either the operations or a history of `workload`. Before the call
everything is imported and one small `run` in memory is done; what the process held at its peak until then is
the baseline.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
from time import perf_counter, process_time

from dispatcher import head, run
from tests.bench.workload import HISTORIES, delivered


def peak_kib() -> int:
    """The most memory that this process ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak


def main() -> None:
    request = json.load(sys.stdin)
    if "history" in request:
        operations = HISTORIES[request["history"]](*request["given"])
    else:
        operations = request["operations"]
    run(delivered(1))
    gc.collect()
    baseline = peak_kib()
    start, cpu_start = perf_counter(), process_time()
    results = run(operations, request["database"])
    seconds, cpu_seconds = perf_counter() - start, process_time() - cpu_start
    peak = peak_kib()
    answer = {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "baseline_kib": baseline,
        "peak_kib": peak,
        "entries": int(head(request["database"]).partition(":")[0]),
        "refused": sum(isinstance(result, str) and result.startswith("error") for result in results),
        "last": results[-1],
        "ts": operations[-1][1],
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
