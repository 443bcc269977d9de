"""When a receiver wants to be asked again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

LONGEST: Final = 366 * 24 * 3600
"""Seconds. A longer wait is shortened to this; a policy's own cap is far below."""

_SECONDS = re.compile(r"[0-9]+", re.ASCII)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_WEEKDAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = f"(?P<month>{'|'.join(_MONTHS)})"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
# RFC 9110 section 5.6.7: the form of today, and two that a recipient has to take as well.
_DATES = tuple(
    re.compile(form, re.ASCII)
    for form in (
        rf"{_DAY}, (?P<day>\d\d) {_MONTH} (?P<year>\d{{4}}) {_TIME} GMT",
        rf"{_WEEKDAY}, (?P<day>\d\d)-{_MONTH}-(?P<year>\d\d) {_TIME} GMT",
        rf"{_DAY} {_MONTH} (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})",
    )
)


def parse_retry_after(values: Sequence[str], now: int) -> int | None:
    """Seconds to wait, by the header lines of one answer; now is in seconds since 1970.

    None unless there is exactly one line with a valid value: of two, neither says which one counts.
    A date that has passed asks for no wait (0).
    """
    if len(values) != 1:
        return None
    value = values[0].strip(" \t")
    if _SECONDS.fullmatch(value):
        digits = value.lstrip("0") or "0"
        # Never converted when it is very long: int() refuses that.
        return min(int(digits), LONGEST) if len(digits) < 10 else LONGEST
    moment = parse_http_date(value, now)
    return None if moment is None else min(max(moment - now, 0), LONGEST)


def parse_http_date(value: str, now: int) -> int | None:
    """Seconds since 1970; None for what is no HTTP date. `-0000` and other zones are none.

    Two-digit years lie at most fifty years ahead of now, as RFC 9110 says.
    """
    matched = next((found for form in _DATES if (found := form.fullmatch(value))), None)
    if matched is None:
        return None
    year = int(matched["year"])
    if len(matched["year"]) == 2:
        this_year = datetime.fromtimestamp(now, UTC).year
        year += this_year - this_year % 100
        year -= 100 if year > this_year + 50 else 0
    try:
        moment = datetime(
            year,
            1 + _MONTHS.index(matched["month"]),
            int(matched["day"]),
            int(matched["hour"]),
            int(matched["minute"]),
            # A leap second is a valid one; datetime knows none.
            59 if matched["second"] == "60" else int(matched["second"]),
            tzinfo=UTC,
        )
    except ValueError:
        return None
    return int(moment.timestamp())
