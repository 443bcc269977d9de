"""An ordered index of which only the beginning is loaded, and whose items may have gone stale."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Item = tuple[Any, ...]

FIRST_PAGE = 8
LAST_PAGE = 1024


class Window:
    """Items in ascending order, fetched page by page when they are asked for.

    Whoever changes the world adds items as they arise and never removes any: an item that no longer
    holds is dropped when it comes to the front. An item may stand here twice.
    """

    __slots__ = ("heap", "page", "upto")

    def __init__(self, *, complete: bool) -> None:
        self.heap: list[Item] = []
        self.page = FIRST_PAGE
        self.upto: Item | None = None if complete else ()
        """All stored items up to here are in the heap; None: all there are. () sorts before any item."""

    def add(self, item: Item) -> None:
        heappush(self.heap, item)

    def first(self, holds: Callable[[Item], bool], fetch: Callable[[Item, int], list[Item]]) -> Item | None:
        """The smallest item that holds, fetching stored items after a given one as needed."""
        heap = self.heap
        while True:
            while heap and not holds(heap[0]):
                heappop(heap)
            upto = self.upto
            if upto is None:
                return heap[0] if heap else None
            if heap and heap[0] <= upto:
                return heap[0]
            self.extend(fetch(upto, self.page), self.page)

    def lacks(self) -> bool:
        """Whether stored items have to be fetched once the first one is gone."""
        return self.upto is not None and len(self.heap) < 2

    def extend(self, items: list[Item], asked: int) -> None:
        """Take the next stored items, of which so many were asked for."""
        for item in items:
            heappush(self.heap, item)
        self.upto = items[-1] if len(items) == asked else None
        self.page = min(self.page * 2, LAST_PAGE)
