"""Entries as they were written once, kept for ever: what is on a disk must stay readable and provable.

`entries.json` is never changed, only added to, with each new version of an entry. `meaning` names every field
by what it is called today, defaults included: a default that changes would change what old entries say.
Fields that came later are optional, and None or UNSET in what was written before.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from dispatcher.core.entries import BODIES, Body, encode_body
from dispatcher.core.merkle import leaf_hash
from dispatcher.core.policy import RetryPolicy
from dispatcher.core.upcast import DECODERS, UnknownEntry, decode_body

TEXT = (Path(__file__).parent / "entries.json").read_text(encoding="utf-8")
FIXTURES: list[dict[str, Any]] = json.loads(TEXT)
TYPES = {body.__name__: body for body in BODIES}

FROZEN = [
    (37, "b34e2d7fa766b580cddb564232d8864841989fa702d106a0ae89857aa30f87cd"),
    (42, "500c6b4a63dc5ff64893f910cd78a85529e1b9e555fa5146302cea5819342979"),
]
"""How many lines of fixtures there were at some time, and the SHA-256 of them."""


def _name(fixture: dict[str, Any]) -> str:
    return f"{fixture['type']} v{fixture['version']}: {fixture['variant']}"


each_fixture = pytest.mark.parametrize("fixture", FIXTURES, ids=_name)


def _value(value: Any) -> Any:
    """From JSON to what the structs hold."""
    if isinstance(value, list):
        return tuple(_value(item) for item in value)
    if isinstance(value, dict):
        return RetryPolicy(**{name: _value(item) for name, item in value.items()})
    # As a literal in code would be; that other strings must do as well has its own test.
    return sys.intern(value) if isinstance(value, str) else value


def _meant(fixture: dict[str, Any]) -> Body:
    return TYPES[fixture["type"]](**{name: _value(value) for name, value in fixture["meaning"].items()})


@each_fixture
def test_what_was_written_is_read_as_it_was_meant(fixture: dict[str, Any]) -> None:
    body = decode_body(fixture["type"], fixture["version"], fixture["data"])
    assert type(body) is TYPES[fixture["type"]]
    assert body == _meant(fixture)
    named = {name: value for name, value in msgspec.structs.asdict(body).items() if value is not UNSET}
    later = {name: None for name in named if name not in fixture["meaning"]}
    assert named == later | {name: _value(value) for name, value in fixture["meaning"].items()}


@each_fixture
def test_what_is_meant_is_written_as_it_was(fixture: dict[str, Any]) -> None:
    body = _meant(fixture)
    if fixture["version"] < body.VERSION:
        pytest.skip("older versions are read, and no longer written")
    assert encode_body(body).decode() == fixture["data"]


@each_fixture
def test_a_body_that_was_read_is_written_as_it_was(fixture: dict[str, Any]) -> None:
    body = decode_body(fixture["type"], fixture["version"], fixture["data"])
    if fixture["version"] < body.VERSION:
        pytest.skip("older versions are read, and no longer written")
    assert encode_body(body).decode() == fixture["data"]


def _rebuilt(value: Any) -> Any:
    """An equal value of other objects, as one that came from a request or a file."""
    if isinstance(value, str):
        return "".join(list(value))
    if isinstance(value, tuple):
        return tuple(_rebuilt(item) for item in value)
    return value + 2**80 - 2**80 if type(value) is int else value


@each_fixture
def test_equal_bodies_are_written_alike_wherever_their_words_came_from(fixture: dict[str, Any]) -> None:
    """Else equal operations would not give equal heads."""
    body = _meant(fixture)
    fields = {name: value for name, value in msgspec.structs.asdict(body).items() if value is not UNSET}
    twin = type(body)(**{name: _rebuilt(value) for name, value in fields.items()})
    assert twin == body
    assert encode_body(twin) == encode_body(body)


@each_fixture
def test_its_leaf_is_what_was_hashed(fixture: dict[str, Any]) -> None:
    leaf = leaf_hash(
        fixture["position"],
        fixture["ts"],
        fixture["type"],
        fixture["version"],
        fixture["endpoint_id"],
        fixture["delivery_id"],
        fixture["data"].encode(),
    )
    assert leaf.hex() == fixture["leaf"]


def test_every_type_in_every_version_that_can_be_read_has_fixtures() -> None:
    kept = {(fixture["type"], fixture["version"]) for fixture in FIXTURES}
    assert kept == set(DECODERS)
    assert {(body.__name__, body.VERSION) for body in BODIES} <= kept


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_the_fixtures_of_a_type_use_every_field_of_it(body: type[Body]) -> None:
    written = [fixture for fixture in FIXTURES if fixture["type"] == body.__name__]
    names = {name for fixture in written for name in json.loads(fixture["data"])}
    assert names == set(body.__struct_encode_fields__)


@pytest.mark.parametrize(("lines", "digest"), FROZEN)
def test_the_fixtures_are_what_they_were(lines: int, digest: str) -> None:
    first = TEXT.splitlines()[1 : lines + 1]
    assert sha256("\n".join(line.removesuffix(",") for line in first).encode()).hexdigest() == digest


@pytest.mark.parametrize("entry", [("Enqueued", 2), ("Enqueued", 0), ("Enqueue", 1), ("", 1), ("Body", 1)])
def test_a_type_or_version_of_another_release_is_named_as_such(entry: tuple[str, int]) -> None:
    with pytest.raises(UnknownEntry, match=f"{entry[0]!r} in version {entry[1]}"):
        decode_body(*entry, "{}")


@pytest.mark.parametrize(
    ("entry_type", "data"),
    [
        ("LogOpened", "{}"),
        ("LogOpened", '{"kind":"other","unit":"s"}'),
        ("Enqueued", '{"outcomes":"200"}'),
        ("Enqueued", '{"seed":1.5}'),
        ("AttemptRecorded", '{"attempt":1,"status":200,"class":"success","decision":"sent","started_at":0}'),
        (
            "AttemptRecorded",
            '{"attempt":1,"status":200,"outcome":"success","decision":"dead","started_at":0}',
        ),
        ("EndpointDisabled", '{"reason":null}'),
        ("Cancelled", "[]"),
    ],
)
def test_data_that_its_type_does_not_allow_is_refused(entry_type: str, data: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_body(entry_type, 1, data)
