"""Heads of small fixed histories: customers keep such lines, so equal histories must have them for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher import head, run
from dispatcher.core.entries import BODIES
from dispatcher.core.operations import (
    AnyOperation,
    Cancel,
    Disable,
    Enable,
    Enqueue,
    Erase,
    Record,
    Refusal,
    Register,
    Release,
    Revive,
    Update,
)
from dispatcher.core.policy import PROMISED, STANDARD
from dispatcher.log.append import appending
from dispatcher.log.open import Database
from tests.examples import WORKED_EXAMPLES

HEADS = {
    "retries": "6:600ad3d2df9894758c9b597edd36d9e5b711d6befd5fbcd7447c8f6f847403eb",
    "order": "7:674db000337aa6aa61707a776b1fdf8fa7fc7601787c0ec045f3c85121b60712",
    "revival": "10:25de60654c9d6c5b676ca3b08cfc64c5063bf57417e279aa91e904caef93e93c",
}

START = 1_790_000_000_000
SHOP, MAIL = "default/shop", "default/mail"

# Every operation and every type of entry once, as (milliseconds after the start, operation).
LIVE: list[tuple[int, AnyOperation]] = [
    (
        0,
        Register(endpoint_id=SHOP, url="https://shop.example", policy=PROMISED.scaled(1000), url_digest="d1"),
    ),
    (
        5,
        Register(
            endpoint_id=MAIL,
            url="mailto",
            policy=STANDARD.scaled(1000),
            erase="on_delivery",
            disable_when_gone=True,
            actor="operator",
        ),
    ),
    (10, Enqueue(SHOP, f"{SHOP}/evt-1", None, "k1", 17, "d2", "app")),
    (10, Enqueue(SHOP, f"{SHOP}/evt-2", None, None, 18, "d3", "app")),
    (10, Enqueue(MAIL, f"{MAIL}/evt-1", None, None, 19, "d4", "app")),
    (11, Enqueue(MAIL, f"{MAIL}/evt-2", None, None, 20, "d5", "app")),
    (500, Record(f"{SHOP}/evt-1", 503, START + 100, 400, None, None, 60_000, "host-1/1")),
    (600, Record(f"{SHOP}/evt-2", 404, START + 100, 500, None, None, None, "host-1/1")),
    (700, Record(f"{MAIL}/evt-1", 250, START + 100, 600, "success", None, None, "host-1/1")),
    (800, Record(f"{MAIL}/evt-2", 410, START + 701, 99, None, "smtp_5yz", None, "host-1/1")),
    (900, Release(f"{SHOP}/evt-1", START + 850, "host-1/1")),
    (1000, Update(endpoint_id=SHOP, order="none", concurrency=2, actor="operator")),
    (1100, Enqueue(SHOP, f"{SHOP}/évt-3", None, None, 21)),
    (1200, Revive(SHOP, (f"{SHOP}/evt-2",), actor="operator")),
    (1300, Disable(SHOP, "maintenance", "operator")),
    (1400, Cancel(f"{SHOP}/évt-3", actor="operator")),
    (1500, Erase(f"{SHOP}/evt-2", actor="operator")),
    (1600, Enable(SHOP, True, "operator")),
    (1700, Enable(MAIL, True)),
]
LIVE_HEAD = "24:c0edea98a95b71e5572331bd69885bb8a4014b8d424b3bd0917182e99babc902"


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_the_worked_examples_have_the_heads_they_always_had(example: str, tmp_path: Path) -> None:
    operations, _ = WORKED_EXAMPLES[example]
    run(operations, tmp_path / "log.db")
    assert head(tmp_path / "log.db") == HEADS[example]


def test_a_live_history_of_every_type_of_entry_has_the_head_it_always_had(tmp_path: Path) -> None:
    file = tmp_path / "log.db"
    types = set()
    with Database(file) as database, appending(database, "live") as log:
        for after, operation in LIVE:
            decided = log.apply(operation, START + after)
            assert not isinstance(decided, Refusal), operation
            types |= {type(entry.body) for entry in decided}
    assert types == set(BODIES)
    assert head(file) == LIVE_HEAD


def test_a_database_without_entries_has_the_head_of_nothing(tmp_path: Path) -> None:
    run([], tmp_path / "log.db")
    nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert head(tmp_path / "log.db") == f"0:{nothing}"
