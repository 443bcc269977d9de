"""The log read a page at a time, so that whoever reads slowly holds nothing back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dispatcher.log.open import Database, Target
from dispatcher.log.read import LogRow, last_entry, rows


def pages(
    target: Target,
    *,
    after: int = 0,
    until: int | None = None,
    last: int | None = None,
    wait: Callable[[], None] | None = None,
) -> Iterator[list[LogRow]]:
    """Rows of the log after one position up to another, or only the `last` so many of them, in order.

    Each page is a transaction of its own: entries appended meanwhile are seen, and no checkpoint waits for
    the reader. With `wait` it never ends: that is called whenever there is nothing new.
    """
    with Database(target, "read") as database:
        if last is not None:
            with database.read() as connection:
                after = max(after, last_entry(connection)[0] - last)
        while True:
            with database.read() as connection:
                page: list[Any] = [LogRow(*row) for row in next(rows(connection, after, until), ())]
            if page:
                after = page[-1].position
                yield page
            elif wait is None:
                return
            else:
                wait()
