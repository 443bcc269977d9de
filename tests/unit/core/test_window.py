"""An ordered index of which only the beginning is loaded, and whose items may have gone stale."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.core.window import FIRST_PAGE, LAST_PAGE, Item, Window


class Shelf:
    """Stored items, and what was asked of them."""

    def __init__(self, *numbers: int) -> None:
        self.items: list[Item] = [(number,) for number in sorted(numbers)]
        self.asked: list[tuple[Item, int]] = []

    def fetch(self, after: Item, limit: int) -> list[Item]:
        self.asked.append((after, limit))
        start = bisect_right(self.items, after)
        return self.items[start : start + limit]


def _always(item: Item) -> bool:
    return True


def _never_fetched(after: Item, limit: int) -> list[Item]:
    raise AssertionError("a complete window has nothing to fetch")


def _except(*gone: int) -> Callable[[Item], bool]:
    return lambda item: item[0] not in gone


def test_a_complete_window_gives_the_smallest_and_fetches_nothing() -> None:
    window = Window(complete=True)
    assert window.first(_always, _never_fetched) is None
    for number in (5, 3, 9):
        window.add((number,))
    assert window.first(_always, _never_fetched) == (3,)
    assert window.first(_except(3, 5), _never_fetched) == (9,)
    assert window.first(_except(9), _never_fetched) is None


def test_looking_takes_nothing_away() -> None:
    window = Window(complete=True)
    window.add((3,))
    assert [window.first(_always, _never_fetched) for _ in range(3)] == [(3,)] * 3


def test_an_item_that_stands_twice_is_given_until_it_no_longer_holds() -> None:
    window = Window(complete=True)
    window.add((3,))
    window.add((3,))
    window.add((4,))
    assert window.first(_always, _never_fetched) == (3,)
    assert window.first(_except(3), _never_fetched) == (4,)


def test_an_incomplete_window_asks_before_it_says_that_there_is_nothing() -> None:
    shelf = Shelf(7)
    window = Window(complete=False)
    assert window.first(_always, shelf.fetch) == (7,)
    assert shelf.asked == [((), FIRST_PAGE)]


def test_an_added_item_is_not_given_before_earlier_ones_were_fetched() -> None:
    shelf = Shelf(7)
    window = Window(complete=False)
    window.add((9,))
    assert window.first(_always, shelf.fetch) == (7,)


def test_an_item_added_within_what_is_loaded_is_given_without_asking() -> None:
    shelf = Shelf(*range(10, 100))
    window = Window(complete=False)
    window.first(_always, shelf.fetch)
    window.add((11,))
    window.add((3,))
    shelf.asked.clear()
    assert window.first(_always, shelf.fetch) == (3,)
    assert window.first(_except(3), shelf.fetch) == (10,)
    assert shelf.asked == []


def test_a_short_page_means_that_nothing_more_is_stored() -> None:
    shelf = Shelf(1, 2, 3)
    window = Window(complete=False)
    assert window.first(_except(1, 2, 3), shelf.fetch) is None
    assert window.first(_always, shelf.fetch) is None
    assert len(shelf.asked) == 1


def test_a_full_page_is_followed_by_the_next_from_where_it_ended() -> None:
    shelf = Shelf(*range(FIRST_PAGE))
    window = Window(complete=False)
    assert window.first(_except(*range(FIRST_PAGE)), shelf.fetch) is None
    assert shelf.asked == [((), FIRST_PAGE), ((FIRST_PAGE - 1,), FIRST_PAGE * 2)]


def test_pages_double_up_to_the_largest() -> None:
    shelf = Shelf(*range(10_000))
    window = Window(complete=False)
    assert window.first(lambda item: item[0] == 9_999, shelf.fetch) == (9_999,)
    limits = [limit for _, limit in shelf.asked]
    assert limits[:9] == [8, 16, 32, 64, 128, 256, 512, 1024, 1024]
    assert max(limits) == LAST_PAGE == 1024


def test_a_window_lacks_items_once_its_last_but_one_is_gone_unless_it_holds_all() -> None:
    shelf = Shelf(*range(FIRST_PAGE + 1))
    window = Window(complete=False)
    assert window.lacks()
    window.first(_except(*range(FIRST_PAGE - 2)), shelf.fetch)
    assert not window.lacks()
    window.first(_except(*range(FIRST_PAGE - 1)), shelf.fetch)
    assert window.lacks()
    window.extend(shelf.fetch((FIRST_PAGE - 1,), 2), 2)
    assert not window.lacks()
    assert window.first(_except(*range(FIRST_PAGE)), _never_fetched) == (FIRST_PAGE,)
    assert not window.lacks()


def test_only_as_much_is_fetched_as_is_asked_for() -> None:
    shelf = Shelf(*range(10_000))
    window = Window(complete=False)
    assert window.first(_always, shelf.fetch) == (0,)
    assert window.first(_except(*range(FIRST_PAGE - 1)), shelf.fetch) == (FIRST_PAGE - 1,)
    assert len(shelf.asked) == 1


NUMBERS = st.integers(0, 60)


@settings(deadline=None, max_examples=300)
@given(
    st.sets(NUMBERS),
    st.lists(st.tuples(st.sampled_from(["add", "drop", "load"]), NUMBERS)),
)
@pytest.mark.parametrize("complete", [False, True])
def test_the_first_is_always_the_smallest_that_holds(
    complete: bool, stored: set[int], steps: list[tuple[str, int]]
) -> None:
    """The world changes, the window is told of what arises, the store stays as it was."""
    window = Window(complete=complete)
    shelf = Shelf(*stored)
    world = set(stored)
    if complete:
        for number in stored:
            window.add((number,))
    for step, number in steps:
        if step == "load":
            if window.lacks() and window.upto is not None:
                window.extend(shelf.fetch(window.upto, number + 1), number + 1)
        elif step == "drop":
            world.discard(number)
        elif number not in world:
            world.add(number)
            window.add((number,))
        first = window.first(lambda item: item[0] in world, shelf.fetch)
        assert first == ((min(world),) if world else None)
