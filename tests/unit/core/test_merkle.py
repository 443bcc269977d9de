"""The tree over the log, against published vectors and against its definition."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import sha256

import pytest

from dispatcher.core.merkle import EMPTY_ROOT, Frontier, Tile, format_head, node_hash, parse_head

# LeafInputs() and RootHashes() of https://github.com/transparency-dev/merkle, testonly/constants.go: the
# vectors that the implementations of Certificate Transparency share.
INPUTS = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = (
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
# NodeHashes() of the same file: level 1 and 2, from left to right.
PARENTS = (
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
    "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
)
GRANDPARENTS = (
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
)


def _published_leaves() -> list[bytes]:
    return [sha256(b"\x00" + value).digest() for value in INPUTS]


def _leaves(count: int) -> list[bytes]:
    return [sha256(b"leaf %d" % n).digest() for n in range(count)]


@cache
def _defined_root(start: int, end: int) -> bytes:
    """MTH of the synthetic leaves start to end, word for word as RFC 9162 section 2.1.1 has it."""
    n = end - start
    if n == 0:
        return sha256(b"").digest()
    if n == 1:
        return sha256(b"leaf %d" % start).digest()
    k = 1
    while k * 2 < n:
        k *= 2
    left, right = _defined_root(start, start + k), _defined_root(start + k, end)
    return sha256(b"\x01" + left + right).digest()


def _frontier(leaves: Sequence[bytes]) -> Frontier:
    frontier = Frontier()
    for leaf in leaves:
        frontier.append(leaf)
    return frontier


@pytest.mark.parametrize("size", range(9))
def test_roots_are_the_published_ones(size: int) -> None:
    assert _frontier(_published_leaves()[:size]).root().hex() == ROOTS[size]


def test_inner_nodes_are_the_published_ones() -> None:
    leaves = _published_leaves()
    parents = [node_hash(leaves[n], leaves[n + 1]) for n in range(0, 8, 2)]
    assert [parent.hex() for parent in parents] == list(PARENTS)
    assert [node_hash(parents[n], parents[n + 1]).hex() for n in (0, 2)] == list(GRANDPARENTS)


def test_the_root_of_no_leaves_is_the_hash_of_nothing() -> None:
    assert EMPTY_ROOT.hex() == ROOTS[0]
    assert Frontier().root() == EMPTY_ROOT


def test_every_size_has_the_root_that_the_definition_gives() -> None:
    frontier = Frontier()
    for size, leaf in enumerate(_leaves(600)):
        assert (frontier.size, frontier.root()) == (size, _defined_root(0, size))
        frontier.append(leaf)
    assert frontier.root() == _defined_root(0, 600)


def test_extending_is_appending_leaf_by_leaf_however_the_leaves_are_cut() -> None:
    leaves = _leaves(600)
    for cuts in ([600], [1] * 600, [7, 0, 249, 1, 343], [255, 1, 1, 343], [256, 256, 88]):
        frontier = Frontier()
        tiles: list[Tile] = []
        start = 0
        for cut in cuts:
            tiles += frontier.extend(leaves[start : start + cut])
            start += cut
            assert (frontier.size, frontier.root()) == (start, _defined_root(0, start))
        assert tiles == [Tile(8, 0, _defined_root(0, 256)), Tile(8, 1, _defined_root(256, 512))]


LARGE = 70_000


def test_a_large_tree_completes_a_tile_every_256_leaves_and_one_of_the_next_level_every_65536() -> None:
    frontier = Frontier()
    tiles = frontier.extend(_leaves(LARGE))
    assert [(t.level, t.number) for t in tiles if t.level == 8] == [(8, n) for n in range(LARGE // 256)]
    assert [(t.level, t.number) for t in tiles if t.level != 8] == [(16, 0)]
    for tile in tiles:
        start = tile.number << tile.level
        assert tile.hash == _defined_root(start, start + (1 << tile.level))
    # Where two end at one leaf the smaller comes first: a reader that stops there lacks nothing below.
    assert [(t.level, t.number) for t in tiles[255:258]] == [(8, 255), (16, 0), (8, 256)]
    assert frontier.root() == _defined_root(0, LARGE)


def test_a_tree_goes_on_from_its_tiles_and_the_leaves_after_them() -> None:
    leaves = _leaves(LARGE)
    tiles = {(t.level, t.number): t.hash for t in Frontier().extend(leaves)}
    frontier = Frontier()
    frontier.push(16, tiles[16, 0])
    for number in range(65_536 // 256, LARGE // 256):
        frontier.push(8, tiles[8, number])
    for leaf in leaves[LARGE // 256 * 256 :]:
        frontier.append(leaf)
    assert (frontier.size, frontier.root()) == (LARGE, _defined_root(0, LARGE))


def test_the_largest_tiles_have_2_to_the_24_leaves() -> None:
    frontier = Frontier()
    for level in reversed(range(24)):
        frontier.push(level, sha256(b"%d" % level).digest())
    assert frontier.size == 2**24 - 1
    tiles = frontier.extend([sha256(b"leaf").digest()])
    assert [(tile.level, tile.number) for tile in tiles] == [(8, 2**16 - 1), (16, 2**8 - 1), (24, 0)]
    assert tiles[-1].hash == frontier.root()


def test_a_head_is_the_position_and_the_root_in_hex() -> None:
    assert format_head(8, bytes.fromhex(ROOTS[8])) == f"8:{ROOTS[8]}"
    assert format_head(0, EMPTY_ROOT) == f"0:{ROOTS[0]}"


@pytest.mark.parametrize(
    "text", [f"8:{ROOTS[8]}", f" 8:{ROOTS[8]}\n", f"8:{ROOTS[8].upper()}", f"08:{ROOTS[8]}"]
)
def test_a_head_is_read_as_it_was_printed(text: str) -> None:
    assert parse_head(text) == (8, bytes.fromhex(ROOTS[8]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8",
        ":",
        f":{ROOTS[8]}",
        f"8:{ROOTS[8][:-1]}",
        f"8:{ROOTS[8]}0",
        f"-1:{ROOTS[8]}",
        f"\uff18:{ROOTS[8]}",
        f"1.0:{ROOTS[8]}",
        f"x:{ROOTS[8]}",
        f"8:{'g' * 64}",
        f"8 {ROOTS[8]}",
    ],
)
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_head(text)
