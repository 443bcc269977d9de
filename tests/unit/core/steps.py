"""How much work something is, counted and not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class Counted(int):
    """A position or time whose comparisons are calls, so that they are counted as steps, too.

    Sorting and heaps work in C, where nothing else could see how much they look at.
    """

    def __add__(self, other: int) -> Counted:
        return Counted(int(self) + int(other))

    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other)

    def __lt__(self, other: int) -> bool:
        return int.__lt__(self, other)

    def __le__(self, other: int) -> bool:
        return int.__le__(self, other)

    def __gt__(self, other: int) -> bool:
        return int.__gt__(self, other)

    def __ge__(self, other: int) -> bool:
        return int.__ge__(self, other)

    __hash__ = int.__hash__


def steps(action: Callable[[], Any]) -> int:
    """How many lines of Python an action runs: each round of a loop, each comparison of a Counted is one."""
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count
