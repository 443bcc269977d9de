"""Types of events, and which patterns fit them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.core.types import LONGEST, is_pattern, is_type, wants

WORDS = st.sampled_from(["a", "b", "ab", "A", "user-1", "_"])
NAMES = st.lists(WORDS, min_size=1, max_size=4)
PATTERNS = st.lists(
    st.one_of(NAMES.map(".".join), NAMES.map(lambda words: ".".join([*words, "*"])), st.just("*")), max_size=4
)


@pytest.mark.parametrize(
    "text", ["a", "invoice.paid", "user.created.v2", "A-b_9", "x." * 63 + "xy", "1", "-", "__proto__"]
)
def test_words_with_dots_between_are_a_type_and_a_pattern(text: str) -> None:
    assert is_type(text)
    assert is_pattern(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "a b",
        "a\n",
        "é",
        "a/b",
        "\x00",
        "x." * 64 + "x",
        "x" * (LONGEST + 1),
        "\u0661",
    ],
)
def test_anything_else_is_neither(text: str) -> None:
    assert not is_type(text)
    assert not is_pattern(text)


@pytest.mark.parametrize("text", ["*", "a.*", "invoice.paid.*", "x" * (LONGEST - 2) + ".*"])
def test_a_star_stands_alone_or_for_the_end_of_a_pattern_and_in_no_type(text: str) -> None:
    assert is_pattern(text)
    assert not is_type(text)


@pytest.mark.parametrize(
    "text", ["a*", ".*", "*.a", "a.*.b", "**", "a.**", "*.*", "a.*.*", "x" * (LONGEST - 1) + ".*"]
)
def test_a_star_stands_nowhere_else(text: str) -> None:
    assert not is_pattern(text)


def test_without_patterns_all_are_wanted_and_by_none_of_them_none() -> None:
    assert wants(None, "invoice.paid")
    assert not wants((), "invoice.paid")


def test_a_beginning_fits_what_is_longer_at_a_dot() -> None:
    assert wants(("invoice.*",), "invoice.paid")
    assert wants(("invoice.*",), "invoice.paid.late")
    assert not wants(("invoice.*",), "invoice")
    assert not wants(("invoice.*",), "invoices.paid")
    assert not wants(("invoice.*",), "Invoice.paid")


@given(PATTERNS, NAMES)
def test_it_agrees_with_patterns_compared_word_by_word(patterns: list[str], words: list[str]) -> None:
    def fits(pattern: list[str]) -> bool:
        if pattern[-1] == "*":
            return len(words) >= len(pattern) and words[: len(pattern) - 1] == pattern[:-1]
        return words == pattern

    expected = any(fits(pattern.split(".")) for pattern in patterns)
    assert wants(tuple(patterns), ".".join(words)) == expected
    assert all(map(is_pattern, patterns))
