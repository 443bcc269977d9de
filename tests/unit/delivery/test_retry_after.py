"""Retry-After: what is a hint, and what is ignored."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher.delivery.retry_after import LONGEST, parse_http_date, parse_retry_after

NOW = 1_790_000_000
IN_2026 = int(datetime(2026, 6, 1, tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        ("007", 7),
        (" 120\t", 120),
        ("99999999999", LONGEST),
        ("9" * 5000, LONGEST),
        ("0" * 5000 + "9", 9),
        ("-5", None),
        ("-3", None),
        ("+5", None),
        ("1.5", None),
        ("1e3", None),
        ("1_0", None),
        ("120junk", None),
        ("120, 60", None),
        ("\uff11\uff12\uff10", None),
        ("٣", None),
        ("²", None),
        ("", None),
        ("soon", None),
        ("120\n", None),
        ("Wed, 21 Oct 2099 07:28:00 -0000", None),
        ("Wed, 21 Oct 2099 07:28:00 +0000", None),
        ("Wed, 21 Oct 2099 07:28:00 UTC", None),
        ("Wed, 21 Oct 2099 07:28:00", None),
        ("Wed, 31 Feb 2099 07:28:00 GMT", None),
        ("Wed, 21 Oct 2099 24:28:00 GMT", None),
        ("Wed, 21 Oct 0000 07:28:00 GMT", None),
        ("Wed, 21 Okt 2099 07:28:00 GMT", None),
        ("2099-10-21T07:28:00Z", None),
        ("Wed, 21 Oct 2099 07:28:00 GMT", LONGEST),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
    ],
)
def test_values(value: str, seconds: int | None) -> None:
    assert parse_retry_after([value], NOW) == seconds


@pytest.mark.parametrize(
    "value",
    ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"],
)
def test_the_three_forms_of_a_date(value: str) -> None:
    assert parse_http_date(value, NOW) == 784111777
    assert parse_retry_after([value], 784111777 - 300) == 300


@pytest.mark.parametrize(("year", "meant"), [("26", 2026), ("76", 2076), ("77", 1977), ("00", 2000)])
def test_a_two_digit_year_is_at_most_fifty_years_ahead(year: str, meant: int) -> None:
    found = parse_http_date(f"Friday, 06-Nov-{year} 08:49:37 GMT", IN_2026)
    assert found == int(datetime(meant, 11, 6, 8, 49, 37, tzinfo=UTC).timestamp())


def test_a_leap_second_is_valid() -> None:
    assert parse_http_date("Sat, 31 Dec 2016 23:59:60 GMT", NOW) == 1483228799


@pytest.mark.parametrize("lines", [[], ["120", "60"], ["120", "120"]])
def test_only_a_single_line_counts(lines: list[str]) -> None:
    assert parse_retry_after(lines, NOW) is None


@given(st.text(max_size=40) | st.from_regex(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", fullmatch=True))
def test_any_text_is_a_wait_or_ignored(text: str) -> None:
    seconds = parse_retry_after([text], NOW)
    assert seconds is None or 0 <= seconds <= LONGEST
