"""What the operations of `run` may hold: each value is taken as it is meant, or refused.

A value may be of any class, and a class may lie about its length, its items, its equality. So types are
asked instead of values, and a subclass is brought down to the plain value before anything looks at it.
"""

from __future__ import annotations

from typing import Any, Final

MAX_ID: Final = 256
MAX_URL: Final = 2048
MAX_TS: Final = 2**53


class Invalid:
    """Stands for a value that cannot be used."""


INVALID: Final = Invalid()


def parse_list(value: Any) -> list[Any] | tuple[Any, ...] | None:
    """A list or tuple as it is, one of a subclass as a plain one; None for anything else."""
    kind = type(value)
    if kind is list or kind is tuple:
        return value  # type: ignore[no-any-return]
    if issubclass(kind, list):
        return list.copy(value)
    if issubclass(kind, tuple):
        return tuple.__getitem__(value, slice(None))
    return None


def parse_text(value: Any) -> str | None:
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    return str.__str__(value) if issubclass(kind, str) else None


def parse_id(value: Any) -> str | Invalid:
    """1 to 256 characters, no NUL, no lone surrogate."""
    return _parse_name(value, MAX_ID)


def parse_url(value: Any) -> str | Invalid:
    """1 to 2,048 characters, no NUL, no lone surrogate. In a simulation it is never called."""
    return _parse_name(value, MAX_URL)


def _parse_name(value: Any, longest: int) -> str | Invalid:
    name = parse_text(value)
    if not name or len(name) > longest or "\0" in name:
        return INVALID
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError:
            return INVALID
    return name


def parse_ts(value: Any) -> int | Invalid:
    """A whole number of seconds within ±2**53; True and 1.0 are none."""
    kind = type(value)
    if kind is not int:
        if kind is bool or not issubclass(kind, int):
            return INVALID
        value = int.__int__(value)
    return value if -MAX_TS <= value <= MAX_TS else INVALID


def parse_flag(value: Any) -> bool | Invalid:
    return value if value is True or value is False else INVALID


def parse_anything(value: Any) -> Any:
    """For an argument that the rules themselves judge, after others."""
    return value
