"""Times of live logs, as people read and write them."""

from __future__ import annotations

import re
import time
from datetime import datetime

import click

_AGE = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000}


def now() -> int:
    return time.time_ns() // 1_000_000


def moment(ms: int) -> str:
    """`2026-11-30T20:05:01+01:00`, in local time."""
    try:
        return datetime.fromtimestamp(ms / 1000).astimezone().isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def span(ms: int) -> str:
    """`4m10s`: the two largest units, or `0s`."""
    parts = []
    for unit, size in _UNITS.items():
        count, ms = divmod(ms, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"


def ahead(ms: int) -> str:
    """`in 4m10s (at …)`, or `now` for what is past."""
    left = ms - now()
    return "now" if left <= 0 else f"in {span(left)} (at {moment(ms)})"


def a_time(value: str) -> int:
    """Milliseconds since 1970 of a time in ISO 8601 (local unless it says otherwise), or of an age: `2h`."""
    age = _AGE.fullmatch(value)
    if age is not None:
        return now() - int(age[1]) * _UNITS[age[2]]
    try:
        return round(datetime.fromisoformat(value).astimezone().timestamp() * 1000)
    except (OverflowError, ValueError, OSError):
        raise click.BadParameter(
            "give a time such as 2026-11-30T20:00, or an age such as 90s, 30m, 2h or 7d."
        ) from None
