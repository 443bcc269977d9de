"""`status`, `history`, `dead-letters` and `endpoint`: how things stand, piped and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dispatcher import run
from tests.acceptance.cli import EXAMPLE, dispatcher


def test_status_says_what_run_says_and_more(example: Path) -> None:
    piped = dispatcher("status", "pick-201", at=example)
    assert (piped.code, piped.err) == (0, "")
    fields = dict(piped.lines)
    assert fields == {
        "event_id": "pick-201",
        "endpoint_id": "warehouse",
        "state": "dead",
        "attempts": "6",
        "next_attempt_at": "",
        "max_attempts": "6",
        "last_status": "0",
        "last_error": "",
        "waits_behind": "",
        "disabled": "",
    }
    found = dispatcher("status", "pick-201", "--json", at=example).json
    assert list(found) == list(fields)
    (said,) = run([*EXAMPLE, ["status", 9999, "pick-201"]])[-1:]
    assert said == {name: found[name] for name in ("state", "attempts", "next_attempt_at")}


def test_status_tells_what_an_event_waits_behind(tmp_path: Path) -> None:
    operations = [["register", 0, "e", "u"], *(["enqueue", n, "e", f"m-{n}", [503]] for n in range(2))]
    dispatcher("run", "-", at=tmp_path, stdin=json.dumps(operations))
    found = dispatcher("status", "m-1", "--json", at=tmp_path).json
    assert (found["state"], found["next_attempt_at"], found["waits_behind"]) == ("pending", 1, "m-0")


def test_history_is_a_timeline(example: Path) -> None:
    piped = dispatcher("history", "pick-202", at=example)
    assert (piped.code, piped.err) == (0, "")
    assert [line[1:] for line in piped.lines] == [
        ["300", "enqueued for warehouse"],
        ["1050", "attempt 1: no answer, retry at 1080"],
        ["1950", "attempt 2: no answer, retry at 2010"],
        ["2040", "attempt 3: 200, delivered"],
    ]
    rows = dispatcher("history", "pick-202", "--json", at=example).json
    assert [[str(row["position"]), str(row["ts"])] for row in rows] == [line[:2] for line in piped.lines]
    assert rows[-1]["data"]["decision"] == "delivered"
    assert all(row["delivery_id"] == "pick-202" and len(row["hash"]) == 64 for row in rows)


def test_history_tells_of_death_and_revival(example: Path) -> None:
    told = [line[2] for line in dispatcher("history", "pick-102", at=example).lines]
    assert told == [
        "enqueued for warehouse",
        "attempt 1: 422, dead (permanent)",
        "revived, with no attempts, at its original place",
        "attempt 1: 422, dead (permanent)",
    ]


@pytest.mark.parametrize("endpoint", [[], ["warehouse"]], ids=["of all", "of one endpoint"])
def test_dead_letters_are_listed_in_the_order_of_their_death(endpoint: list[str], example: Path) -> None:
    piped = dispatcher("dead-letters", *endpoint, at=example)
    assert (piped.code, piped.err) == (0, "")
    assert [line[:4] for line in piped.lines] == [
        ["pick-102", "warehouse", "1", "422"],
        ["pick-201", "warehouse", "6", "0"],
    ]
    found = dispatcher("dead-letters", *endpoint, "--json", at=example).json
    assert [dead["event_id"] for dead in found] == run([*EXAMPLE, ["dead_letters", 9999, *endpoint]])[-1]
    assert [str(dead["position"]) for dead in found] == [line[4] for line in piped.lines]


def test_no_dead_letters_are_no_lines(example: Path) -> None:
    assert dispatcher("dead-letters", "billing", at=example) == (0, "", "")
    assert dispatcher("dead-letters", "billing", "--json", at=example) == (0, "[]\n", "")


def test_endpoints_are_listed_with_their_counts(example: Path) -> None:
    piped = dispatcher("endpoint", "list", at=example)
    assert (piped.code, piped.err) == (0, "")
    assert piped.lines == [
        ["storefront", "enabled", "0", "0", "4", "0", "0", "https://storefront.example/hooks"],
        ["billing", "enabled", "0", "0", "3", "0", "0", "https://billing.example/webhooks"],
        ["warehouse", "enabled", "0", "0", "4", "2", "0", "https://warehouse.example/inbound"],
    ]
    found = dispatcher("endpoint", "list", "--json", at=example).json
    assert [endpoint["delivered"] for endpoint in found] == [4, 3, 4]


def test_an_endpoint_is_shown_with_its_policy(example: Path) -> None:
    fields = dict(dispatcher("endpoint", "show", "warehouse", at=example).lines)
    assert fields["state"] == "enabled"
    assert fields["dead"] == "2"
    assert fields["waits"] == "30 60 120 240 300"
    assert fields["retryable"] == "0 408 429 500-599"
    found = dispatcher("endpoint", "show", "warehouse", "--json", at=example).json
    assert found["policy"]["waits"] == [30, 60, 120, 240, 300]


@pytest.mark.parametrize(
    "question",
    [["status", "x"], ["history", "x"], ["dead-letters", "x"], ["endpoint", "show", "x"]],
    ids=" ".join,
)
def test_what_is_not_there_is_exit_code_3(question: list[str], example: Path) -> None:
    ran = dispatcher(*question, at=example)
    assert (ran.code, ran.out) == (3, "")
    message, remedy = ran.err.splitlines()
    assert message.startswith("error: no ")
    assert "'x'" in message
    assert "`dispatcher " in remedy
    as_json = dispatcher(*question, "--json", at=example)
    assert (as_json.code, as_json.error["code"]) == (3, "not_found")
    assert f"error: {as_json.error['message']}" == message
