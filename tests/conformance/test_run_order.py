"""Order within an endpoint, fairness between endpoints, and what `status` shows meanwhile."""

from __future__ import annotations

from typing import Any

from dispatcher import run
from tests.notation import DL, D, E, P, Q, R, S, state


def test_an_event_is_not_attempted_while_an_earlier_one_of_its_endpoint_is_pending() -> None:
    operations = [R("a"), Q(0, "a", "m", [503, 200]), Q(0, "a", "n", [200]), P(0), P(29)]
    assert run(operations)[3:] == [["m #1 503 retry at 30"], []]


def test_earlier_means_enqueued_earlier_not_due_earlier() -> None:
    operations = [R("a"), Q(0, "a", "m", [503, 200]), P(0), Q(1, "a", "n", [200]), P(1), P(30)]
    assert run(operations)[4:] == [[], ["m #2 200 delivered", "n #1 200 delivered"]]


def test_waiting_costs_no_attempts_and_moves_no_due_time() -> None:
    queued = [R("a"), Q(0, "a", "m", [503]), Q(3, "a", "n", [503])]
    looks = [operation for ts in (5, 35, 95, 215, 455) for operation in (P(ts), S(ts, "n"))]
    assert run([*queued, *looks])[4::2] == [state("pending", 0, 3)] * 5


def test_as_soon_as_the_earlier_one_is_delivered_the_next_is_attempted_in_the_same_process() -> None:
    assert run([R("a"), *(Q(0, "a", f"m{number}", [200]) for number in range(4)), P(0)])[-1] == [
        f"m{number} #1 200 delivered" for number in range(4)
    ]


def test_as_soon_as_the_earlier_one_is_dead_the_next_is_attempted_in_the_same_process() -> None:
    queued = [Q(0, "a", "m", [404]), Q(0, "a", "n", [410]), Q(0, "a", "o", [503]), Q(0, "a", "p", [200])]
    assert run([R("a"), *queued, P(0)])[-1] == ["m #1 404 dead", "n #1 410 dead", "o #1 503 retry at 30"]


def test_an_exhausted_event_frees_the_next_in_the_same_process() -> None:
    times = [0, 30, 90, 210, 450, 750]
    assert run([R("a"), Q(0, "a", "m", [0]), Q(0, "a", "n", [200]), *(P(ts) for ts in times)])[-2:] == [
        ["m #5 0 retry at 750"],
        ["m #6 0 dead", "n #1 200 delivered"],
    ]


def test_the_next_waits_for_its_own_due_time_even_when_eligible() -> None:
    """Being first makes nothing due: n comes first at 0, fails, and waits until 30; nobody overtakes it."""
    operations = [
        R("a"),
        Q(0, "a", "m", [200]),
        Q(0, "a", "n", [503, 200]),
        Q(0, "a", "o", [200]),
        P(0),
        P(29),
        P(30),
    ]
    assert run(operations)[4:] == [
        ["m #1 200 delivered", "n #1 503 retry at 30"],
        [],
        ["n #2 200 delivered", "o #1 200 delivered"],
    ]


def test_endpoints_never_block_each_other() -> None:
    operations = [R("a"), R("b"), Q(0, "a", "m", [503]), Q(0, "a", "n", [200]), Q(0, "b", "o", [200]), P(0)]
    assert run(operations)[-1] == ["m #1 503 retry at 30", "o #1 200 delivered"]


def test_process_takes_the_smallest_due_time_first() -> None:
    """Not enqueue order: m came first, but its retry is due last."""
    queued = [
        R("a"),
        R("b"),
        R("c"),
        Q(0, "a", "m", [503, 200]),
        P(0),
        Q(20, "c", "o", [200]),
        Q(25, "b", "n", [200]),
    ]
    assert run([*queued, P(30)])[-1] == ["o #1 200 delivered", "n #1 200 delivered", "m #2 200 delivered"]


def test_equal_due_times_go_by_enqueue_order_not_by_endpoint() -> None:
    """Neither the endpoints' ids nor the order of their registration nor the events' ids decide."""
    queued = [Q(0, "b", "z", [200]), Q(0, "a", "y", [200]), Q(0, "c", "x", [200]), Q(0, "a", "w", [200])]
    assert run([R("c"), R("a"), R("b"), *queued, P(0)])[-1] == [
        f"{event_id} #1 200 delivered" for event_id in "zyxw"
    ]


def test_endpoints_take_turns_by_due_time_and_not_one_after_the_other() -> None:
    queued = [
        Q(ts, endpoint_id, f"{endpoint_id}{ts}", [200]) for ts in range(3) for endpoint_id in ("a", "b")
    ]
    assert run([R("b"), R("a"), *queued, P(2)])[-1] == [
        f"{endpoint_id}{ts} #1 200 delivered" for ts in range(3) for endpoint_id in ("a", "b")
    ]


def test_an_overdue_follower_goes_next_once_it_is_first() -> None:
    """Only the first pending event of an endpoint competes: n, due since 0, comes after o, due at 20."""
    queued = [Q(0, "a", "m", [503, 200]), Q(0, "a", "n", [200]), P(0)]
    others = [Q(20, "b", "o", [200]), Q(30, "c", "p", [200])]
    assert run([R("a"), R("b"), R("c"), *queued, *others, P(30)])[-1] == [
        "o #1 200 delivered",
        "m #2 200 delivered",
        "n #1 200 delivered",
        "p #1 200 delivered",
    ]


def test_a_retry_scheduled_in_this_process_blocks_its_endpoint_for_the_rest_of_it() -> None:
    queued = [Q(0, "a", "m", [503]), Q(0, "b", "n", [200]), Q(0, "a", "o", [200]), Q(0, "b", "p", [200])]
    assert run([R("a"), R("b"), *queued, P(500)])[-1] == [
        "m #1 503 retry at 530",
        "n #1 200 delivered",
        "p #1 200 delivered",
    ]


# Status


def test_a_waiting_event_shows_its_own_due_time_and_attempts() -> None:
    operations = [R("a"), Q(0, "a", "m", [503]), Q(5, "a", "n", [200]), P(5), S(5, "n"), S(5, "m")]
    assert run(operations)[-2:] == [state("pending", 0, 5), state("pending", 1, 35)]


def test_next_attempt_at_is_null_unless_pending() -> None:
    """Delivered, dead, and held alike."""
    queued = [Q(0, "a", "m", [200]), Q(0, "a", "n", [404]), Q(0, "a", "o", [503]), P(0), D(1, "a")]
    assert run([R("a"), *queued, S(1, "m"), S(1, "n"), S(1, "o")])[-3:] == [
        state("delivered", 1),
        state("dead", 1),
        state("held", 1),
    ]


def test_a_read_sees_what_happened_up_to_it_and_nothing_later() -> None:
    looks: list[Any] = [S(0, "m"), P(0), S(0, "m"), DL(0), P(30), S(30, "m"), DL(30)]
    assert run([R("a"), Q(0, "a", "m", [503, 404]), *looks])[2:] == [
        state("pending", 0, 0),
        ["m #1 503 retry at 30"],
        state("pending", 1, 30),
        [],
        ["m #2 404 dead"],
        state("dead", 2),
        ["m"],
    ]


def test_an_event_stays_due_in_the_past_until_it_is_processed() -> None:
    assert run([R("a"), Q(0, "a", "m", [200]), S(500, "m"), E(500, "a", True), S(500, "m")])[2::2] == [
        state("pending", 0, 0),
        state("pending", 0, 0),
    ]
