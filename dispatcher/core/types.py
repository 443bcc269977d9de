"""Types of events, and the patterns by which endpoints say which of them they want."""

from __future__ import annotations

import re

LONGEST = 128
"""Characters of a type, or of a pattern."""
_TYPE = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", re.ASCII)


def is_type(text: str) -> bool:
    """Whether it is a type such as `invoice.paid`: words of A-Z, a-z, 0-9, _ and -, with dots between."""
    return len(text) <= LONGEST and _TYPE.fullmatch(text) is not None


def is_pattern(text: str) -> bool:
    """Whether it is a type, a type followed by `.*`, or `*`."""
    return text == "*" or (len(text) <= LONGEST and is_type(text.removesuffix(".*")))


def wants(patterns: tuple[str, ...] | None, event_type: str) -> bool:
    """Whether one of the patterns fits a type; None stands for all types.

    `invoice.*` fits all that begins with `invoice.`, so not `invoice` itself; `*` fits everything.
    """
    return patterns is None or any(
        event_type.startswith(pattern[:-1]) if pattern.endswith("*") else event_type == pattern
        for pattern in patterns
    )
