"""The seven operations: what each answers, and each refusal of its own."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dispatcher import run
from tests.examples import WORKED_EXAMPLES
from tests.notation import DL, URL, D, E, P, Q, R, S, exact, state


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_the_worked_examples_come_out_verbatim(example: str) -> None:
    operations, results = WORKED_EXAMPLES[example]
    assert exact(run(operations)) == exact(results)


def test_run_returns_one_result_per_operation() -> None:
    assert exact(run([])) == exact([])
    assert len(run([R("a"), ["nonsense"], [], P(0), P(0)])) == 5


def test_run_leaves_its_operations_as_they_were() -> None:
    operations = [R("a"), Q(0, "a", "m", [503, 200]), P(0), D(1, "a"), E(2, "a", True), P(2), P(1), [], ["x"]]
    before = copy.deepcopy(operations)
    run(operations)
    assert exact(operations) == exact(before)


def test_without_a_database_every_call_starts_anew() -> None:
    assert run([R("a")]) == [True]
    assert run([R("a"), Q(0, "a", "m", [200])]) == [True, "queued"]


def test_operations_may_be_tuples() -> None:
    operations = [R("a"), Q(0, "a", "m", [200]), P(0), S(0, "m")]
    assert run([tuple(operation) for operation in operations]) == run(operations)


# What each answers


def test_register_answers_true() -> None:
    assert exact(run([R("a"), R("b")])) == exact([True, True])


def test_enqueue_answers_queued() -> None:
    assert exact(run([R("a"), Q(0, "a", "m", [200])])[1:]) == exact(["queued"])


def test_process_answers_a_list_of_attempt_records() -> None:
    results = run([R("a"), P(0), Q(0, "a", "m", [200]), Q(0, "a", "n", [404]), P(0)])
    assert exact([results[1], results[-1]]) == exact([[], ["m #1 200 delivered", "n #1 404 dead"]])


def test_status_answers_state_attempts_and_next_attempt() -> None:
    results = run([R("a"), Q(7, "a", "m", [503]), S(7, "m"), P(7), S(7, "m")])
    assert exact(results[2]) == exact({"state": "pending", "attempts": 0, "next_attempt_at": 7})
    assert exact(results[4]) == exact({"state": "pending", "attempts": 1, "next_attempt_at": 37})


def test_dead_letters_answers_the_ids_of_all_dead_events_or_of_one_endpoint() -> None:
    opening = [R("a"), R("b"), R("c"), DL(0), DL(0, "c")]
    dying = [Q(0, "a", "m", [404]), Q(0, "b", "n", [400]), Q(0, "a", "o", [410]), Q(0, "a", "p", [200]), P(0)]
    results = run([*opening, *dying, DL(0), DL(0, "a"), DL(0, "b"), DL(0, "c")])
    assert exact(results[3:5]) == exact([[], []])
    assert exact(results[-4:]) == exact([["m", "n", "o"], ["m", "o"], ["n"], []])


def test_dead_letters_are_in_the_order_of_their_latest_death() -> None:
    dying = [R("a"), R("b"), Q(0, "a", "m", [503, 404]), Q(1, "b", "n", [404]), P(1), P(31), DL(31)]
    assert run(dying)[-1] == ["n", "m"], "not in enqueue order"
    revived = [D(40, "b"), E(40, "b", True), DL(40), P(40), DL(40), DL(40, "b")]
    assert run([*dying, *revived])[-4:] == [["m"], ["n #1 404 dead"], ["m", "n"], ["n"]]


def test_two_deaths_in_one_process_are_listed_as_they_happened() -> None:
    enqueued = [R("a"), R("b"), Q(0, "b", "later", [503, 404]), Q(0, "a", "sooner", [503, 404])]
    paused = [P(0), D(1, "a"), E(2, "a", False), P(30), DL(30)]
    assert run([*enqueued, *paused])[-1] == ["sooner", "later"], "due at 2 comes before due at 30"


def test_disable_and_enable_answer_true() -> None:
    assert exact(run([R("a"), D(0, "a"), E(0, "a", False), D(0, "a"), E(0, "a", True)])) == exact([True] * 5)


# What each refuses, in the order checked


@pytest.mark.parametrize("url", [URL, "https://elsewhere.example/"])
def test_register_refuses_a_known_endpoint_whatever_the_url(url: str) -> None:
    assert exact(run([R("a"), ["register", 0, "a", url]])) == exact([True, "error: duplicate endpoint"])


def test_endpoint_ids_are_compared_exactly() -> None:
    ids = ["a", "A", " a", "a ", "á", "a\u0301", "a\n", "%", "_", "a\U0001f631"]
    assert run([R(endpoint_id) for endpoint_id in ids]) == [True] * len(ids)


def test_event_ids_are_compared_exactly() -> None:
    ids = [
        "m",
        "M",
        " m",
        "m ",
        "é",
        "e\u0301",
        "m\n",
        "%",
        "_",
        "m\U0001f631",
        "\ufeffm",
        "0",
        "00",
        "'",
        '"',
    ]
    results = run([R("a"), *(Q(0, "a", event_id, [200]) for event_id in ids), P(0)])
    assert results == [True, *["queued"] * len(ids), [f"{event_id} #1 200 delivered" for event_id in ids]]


OWN_REFUSALS: list[tuple[list[Any], str]] = [
    (Q(0, "z", "m", []), "unknown endpoint"),
    (Q(0, "z", "known", []), "unknown endpoint"),
    (Q(0, "z", "known", [200]), "unknown endpoint"),
    (Q(0, "a", "known", []), "duplicate event"),
    (Q(0, "a", "known", [200]), "duplicate event"),
    (Q(0, "b", "known", [200]), "duplicate event"),
    (Q(0, "b", "gone", [200]), "duplicate event"),
    (Q(0, "a", "m", []), "invalid outcomes"),
    (S(0, "m"), "unknown event"),
    (S(0, "a"), "unknown event"),
    (S(0, "KNOWN"), "unknown event"),
    (DL(0, "z"), "unknown endpoint"),
    (DL(0, "known"), "unknown endpoint"),
    (D(0, "z"), "unknown endpoint"),
    (D(0, "paused"), "already disabled"),
    (E(0, "z", True), "unknown endpoint"),
    (E(0, "a", True), "not disabled"),
    (E(0, "a", False), "not disabled"),
    (["register", 0, "paused", URL], "duplicate endpoint"),
]


@pytest.mark.parametrize(("operation", "code"), OWN_REFUSALS)
def test_each_operation_refuses_in_the_order_listed(operation: list[Any], code: str) -> None:
    known = [
        R("a"),
        R("b"),
        R("paused"),
        D(0, "paused"),
        Q(0, "b", "gone", [404]),
        P(0),
        Q(0, "a", "known", [200]),
    ]
    assert exact(run([*known, operation])[-1]) == exact(f"error: {code}")


BAD_OUTCOMES: list[Any] = [
    [],
    [True],
    [200, False],
    [99],
    [1],
    [-1],
    [600],
    [-200],
    [200, 600],
    [200.0],
    ["200"],
    [None],
    [[200]],
    [2**64],
    [10**4000],
    [float("nan")],
    (200,),
    "200",
    200,
    None,
    True,
    {},
    {200: 503},
    {200},
    b"\xc8",
    range(200, 203),
]


@pytest.mark.parametrize("outcomes", BAD_OUTCOMES, ids=lambda outcomes: repr(outcomes)[:20])
def test_outcomes_are_a_non_empty_list_of_integers_each_0_or_in_100_to_599(outcomes: Any) -> None:
    results = run([R("a"), Q(0, "a", "m", outcomes), S(0, "m"), Q(0, "a", "m", [200])])
    assert exact(results[1:]) == exact(["error: invalid outcomes", "error: unknown event", "queued"])


@pytest.mark.parametrize("outcomes", [[0], [100], [599], [200], [0, 100, 599], [503] * 1000])
def test_outcomes_at_the_edges_are_accepted(outcomes: list[int]) -> None:
    assert run([R("a"), Q(0, "a", "m", outcomes)])[1:] == ["queued"]


def test_event_ids_are_unique_across_all_endpoints() -> None:
    queued = [Q(0, "a", "m", [200]), Q(0, "b", "m", [200]), P(0), Q(1, "b", "m", [200]), S(1, "m")]
    assert run([R("a"), R("b"), *queued])[2:] == [
        "queued",
        "error: duplicate event",
        ["m #1 200 delivered"],
        "error: duplicate event",
        state("delivered", 1),
    ]


def test_an_event_may_have_the_id_of_an_endpoint() -> None:
    assert run([R("a"), Q(0, "a", "a", [200]), P(0)])[1:] == ["queued", ["a #1 200 delivered"]]


def test_enqueue_makes_the_event_due_at_its_own_ts_and_attempts_nothing() -> None:
    queued = [Q(5, "a", "m", [200]), S(1000, "m"), P(4), P(5)]
    assert run([R("a"), *queued])[1:] == [
        "queued",
        state("pending", 0, 5),
        "error: time went backwards",
        ["m #1 200 delivered"],
    ]
