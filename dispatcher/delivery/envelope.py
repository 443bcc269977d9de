"""What an endpoint is sent of a published event: its payload as it is given, or in an envelope."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, assert_never

import msgspec

from dispatcher.core.entries import BodyFormat
from dispatcher.delivery.settings import Payload
from dispatcher.errors import Refused

SOURCE: Final = "DISPATCHER_SOURCE"
# Of RFC 3986: the characters of a reference.
_REFERENCE = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2}){1,2048}", re.ASCII)
_JSON_TYPE = re.compile(r"application/(?:[^\s;/]+\+)?json\s*(?:;.*)?", re.IGNORECASE)
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class Occurrence(NamedTuple):
    """What an envelope says of an event besides its payload."""

    event_id: str
    type: str
    time: int
    """When it was published, in milliseconds since 1970."""
    source: str
    """Who tells of it: a URI, or a reference to one."""


def check_source(source: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Who tells of events: as given, or as the environment says, or None. Raises Refused for no URI."""
    if source is None:
        source = environment.get(SOURCE) or None
    if source is not None and not (isinstance(source, str) and _REFERENCE.fullmatch(source)):
        raise Refused("invalid_source", f"a source is a URI such as https://shop.example or /shop ({SOURCE})")
    return source


def enveloped(given: Payload, body_format: BodyFormat | None, told: Occurrence) -> Payload:
    """What is sent for a payload. One that is JSON stands in its envelope byte for byte.

    Raises Refused, `payload_not_json`, for one that the format has no place for.
    """
    if body_format is None:
        return given
    content_type = _content_type(given)
    data = _json_of(given.body, content_type)
    time = (_BEGINNING + timedelta(milliseconds=told.time)).isoformat(timespec="milliseconds")
    time = time.replace("+00:00", "Z")
    parts: dict[str, Any]
    match body_format:
        case "standard":
            if data is None:
                raise Refused("payload_not_json", "an endpoint wants an envelope that holds JSON alone")
            sent_as = "application/json"
            parts = {"type": told.type, "timestamp": time, "data": data}
        case "cloudevents":
            sent_as = "application/cloudevents+json"
            parts = {"specversion": "1.0", "id": told.event_id, "source": told.source}
            parts |= {"type": told.type, "time": time}
            if data is None:
                parts["datacontenttype"] = content_type or "application/octet-stream"
                parts["data_base64"] = b64encode(given.body).decode()
            else:
                parts |= {"datacontenttype": content_type or "application/json", "data": data}
        case _:
            assert_never(body_format)
    others = (header for header in given.headers if header[0].lower() != "content-type")
    return msgspec.structs.replace(
        given, body=msgspec.json.encode(parts), headers=(("Content-Type", sent_as), *others)
    )


def _content_type(given: Payload) -> str | None:
    return next((value for name, value in given.headers if name.lower() == "content-type"), None)


def _json_of(body: bytes, content_type: str | None) -> msgspec.Raw | None:
    """The body if it is JSON, and is not said to be anything else: its very bytes."""
    if content_type is not None and not _JSON_TYPE.fullmatch(content_type):
        return None
    try:
        body.decode()  # which the decoder does not see to
        return msgspec.json.decode(body, type=msgspec.Raw)
    except (UnicodeError, msgspec.DecodeError, RecursionError):
        return None
