"""What live delivery takes from outside: ids, settings and payloads, each as it is meant, or refused."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct

from dispatcher.core import types
from dispatcher.core.operations import Register, Update
from dispatcher.core.policy import LONGEST
from dispatcher.errors import Refused

MAX_BODY: Final = 256 * 1024
"""Bytes."""
MOST_AT_ONCE: Final = 1000
"""Requests at once, for one endpoint."""
MOST_PATTERNS: Final = 100
DAY: Final = 86_400_000
"""Milliseconds."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)


def new_event_id() -> str:
    """An id that sorts by the time at which it was made: milliseconds in hexadecimal, then 80 random bits."""
    return f"evt_{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


def check_name(*parts: str) -> str:
    """The log's id of tenant, endpoint and event, as far as given. Raises Refused for a part that is none."""
    for part in parts:
        if not isinstance(part, str) or not _ID.fullmatch(part):
            raise Refused("invalid_id", "an id is 1 to 128 of the characters A-Z, a-z, 0-9, _ and -")
    return "/".join(parts)


def check_event_type(event_type: str) -> str:
    """A type, if it is one. Raises Refused."""
    if not isinstance(event_type, str) or not types.is_type(event_type):
        message = (
            "an event's type is words of A-Z, a-z, 0-9, _ and -, with dots between, at most"
            f" {types.LONGEST} characters"
        )
        raise Refused("invalid_event_type", message)
    return event_type


def check_patterns(patterns: Sequence[str] | None) -> tuple[str, ...] | None:
    """Patterns of event types, each once; None for all types. Raises Refused for what is none."""
    if patterns is None:
        return None
    if (
        not isinstance(patterns, list | tuple)  # a text would be one pattern a character
        or len(patterns) > MOST_PATTERNS
        or not all(isinstance(pattern, str) and types.is_pattern(pattern) for pattern in patterns)
    ):
        message = (
            f"types are at most {MOST_PATTERNS} patterns: event types such as invoice.paid,"
            " beginnings such as invoice.*, or *"
        )
        raise Refused("invalid_types", message)
    return tuple(dict.fromkeys(patterns))


def check_fields(value: Struct) -> None:
    """Whether its fields are of their types: what is stored otherwise could never be read again."""
    try:
        msgspec.json.decode(msgspec.json.encode(value), type=type(value))
    except (TypeError, ValueError) as error:
        # The message names a field, never its value; that of an encoder names none.
        field = re.search(r"\$\.(\w+)", str(error))
        name = field[1] if field else "an argument"
        raise Refused("invalid_argument", f"{name} is none of the values that it can have") from None
    if (
        isinstance(value, Register | Update)
        and value.concurrency is not UNSET
        and not 1 <= value.concurrency <= MOST_AT_ONCE
    ):
        raise Refused("invalid_argument", f"concurrency must be 1 to {MOST_AT_ONCE}")


def check_whole(value: object, name: str) -> None:
    """Whether it is a number of seconds or milliseconds."""
    if type(value) is not int or not 0 <= value <= LONGEST:
        raise Refused("invalid_argument", f"{name} is none of the values that it can have")


def kept_for(days: float | Literal["forever"] | None) -> int | None:
    """So many days in milliseconds; None for good. Raises Refused for what is no time."""
    if days is None or days == "forever":
        return None
    if type(days) not in (int, float) or not 1 <= days * DAY <= LONGEST:
        raise Refused("invalid_argument", "keep_payloads is a number of days above 0, or forever")
    return round(days * DAY)


def body_of(payload: Any) -> bytes:
    """The bytes to send: as given, UTF-8 of a str, else JSON. Refused if there are none, or too many."""
    if isinstance(payload, bytes):
        body = payload
    else:
        try:
            body = payload.encode() if isinstance(payload, str) else _json(payload)
        except (TypeError, ValueError, RecursionError):
            raise Refused("invalid_payload", "the payload is no text and no JSON value") from None
    if len(body) > MAX_BODY:
        raise Refused("payload_too_large", f"the payload is longer than {MAX_BODY} bytes")
    return body


def _json(payload: Any) -> bytes:
    body = msgspec.json.encode(payload)
    if b"null" in body:
        # That may stand for a float that is no number, for which JSON has no word: this raises ValueError.
        json.dumps(msgspec.to_builtins(payload), allow_nan=False)
    return body
