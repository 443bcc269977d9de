"""The contract's three worked examples, as (operations, results)."""

from __future__ import annotations

from typing import Any

from tests.notation import D, E, P, Q, R

RETRIES = (
    [
        ["register", 0, "shop", "https://shop.example/hooks"],
        ["enqueue", 0, "shop", "evt-1", [503, 503, 200]],
        ["process", 0],
        ["process", 30],
        ["process", 89],
        ["process", 90],
        ["status", 90, "evt-1"],
    ],
    [
        True,
        "queued",
        ["evt-1 #1 503 retry at 30"],
        ["evt-1 #2 503 retry at 90"],
        [],
        ["evt-1 #3 200 delivered"],
        {"state": "delivered", "attempts": 3, "next_attempt_at": None},
    ],
)

ORDER = (
    [R("shop"), Q(0, "shop", "evt-1", [500, 200]), Q(0, "shop", "evt-2", [200]), P(0), P(30)],
    [
        True,
        "queued",
        "queued",
        ["evt-1 #1 500 retry at 30"],
        ["evt-1 #2 200 delivered", "evt-2 #1 200 delivered"],
    ],
)

REVIVAL = (
    [
        R("shop"),
        Q(0, "shop", "evt-1", [404]),
        P(0),
        D(10, "shop"),
        Q(20, "shop", "evt-2", [200]),
        E(50, "shop", True),
        P(50),
    ],
    [
        True,
        "queued",
        ["evt-1 #1 404 dead"],
        True,
        "queued",
        True,
        ["evt-1 #1 404 dead", "evt-2 #1 200 delivered"],
    ],
)

WORKED_EXAMPLES: dict[str, tuple[list[Any], list[Any]]] = {
    "retries": RETRIES,
    "order": ORDER,
    "revival": REVIVAL,
}
