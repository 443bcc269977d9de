"""One seed, from its beginning to its end; and as little of it as goes wrong in the same way."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from tests.simulation.world import World

MOST_TRIES = 200
"""Worlds that are tried to tell a story more shortly."""


class Ended(NamedTuple):
    """How a seed ended."""

    world: World
    error: BaseException | None

    @property
    def kind(self) -> str | None:
        """What went wrong, without the names and numbers of this time."""
        return (
            None if self.error is None else f"{type(self.error).__name__} {str(self.error).partition(':')[0]}"
        )


def simulate(seed: int, folder: Path, only: Collection[str] | None = None) -> Ended:
    """Run a seed; of what may be left out, `only` these happen."""
    world = World(seed, folder, only)
    logger = logging.getLogger("dispatcher")
    level = logger.level
    # There is trouble enough for a warning at every step.
    logger.setLevel(logging.CRITICAL)
    try:
        world.run()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Ended(world, error)
    finally:
        logger.setLevel(level)
    return Ended(world, None)


def shrunk(seed: int, folder: Path, ended: Ended, tries: int = MOST_TRIES) -> Ended:
    """The same failure with as few steps, troubles and faults as were found to be enough for it."""
    kept = ended.world.chances.happened
    chunk = len(kept)
    while chunk and tries > 0:
        start = len(kept)
        # From the end: what comes late is least likely to have had a part in it.
        while start > 0 and tries > 0:
            start = max(0, start - chunk)
            tries -= 1
            trial = simulate(seed, folder, set(kept[:start] + kept[start + chunk :]))
            if trial.kind == ended.kind:
                ended, kept = trial, trial.world.chances.happened
        chunk //= 2
    return ended


def report(seed: int, ended: Ended, shortest: Ended) -> str:
    """For whoever has to understand it: what, how to see it again, and the story."""
    again = f"PYTHONHASHSEED=0 python -m tests.simulation --seeds 1 --from {seed}"
    only = ",".join(shortest.world.chances.happened)
    return "\n".join(
        [
            f"--- seed {seed}: {ended.error!r}",
            f"again: {again}",
            f"at its shortest: {again} --only '{only}'",
            *shortest.world.story(),
            f"--- {shortest.error!r}",
        ]
    )
