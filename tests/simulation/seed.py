"""One seed, from its beginning to its end."""

from __future__ import annotations

import logging
from pathlib import Path

from tests.simulation.world import World


def simulate(seed: int, folder: Path) -> World:
    """Run a seed. What it raises says how to run it again, and has its story."""
    world = World(seed, folder)
    logger = logging.getLogger("dispatcher")
    level = logger.level
    # There is trouble enough for a warning at every step.
    logger.setLevel(logging.CRITICAL)
    try:
        world.run()
    except BaseException as error:
        error.add_note("\n".join(world.story[-60:]))
        error.add_note(f"again: PYTHONHASHSEED=0 python -m tests.simulation --from {seed} --seeds 1")
        raise
    finally:
        logger.setLevel(level)
    return world
