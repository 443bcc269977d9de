"""Pause and resume: what stands still, what becomes due, what is revived and where it goes."""

from __future__ import annotations

import pytest

from dispatcher import run
from tests.notation import DL, D, E, P, Q, R, S, state


def test_while_disabled_nothing_is_attempted_for_that_endpoint_and_others_go_on() -> None:
    queued = [
        R("a"),
        R("b"),
        Q(0, "a", "m", [200]),
        Q(0, "b", "n", [200]),
        D(0, "a"),
        P(0),
        P(1000),
        S(1000, "m"),
    ]
    assert run(queued)[5:] == [["n #1 200 delivered"], [], state("held", 0)]


def test_while_disabled_enqueue_is_still_accepted_and_the_event_is_held() -> None:
    assert run([R("a"), D(0, "a"), Q(5, "a", "m", [200]), S(5, "m"), P(5)])[2:] == [
        "queued",
        state("held", 0),
        [],
    ]


def test_while_disabled_pending_events_keep_their_attempt_counts_and_read_as_held() -> None:
    operations = [R("a"), Q(0, "a", "m", [503]), P(0), P(30), D(31, "a"), S(31, "m"), P(90), S(90, "m")]
    assert run(operations)[-3:] == [state("held", 2), [], state("held", 2)]


def test_delivered_and_dead_events_are_unaffected_by_a_pause() -> None:
    operations = [
        R("a"),
        Q(0, "a", "m", [200]),
        Q(0, "a", "n", [404]),
        P(0),
        D(1, "a"),
        S(1, "m"),
        S(1, "n"),
        DL(1, "a"),
    ]
    assert run(operations)[-3:] == [state("delivered", 1), state("dead", 1), ["n"]]
    assert run([*operations, E(2, "a", False), S(2, "m"), S(2, "n"), DL(2)])[-3:] == [
        state("delivered", 1),
        state("dead", 1),
        ["n"],
    ]


@pytest.mark.parametrize("replay_dead", [True, False])
def test_on_enable_every_pending_event_becomes_due_at_the_enable_ts_and_keeps_its_attempts(
    replay_dead: bool,
) -> None:
    """One was due later, one earlier, one was enqueued meanwhile: none keeps its due time."""
    queued = [R("a"), Q(0, "a", "m", [503, 503, 200]), Q(0, "a", "n", [200]), P(0), P(30), D(31, "a")]
    resumed = [
        Q(40, "a", "o", [200]),
        E(50, "a", replay_dead),
        S(50, "m"),
        S(50, "n"),
        S(50, "o"),
        P(49),
        P(50),
    ]
    assert run([*queued, *resumed])[-5:] == [
        state("pending", 2, 50),
        state("pending", 0, 50),
        state("pending", 0, 50),
        "error: time went backwards",
        ["m #3 200 delivered", "n #1 200 delivered", "o #1 200 delivered"],
    ]


def test_a_resumed_event_goes_on_with_its_schedule_and_its_budget() -> None:
    queued = [R("a"), Q(0, "a", "m", [503]), P(0), P(30), D(40, "a"), E(50, "a", True)]
    times = [50, 170, 410, 710, 9999]
    assert run([*queued, *(P(ts) for ts in times)])[6:] == [
        ["m #3 503 retry at 170"],
        ["m #4 503 retry at 410"],
        ["m #5 503 retry at 710"],
        ["m #6 503 dead"],
        [],
    ]


def test_an_enable_moves_only_its_own_endpoints_events() -> None:
    queued = [R("a"), R("b"), Q(0, "a", "m", [503]), Q(0, "b", "n", [503]), Q(0, "b", "dead", [404]), P(0)]
    assert run([*queued, D(5, "a"), E(9, "a", True), S(9, "m"), S(9, "n")])[-2:] == [
        state("pending", 1, 9),
        state("pending", 1, 30),
    ]


def test_after_an_enable_endpoints_compete_from_the_enable_ts() -> None:
    """m was due before everything else, but resuming made it due at 50: those due earlier go first."""
    queued = [R("a"), R("b"), R("c"), Q(0, "a", "m", [200]), D(0, "a"), Q(40, "b", "n", [200])]
    resumed = [E(50, "a", False), Q(50, "c", "o", [200]), P(50)]
    assert run([*queued, *resumed])[-1] == ["n #1 200 delivered", "m #1 200 delivered", "o #1 200 delivered"]


def test_with_replay_dead_the_dead_are_pending_again_with_no_attempts_and_out_of_the_dead_letters() -> None:
    queued = [R("a"), R("b"), Q(0, "a", "m", [503, 404]), Q(0, "b", "n", [404]), P(0), P(30), D(40, "a")]
    assert run([*queued, DL(40), S(40, "m"), E(50, "a", True), S(50, "m"), DL(50), DL(50, "a")])[-6:] == [
        ["n", "m"],
        state("dead", 2),
        True,
        state("pending", 0, 50),
        ["n"],
        [],
    ]


def test_a_revived_event_starts_its_outcomes_again_from_the_first() -> None:
    operations = [
        R("a"),
        Q(0, "a", "m", [503, 404, 200]),
        P(0),
        P(30),
        D(40, "a"),
        E(50, "a", True),
        P(50),
        P(80),
    ]
    assert run(operations)[-2:] == [["m #1 503 retry at 80"], ["m #2 404 dead"]]


def test_a_revived_event_has_its_whole_budget_again() -> None:
    queued = [
        R("a"),
        Q(0, "a", "m", [503]),
        *(P(ts) for ts in (0, 30, 90, 210, 450, 750)),
        D(800, "a"),
        E(1000, "a", True),
    ]
    assert run([*queued, *(P(ts) for ts in (1000, 1030, 1090, 1210, 1450, 1750, 9999))])[-7:] == [
        ["m #1 503 retry at 1030"],
        ["m #2 503 retry at 1090"],
        ["m #3 503 retry at 1210"],
        ["m #4 503 retry at 1450"],
        ["m #5 503 retry at 1750"],
        ["m #6 503 dead"],
        [],
    ]


def test_with_false_the_dead_stay_dead() -> None:
    operations = [R("a"), Q(0, "a", "m", [404]), P(0), D(1, "a"), E(2, "a", False), P(2), S(2, "m"), DL(2)]
    assert run(operations)[-3:] == [[], state("dead", 1), ["m"]]


def test_the_dead_of_an_earlier_pause_can_still_be_revived_by_a_later_one() -> None:
    operations = [
        R("a"),
        Q(0, "a", "m", [404]),
        P(0),
        D(1, "a"),
        E(2, "a", False),
        D(3, "a"),
        E(4, "a", True),
        DL(4),
    ]
    assert run([*operations, S(4, "m")])[-2:] == [[], state("pending", 0, 4)]


def test_a_revived_event_returns_to_its_original_place_and_blocks_those_after_it() -> None:
    """n has been pending all the time, with an attempt behind it; m comes before it again."""
    queued = [
        R("a"),
        Q(0, "a", "m", [404, 503]),
        Q(0, "a", "n", [503, 200]),
        P(0),
        D(1, "a"),
        E(2, "a", True),
    ]
    assert run([*queued, P(2), P(32)])[-2:] == [
        ["m #1 404 dead", "n #2 200 delivered"],
        [],
    ]
    blocking = [
        R("a"),
        Q(0, "a", "m", [503, 404]),
        Q(0, "a", "n", [503, 200]),
        P(0),
        P(30),
        D(31, "a"),
        E(40, "a", True),
    ]
    assert run([*blocking, P(40), P(69), S(69, "n"), P(70)])[-4:] == [
        ["m #1 503 retry at 70"],
        [],
        state("pending", 1, 40),
        ["m #2 404 dead", "n #2 200 delivered"],
    ]


def test_several_revived_events_all_return_to_their_places() -> None:
    queued = [Q(0, "a", "m1", [404]), Q(0, "a", "m2", [503, 404]), Q(0, "a", "m3", [404]), P(0), P(30)]
    assert run([R("a"), *queued, D(31, "a"), E(40, "a", True), P(40), P(70)])[-2:] == [
        ["m1 #1 404 dead", "m2 #1 503 retry at 70"],
        ["m2 #2 404 dead", "m3 #1 404 dead"],
    ]


def test_a_revived_event_keeps_its_place_among_equal_due_times_of_other_endpoints() -> None:
    queued = [
        R("a"),
        R("b"),
        Q(0, "a", "m", [404]),
        P(0),
        D(1, "a"),
        Q(5, "b", "n", [200]),
        E(5, "a", True),
        P(5),
    ]
    assert run(queued)[-1] == ["m #1 404 dead", "n #1 200 delivered"]


def test_a_revived_event_may_be_delivered_before_younger_ones_that_already_were() -> None:
    queued = [
        R("a"),
        Q(0, "a", "m", [404]),
        Q(0, "a", "n", [200]),
        P(0),
        D(1, "a"),
        E(2, "a", True),
        P(2),
        S(2, "n"),
    ]
    assert run(queued)[-2:] == [["m #1 404 dead"], state("delivered", 1)]


def test_a_second_pause_holds_a_revived_event_again() -> None:
    operations = [
        R("a"),
        Q(0, "a", "m", [404]),
        P(0),
        D(1, "a"),
        E(2, "a", True),
        D(2, "a"),
        S(2, "m"),
        P(2),
        E(9, "a", False),
    ]
    assert run([*operations, S(9, "m")])[-4:] == [state("held", 0), [], True, state("pending", 0, 9)]


def test_pausing_and_resuming_at_one_instant_makes_everything_due_then() -> None:
    operations = [R("a"), Q(0, "a", "m", [503, 200]), P(0), D(1, "a"), E(1, "a", False), P(1)]
    assert run(operations)[-1] == ["m #2 200 delivered"]
