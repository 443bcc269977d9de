"""`python -m tests.simulation --seeds N --from S`: more seeds, on every core."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.simulation.seed import simulate


def attempt(seed: int, folder: Path) -> tuple[int, str | None]:
    """A seed, and what is wrong with it."""
    try:
        simulate(seed, folder)
    except BaseException:
        return seed, traceback.format_exc()
    return seed, None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    begun = time.monotonic()
    failed: list[int] = []
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        run = partial(attempt, folder=Path(folder))
        with ProcessPoolExecutor(given.processes) as pool:
            several: Callable[..., Iterator[tuple[int, str | None]]] = partial(pool.map, chunksize=4)
            for seed, wrong in (map if given.seeds == 1 else several)(run, seeds):
                if wrong is not None:
                    failed.append(seed)
                    print(f"--- seed {seed}\n{wrong}", file=sys.stderr)
    took = time.monotonic() - begun
    print(f"{given.seeds} seeds in {took:.0f} s, {given.seeds / took:.1f} a second; failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
