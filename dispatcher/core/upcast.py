"""From what an entry was when it was written to what it is called today."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dispatcher.core.entries import BODIES, Body

Decode = Callable[[str], Body]


class UnknownEntry(ValueError):
    """An entry of a type or version that this release does not know."""

    def __init__(self, entry_type: object, version: object) -> None:
        super().__init__(f"entry type {entry_type!r} in version {version} is unknown to this release")


DECODERS: dict[tuple[str, int], Decode] = {
    (body.__name__, body.VERSION): msgspec.json.Decoder(body).decode for body in BODIES
}


def decode_body(entry_type: str, version: int, data: str) -> Body:
    """Read one entry's data; UnknownEntry or msgspec.ValidationError when it can't be read."""
    try:
        decode = DECODERS[entry_type, version]
    except KeyError:
        raise UnknownEntry(entry_type, version) from None
    return decode(data)
