"""`dispatcher run`: what it takes, what it prints, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dispatcher import run
from tests.acceptance.cli import EXAMPLE, dispatcher
from tests.examples import WORKED_EXAMPLES

OPERATIONS: list[Any] = [
    ["register", 0, "shop", "https://shop.example/hooks"],
    ["enqueue", 0, "shop", "evt-1", [503, 200]],
    ["enqueue", 0, "shop", "evt-2", [404]],
    ["process", 0],
    ["status", 0, "evt-1"],
    ["process", 30],
    ["dead_letters", 30],
    ["status", 30, "evt-9"],
    "nonsense",
]


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "operations.json").write_text(json.dumps(OPERATIONS))
    return "operations.json"


def test_piped_it_prints_ts_operation_and_result_of_each(file: str, tmp_path: Path) -> None:
    ran = dispatcher("run", file, at=tmp_path)
    assert ran.code == 0
    assert ran.lines == [
        ["0", "register shop https://shop.example/hooks", "true"],
        ["0", "enqueue shop evt-1 [503, 200]", "queued"],
        ["0", "enqueue shop evt-2 [404]", "queued"],
        ["0", "process", "evt-1 #1 503 retry at 30"],
        ["0", "status evt-1", "pending, 1 attempt, next at 30"],
        ["30", "process", "evt-1 #2 200 delivered, evt-2 #1 404 dead"],
        ["30", "dead_letters", "evt-2"],
        ["30", "status evt-9", "error: unknown event"],
        ["", '"nonsense"', "error: invalid arguments"],
    ]
    assert ran.err == "refused: 2 of 9 operations\n"


def test_json_is_the_plain_list_of_results(file: str, tmp_path: Path) -> None:
    ran = dispatcher("run", file, "--json", at=tmp_path)
    assert (ran.code, ran.json) == (0, run(OPERATIONS))
    assert ran.err == "refused: 2 of 9 operations\n"


@pytest.mark.parametrize("example", WORKED_EXAMPLES)
def test_operations_come_from_standard_input(example: str, tmp_path: Path) -> None:
    operations, results = WORKED_EXAMPLES[example]
    ran = dispatcher("run", "-", "--json", at=tmp_path, stdin=json.dumps(operations))
    assert ran == (0, json.dumps(results) + "\n", "")


def test_what_a_run_did_is_kept_in_the_database_and_continued(tmp_path: Path) -> None:
    first = dispatcher("run", "-", at=tmp_path, stdin=json.dumps(OPERATIONS[:3]))
    then = dispatcher("run", "-", "--json", at=tmp_path, stdin=json.dumps(OPERATIONS[3:]))
    assert first.code == then.code == 0
    assert then.json == run(OPERATIONS)[3:]
    assert (tmp_path / "dispatcher.db").is_file()


def test_the_database_is_named_by_option_or_environment(file: str, tmp_path: Path) -> None:
    assert dispatcher("run", file, "--database", "a.db", at=tmp_path).code == 0
    assert dispatcher("run", file, at=tmp_path, DISPATCHER_DATABASE="b.db").code == 0
    assert dispatcher("run", file, "--database", f"sqlite:///{tmp_path}/c.db", at=tmp_path).code == 0
    assert dispatcher("run", file, "--database", ":memory:", at=tmp_path).code == 0
    assert {found.name for found in tmp_path.glob("*.db")} == {"a.db", "b.db", "c.db"}


def test_the_example_runs_without_a_refusal_and_suggests_three_commands_that_work(tmp_path: Path) -> None:
    ran = dispatcher("run", "--example", at=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert len(ran.lines) == len(EXAMPLE) + 5
    suggested = [line.split() for line in ran.out.splitlines()[-3:]]
    for name, *arguments in suggested:
        assert name == "dispatcher"
        assert dispatcher(*arguments, at=tmp_path).code == 0


def test_suggestions_name_another_database_and_json_has_none(tmp_path: Path) -> None:
    ran = dispatcher("run", "--example", "--database", "my log.db", at=tmp_path)
    assert ran.out.endswith("  dispatcher log verify --database 'my log.db'\n")
    assert dispatcher("run", "--example", "--json", at=tmp_path).json == run(EXAMPLE)


def test_the_example_on_a_database_that_holds_it_says_what_to_do(tmp_path: Path) -> None:
    dispatcher("run", "--example", at=tmp_path)
    again = dispatcher("run", "--example", at=tmp_path)
    assert again.code == 0
    refused, remedy = again.err.splitlines()
    assert refused.startswith("refused: ")
    assert "--database" in remedy


def test_the_example_shows_an_outage_a_poison_event_and_a_revival() -> None:
    text = json.dumps(run(EXAMPLE))
    assert 40 <= len(EXAMPLE) <= 60
    assert {name for name, *_ in EXAMPLE} == {
        "register",
        "enqueue",
        "process",
        "status",
        "dead_letters",
        "disable",
        "enable",
    }
    for shown in ("#6 0 dead", "#1 422 dead", '"held"', "retry at", "delivered"):
        assert shown in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'[["register", 0,\n  "secret" "more"]]', "operations.json is not JSON: line 2, column 12: "),
        (b"", "operations.json is not JSON: line 1, column 1: "),
        (b'[["secret\xff"]]', "operations.json is not JSON: byte 9 is not UTF-8"),
        (b'{"secret": 1}', "operations.json holds no list, but one JSON object"),
        (b'"secret"', "operations.json holds no list, but one JSON string"),
        (b"[" * 200_000, "operations.json holds lists that are nested too deeply"),
        (b"[" + b"9" * 5000 + b"]", "operations.json holds a number of more digits than can be read"),
    ],
    ids=["cut short", "empty", "no UTF-8", "an object", "a string", "deep", "endless number"],
)
def test_a_bad_file_is_refused_without_repeating_what_it_holds(
    text: bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / "operations.json").write_bytes(text)
    ran = dispatcher("run", "operations.json", at=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    said, remedy = ran.err.splitlines()
    assert said.startswith(f"error: {message}")
    assert remedy.startswith("Give a JSON list of operations")
    assert "secret" not in ran.err
    assert not (tmp_path / "dispatcher.db").exists()


def test_a_file_that_is_not_there_and_a_folder_are_refused(tmp_path: Path) -> None:
    for name, message in (("nowhere.json", "there is no file nowhere.json"), (".", ". is a folder")):
        error = dispatcher("run", name, "--json", at=tmp_path)
        assert error.code == 2
        assert error.error["message"] == message


@pytest.mark.parametrize("arguments", [[], ["operations.json", "--example"]], ids=["nothing", "both"])
def test_it_takes_a_file_or_the_example(arguments: list[str], file: str, tmp_path: Path) -> None:
    ran = dispatcher("run", *arguments, at=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: name a FILE of operations")


def test_json_is_read_as_python_reads_it_and_every_oddity_is_a_refusal(tmp_path: Path) -> None:
    text = r'[["process", NaN], ["process", 1e400], ["process", %s], ["register", 0, "\ud800", "u"]]' % (
        "9" * 40
    )
    ran = dispatcher("run", "-", "--json", at=tmp_path, stdin=text)
    assert (ran.code, ran.json) == (0, ["error: invalid arguments"] * 4)
    piped = dispatcher("run", "-", at=tmp_path, stdin=text)
    assert piped.lines[3] == ["0", r"register \ud800 u", "error: invalid arguments"]


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    ran = dispatcher("run", "-", "--json", at=tmp_path, stdin=b'\xef\xbb\xbf[["process", 0]]')
    assert (ran.code, ran.json) == (0, [[]])


def test_ids_cannot_break_a_line_or_steer_the_terminal(tmp_path: Path) -> None:
    operations = [["register", 0, "a\tb\nc\x1b[2J", "u"]]
    ran = dispatcher("run", "-", at=tmp_path, stdin=json.dumps(operations))
    assert ran.lines == [["0", r"register a\tb\nc\x1b[2J u", "true"]]
    assert dispatcher("endpoint", "list", "--json", at=tmp_path).json[0]["endpoint_id"] == "a\tb\nc\x1b[2J"
