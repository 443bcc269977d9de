"""Whether the log's rows are those that were hashed: positions, leaves, tiles, and a kept head.

`verify` runs it beside the fold, on the other core, as `python -m dispatcher.audit.tree PATH UNTIL [HEAD]`.
It prints one JSON value a line: how many entries are done, and each finding as [position, message].
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from dispatcher.audit.finding import Finding
from dispatcher.core.merkle import TILE_LEVELS, Frontier, Tile, leaf_hash, parse_head
from dispatcher.errors import LogCorrupt, TextDamaged
from dispatcher.log.fold import Progress
from dispatcher.log.open import Connection, Database
from dispatcher.log.read import base, last_entry, rows, stored_tiles

TEXT_DAMAGED = 3
"""Exit code: there are rows that only a tolerant reader can read."""


def check_tree(
    connection: Connection, until: int, kept_head: str | None = None, progress: Progress | None = None
) -> Iterator[Finding]:
    """Findings about entries 1 to `until`: the first wrong position or leaf, wrong tiles, another head."""
    kept = None if kept_head is None else parse_head(kept_head)
    start = base(connection)
    if start < 0:
        yield Finding(start + 1, "stands before the log's start")
    frontier = Frontier()
    tiles: list[Tile] = []
    if kept is not None and kept[0] == 0:
        yield from _check_head(frontier, kept)
    try:
        for batch in rows(connection, 0, until):
            leaves = _leaves(batch, frontier.size)
            if kept is not None and frontier.size < kept[0] <= frontier.size + len(leaves):
                split = kept[0] - frontier.size
                tiles += frontier.extend(leaves[:split])
                yield from _check_head(frontier, kept)
                leaves = leaves[split:]
            tiles += frontier.extend(leaves)
            if progress is not None:
                progress(frontier.size, until)
        if frontier.size != until:
            raise LogCorrupt(frontier.size + 1, "is missing")
    except LogCorrupt as corrupt:
        yield Finding(corrupt.position, corrupt.message)
        return
    if kept is not None and kept[0] > until:
        yield Finding(until + 1, f"the log ends at {until}, the kept head names {kept[0]}: it was cut short")
    yield from _check_tiles(connection, tiles)


def _leaves(batch: Sequence[Any], before: int) -> list[bytes]:
    leaves = []
    position = before
    for found, ts, entry_type, version, endpoint_id, delivery_id, data, kept in batch:
        position += 1
        if found != position:
            raise LogCorrupt(position, f"is missing: position {found} stands in its place")
        try:
            leaf = leaf_hash(position, ts, entry_type, version, endpoint_id, delivery_id, data.encode())
        except (AttributeError, TypeError, UnicodeError, struct.error):
            raise LogCorrupt(position, "holds a value of the wrong type") from None
        if leaf != kept:
            raise LogCorrupt(position, "its content does not match its hash")
        leaves.append(leaf)
    return leaves


def _check_head(frontier: Frontier, kept: tuple[int, bytes]) -> Iterator[Finding]:
    if frontier.root() != kept[1]:
        yield Finding(
            None, f"the entries up to {kept[0]} are not those of the kept head: the log was rewritten"
        )


def _check_tiles(connection: Connection, expected: list[Tile]) -> Iterator[Finding]:
    found = {(level, number): hash for level, number, hash in stored_tiles(connection)}
    for level, number, hash in expected:
        if found.pop((level, number), None) != hash:
            first = (number << level) + 1
            yield Finding(first, f"tile {number} of level {level} is not the hash of its entries")
    # Entries after those checked may have been appended, and completed tiles, in the meantime.
    last, _ = last_entry(connection)
    for level, number in found:
        if level in TILE_LEVELS and type(number) is int and 0 <= number < last >> level:
            continue
        yield Finding(None, f"tile {number!r} of level {level!r} stands for no complete run of entries")


def main(path: str, until: str, kept_head: str | None = None) -> None:
    """Print the findings about a file, for the process that started this one."""

    def say(value: object) -> None:
        print(json.dumps(value), flush=True)

    try:
        with Database(path, "read") as database, database.read() as connection:
            for finding in check_tree(connection, int(until), kept_head, lambda done, _: say(done)):
                say(finding)
    except TextDamaged:
        sys.exit(TEXT_DAMAGED)


if __name__ == "__main__":
    main(*sys.argv[1:])
