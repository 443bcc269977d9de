"""`python -m tests.simulation --seeds N --from S`: more seeds, on every core.

Of a seed that fails it tells what went wrong, and a story as short as was found: lines of JSON, in which an
operation is as the rules are given it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.simulation.seed import report, shrunk, simulate

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where worlds are kept while they last: what is tested is never whether a disk keeps what it was given."""


def attempt(seed: int, folder: Path, only: frozenset[str] | None) -> str | None:
    """Run a seed; what is wrong with it."""
    ended = simulate(seed, folder, only)
    if ended.error is None:
        return None
    told = report(seed, ended, shrunk(seed, folder, ended))
    return "\n".join([*traceback.format_exception(ended.error), told])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--only", help="of what may be left out, what happens: names with commas between")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    given = parser.parse_args()
    only = None if given.only is None else frozenset(given.only.split(","))
    seeds = range(given.first, given.first + given.seeds)
    begun = time.monotonic()
    failed: list[int] = []
    with (
        tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder,
        ProcessPoolExecutor(given.processes) as pool,
    ):
        run = partial(attempt, folder=Path(folder), only=only)
        for seed, wrong in zip(seeds, pool.map(run, seeds, chunksize=4), strict=True):
            if wrong is not None:
                failed.append(seed)
                print(wrong, file=sys.stderr, flush=True)
    took = time.monotonic() - begun
    print(f"{given.seeds} seeds in {took:.0f} s, {given.seeds / took:.1f} a second; failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
