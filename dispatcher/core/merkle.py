"""The tree over the log, as in Certificate Transparency (RFC 9162, section 2.1, SHA-256).

Leaf n (from 0) is the entry at position n + 1. Subtrees that are complete at one of TILE_LEVELS are
kept as tiles, so that the root of any size needs few rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from struct import Struct as Packed
from typing import NamedTuple

EMPTY_ROOT = sha256(b"").digest()
TILE_LEVELS = (8, 16, 24)

_start = Packed(">BQq").pack
_length = Packed(">I").pack
_ABSENT = b"\xff\xff\xff\xff"


class Tile(NamedTuple):
    """The hash of leaves [number << level, (number + 1) << level)."""

    level: int
    number: int
    hash: bytes


def leaf_hash(
    position: int,
    ts: int,
    entry_type: str,
    version: int,
    endpoint_id: str | None,
    delivery_id: str | None,
    data: bytes,
) -> bytes:
    """SHA-256 over 0x00, position (u64), ts (i64), then type, version, endpoint_id, delivery_id and data,
    each as its length (u32) and UTF-8 bytes, null as FFFFFFFF; big-endian, the version as decimal text."""
    return sha256(
        _start(0, position, ts)
        + _kind(entry_type, version)
        + (_ABSENT if endpoint_id is None else _field(endpoint_id.encode()))
        + (_ABSENT if delivery_id is None else _field(delivery_id.encode()))
        + _field(data)
    ).digest()


def _field(raw: bytes) -> bytes:
    return _length(len(raw)) + raw


@lru_cache(maxsize=64)
def _kind(entry_type: str, version: int) -> bytes:
    return _field(entry_type.encode()) + _field(b"%d" % version)


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


class Frontier:
    """The complete subtrees of a growing tree: all that is needed to append to it and to name its root."""

    def __init__(self) -> None:
        self.size = 0
        self._peaks: list[bytes] = []

    def append(self, leaf: bytes) -> None:
        """Add the next leaf."""
        self.push(0, leaf)

    def push(self, level: int, subtree: bytes) -> None:
        """Add a whole subtree of 2**level leaves; the size must be a multiple of that."""
        peaks = self._peaks
        rest = self.size >> level
        while rest & 1:
            subtree = sha256(b"\x01" + peaks.pop() + subtree).digest()
            rest >>= 1
        peaks.append(subtree)
        self.size += 1 << level

    def extend(self, leaves: Iterable[bytes]) -> list[Tile]:
        """Add leaves; the tiles that they completed, smaller levels first where several end at one leaf."""
        tiles: list[Tile] = []
        peaks = self._peaks
        size = self.size
        for leaf in leaves:
            rest = size
            size += 1
            if size & 0xFF:
                while rest & 1:
                    leaf = sha256(b"\x01" + peaks.pop() + leaf).digest()
                    rest >>= 1
            else:
                level = 0
                while rest & 1:
                    leaf = sha256(b"\x01" + peaks.pop() + leaf).digest()
                    rest >>= 1
                    level += 1
                    if level in TILE_LEVELS:
                        tiles.append(Tile(level, (size >> level) - 1, leaf))
            peaks.append(leaf)
        self.size = size
        return tiles

    def root(self) -> bytes:
        """The root of all leaves so far."""
        if not self._peaks:
            return EMPTY_ROOT
        root = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            root = node_hash(peak, root)
        return root


def format_head(size: int, root: bytes) -> str:
    """`POSITION:ROOT`: what to keep in order to check later that the log still begins this way."""
    return f"{size}:{root.hex()}"


def parse_head(text: str) -> tuple[int, bytes]:
    """The parts of a head; ValueError when it is none."""
    position, _, root = text.strip().partition(":")
    if not (position.isascii() and position.isdigit() and len(root) == 64):
        raise ValueError(f"a head is POSITION:ROOT, with ROOT as 64 hexadecimal digits, not {text!r}")
    return int(position), bytes.fromhex(root)
