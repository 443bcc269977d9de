"""How far long work has come, on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

STEPS_WORTH_A_BAR = 2000
STEPS_BETWEEN = 200


class Bar:
    """A bar for work of many steps, if stderr is a terminal; gone when the block ends.

    To be called with how many steps are done, and of how many.
    """

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._progress: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        if total < STEPS_WORTH_A_BAR or sys.stderr is None or not sys.stderr.isatty():
            return
        if self._progress is None:
            self._progress = _started(self._doing)
        task = self._progress.task_ids[0]
        self._progress.update(task, description=self._doing, completed=done, total=total)

    def over(self, steps: Sequence[T], then: str) -> Iterator[T]:
        """The steps, one by one; each is done when the next is asked for. Then `then` is what is done."""
        for done, step in enumerate(steps):
            if done % STEPS_BETWEEN == 0:
                self(done, len(steps))
            yield step
        self._doing = then
        self(len(steps), len(steps))

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._progress is not None:
            self._progress.stop()


def _started(doing: str) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    progress.add_task(doing)
    progress.start()
    return progress
