"""What is hashed of an entry, against an implementation that shares nothing with the product's."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.core.merkle import leaf_hash

Row = tuple[int, int, str, int, str | None, str | None, bytes]


def _defined(position: int, ts: int, kind: str, version: int, *rest: str | bytes | None) -> bytes:
    """0x00, position u64, ts i64, then five fields as length and UTF-8 bytes; null is FFFFFFFF."""
    parts = [b"\x00", position.to_bytes(8, "big"), ts.to_bytes(8, "big", signed=True)]
    for field in (kind, str(version), *rest):
        if field is None:
            parts.append(b"\xff" * 4)
            continue
        raw = field if isinstance(field, bytes) else field.encode("utf-8")
        parts += [len(raw).to_bytes(4, "big"), raw]
    return sha256(b"".join(parts)).digest()


ROWS: dict[str, Row] = {
    "all fields": (1, 0, "Enqueued", 1, "shop", "evt-1", b'{"outcomes":[200]}'),
    "no delivery": (2, 30, "EndpointDisabled", 1, "shop", None, b"{}"),
    "neither id": (1, 0, "LogOpened", 1, None, None, b'{"kind":"live","unit":"ms"}'),
    "no endpoint": (3, 0, "Cancelled", 1, None, "evt-1", b"{}"),
    "empty ids": (3, 0, "Cancelled", 1, "", "", b""),
    "a negative ts": (3, -(2**53), "Cancelled", 1, "shop", "evt-1", b"{}"),
    "the edges of the numbers": (2**64 - 1, -(2**63), "Cancelled", 12, "shop", "evt-1", b"{}"),
    "the latest ts": (1, 2**63 - 1, "Cancelled", 1, "shop", "evt-1", b"{}"),
    "other letters": (4, 0, "Enqueued", 1, "é", "e\u0301\U0001f631\uffff", '{"lane":"é😱"}'.encode()),
    "long": (4, 0, "Enqueued", 1, "x" * 300, "y" * 70_000, b"z" * 100_000),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_leaf_is_what_the_definition_says(name: str) -> None:
    assert leaf_hash(*ROWS[name]) == _defined(*ROWS[name])


def test_a_leaf_is_the_hash_of_these_bytes() -> None:
    """Spelled out, so that one mistake in two programs would be seen."""
    raw = bytes.fromhex(
        "00 0000000000000007 fffffffffffffffb "  # position 7, ts -5
        "00000009 43616e63656c6c6564 "  # Cancelled
        "00000001 31 "  # version 1
        "00000002 c3a9 "  # é
        "ffffffff "  # no delivery
        "00000002 7b7d"  # {}
    )
    assert leaf_hash(7, -5, "Cancelled", 1, "é", None, b"{}") == sha256(raw).digest()


TEXTS = st.text(max_size=6)
NAMES = st.one_of(st.none(), TEXTS)


@settings(deadline=None, max_examples=300)
@given(
    st.integers(0, 2**64 - 1),
    st.integers(-(2**63), 2**63 - 1),
    TEXTS,
    st.integers(1, 99),
    NAMES,
    NAMES,
    st.binary(max_size=8),
)
def test_any_leaf_is_what_the_definition_says(
    position: int, ts: int, kind: str, version: int, endpoint: str | None, delivery: str | None, data: bytes
) -> None:
    row = (position, ts, kind, version, endpoint, delivery, data)
    assert leaf_hash(*row) == _defined(*row)


def test_no_two_different_rows_have_one_leaf() -> None:
    """Lengths stand before the fields, so nothing can be moved from one field into the next."""
    rows: list[Row] = [
        *ROWS.values(),
        (1, 0, "Enqueued", 1, "sho", "pevt-1", b'{"outcomes":[200]}'),
        (1, 0, "Enqueued", 11, "shop", "evt-1", b'{"outcomes":[200]}'),
        (1, 0, "Enqueued1", 1, "shop", "evt-1", b'{"outcomes":[200]}'),
        (2, 30, "EndpointDisabled", 1, "shop", "", b"{}"),
        (1, 0, "LogOpened", 1, "", None, b'{"kind":"live","unit":"ms"}'),
    ]
    assert len({leaf_hash(*row) for row in rows}) == len(rows)


def test_a_failed_leaf_leaves_nothing_behind_for_the_next() -> None:
    """Recurring fields are kept between calls: what could not be hashed must not be."""
    with pytest.raises(AttributeError):
        leaf_hash(1, 0, "Enqueued", 1, b"shop", None, b"{}")  # type: ignore[arg-type]
    assert leaf_hash(1, 0, "Enqueued", 1, "shop", None, b"{}") == _defined(
        1, 0, "Enqueued", 1, "shop", None, b"{}"
    )
