"""What the first worked example takes, in memory, and what importing takes before it.

Every round is a fresh process, which imports `dispatcher`, looks which heavy modules that pulled in, imports
`run` from it, calls it once, and then 50 times more. The median of those is what the target speaks of; the
very first call, which finds nothing compiled or cached, is reported apart. Importing is timed within the
process: Python's own start is not in it, the reading of cached bytecode is.
"""

from __future__ import annotations

import json
from statistics import median

from tests.bench.measure import arguments, in_turns, median_of, print_line, python, rounded, summary
from tests.examples import RETRIES

HEAVY = ("alembic", "click", "rich", "sqlalchemy")

SCRIPT = """
import json, sys
from time import perf_counter
operations, expected, calls, heavy = json.load(sys.stdin)
start = perf_counter()
import dispatcher
package = perf_counter() - start
pulled_in = [name for name in heavy if name in sys.modules]
start = perf_counter()
from dispatcher import run
imported = perf_counter() - start
def one():
    start = perf_counter()
    results = run(operations)
    seconds = perf_counter() - start
    assert results == expected, results
    return seconds
first = one()
print(json.dumps({
    "package": package, "import": imported, "pulled_in": pulled_in, "first": first,
    "calls": [one() for _ in range(calls)],
}))
"""


def main() -> None:
    given = arguments(__doc__, 50)
    operations, expected = RETRIES
    request = json.dumps([operations, expected, given.size, HEAVY])
    answers = in_turns({"example": lambda: python("-c", SCRIPT, given=request)}, given.rounds)["example"]
    calls = [median(answer["calls"]) for answer in answers]
    line = {
        "ratio": rounded(median(calls) / 0.005),
        "example_seconds": summary(calls),
        "first_call_seconds": summary([answer["first"] for answer in answers]),
        "import_dispatcher_seconds": summary([answer["package"] for answer in answers]),
        "import_run_seconds": summary([answer["import"] for answer in answers]),
        "slowest_call_seconds": max(max(answer["calls"]) for answer in answers),
        "heavy_modules": sorted({name for answer in answers for name in answer["pulled_in"]}),
        "calls": given.size,
        "operations": len(operations),
        "first_call_to_median": rounded(median_of(answers, "first") / median(calls)),
    }
    print_line("first_example", "example_seconds <= 0.005; ratio is its share of that", line)


if __name__ == "__main__":
    main()
