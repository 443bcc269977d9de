"""`log`, `replay` and `db`: the entries, whether they are still those, and what is derived from them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher import head, run
from dispatcher.log.schema import REVISION
from tests.acceptance.cli import EXAMPLE, dispatcher, started


@pytest.fixture
def tamper(example: Path) -> Callable[[str], None]:
    """Executes SQL on the example's database, where the log's triggers are put out of the way first."""

    def execute(sql: str) -> None:
        with closing(sqlite3.connect(example / "dispatcher.db")) as connection:
            triggers = connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall()
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            connection.executescript(sql)
            for _, trigger in triggers:
                connection.execute(trigger)
            connection.commit()

    return execute


def test_tail_shows_the_last_entries(example: Path) -> None:
    piped = dispatcher("log", "tail", at=example)
    assert (piped.code, piped.err) == (0, "")
    assert [line[0] for line in piped.lines] == [str(position) for position in range(32, 52)]
    assert piped.lines[-1] == [
        "51", "2040", "AttemptRecorded", "warehouse", "pick-203", "attempt 1: 200, delivered",
    ]  # fmt: skip
    assert dispatcher("log", "tail", "--last", "1", at=example).lines == piped.lines[-1:]
    assert dispatcher("log", "tail", "--after", "49", at=example).lines == piped.lines[-2:]
    assert dispatcher("log", "tail", "--after", "49", "--last", "1", at=example).lines == piped.lines[-1:]
    assert len(dispatcher("log", "tail", "--after", "0", at=example).lines) == 51
    assert dispatcher("log", "tail", "--after", str(2**63 - 1), at=example) == (0, "", "")


def test_tail_as_json_is_an_entry_a_line(example: Path) -> None:
    ran = dispatcher("log", "tail", "--json", "--after", "0", at=example)
    entries = [json.loads(line) for line in ran.out.splitlines()]
    assert [entry["position"] for entry in entries] == list(range(1, 52))
    with closing(sqlite3.connect(example / "dispatcher.db")) as connection:
        cursor = connection.execute("SELECT * FROM dispatcher_log ORDER BY position")
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
    assert entries == [{**row, "data": json.loads(row["data"]), "hash": row["hash"].hex()} for row in rows]


def test_tail_follows_what_another_process_appends(example: Path) -> None:
    with started("log", "tail", "--follow", "--last", "1", at=example) as tail:
        assert tail.stdout is not None
        assert tail.stdout.readline().startswith("51\t")
        dispatcher("run", "-", at=example, stdin='[["enqueue", 3000, "billing", "late", [200]]]')
        assert tail.stdout.readline() == "52\t3000\tEnqueued\tbilling\tlate\tenqueued for billing\n"
        dispatcher("run", "-", at=example, stdin='[["process", 3000]]')
        assert tail.stdout.readline().startswith("53\t3000\tAttemptRecorded\tbilling\tlate\t")


def test_head_is_position_and_root(example: Path) -> None:
    kept = head(str(example / "dispatcher.db"))
    assert dispatcher("log", "head", at=example) == (0, f"{kept}\n", "")
    position, root = kept.split(":")
    assert dispatcher("log", "head", "--json", at=example).json == {"position": int(position), "root": root}


def test_a_log_as_it_was_written_verifies(example: Path) -> None:
    kept = head(str(example / "dispatcher.db"))
    expected = [["findings", "0"], ["entries", "51"], ["head", kept]]
    assert dispatcher("log", "verify", at=example).lines == expected
    assert dispatcher("log", "verify", "--head", kept, at=example).lines == expected
    found = dispatcher("log", "verify", "--json", at=example)
    assert found.json == {"ok": True, "entries": 51, "head": kept, "findings": []}
    assert (found.code, found.err) == (0, "")


def test_a_changed_entry_is_a_finding_and_exit_code_1(example: Path, tamper: Callable[[str], None]) -> None:
    tamper("UPDATE dispatcher_log SET ts = ts + 1 WHERE position = 40")
    ran = dispatcher("log", "verify", at=example)
    assert ran.code == 1
    assert ["40", "its content does not match its hash"] in ran.lines
    message, remedy = ran.err.splitlines()
    assert message.startswith("error: ")
    assert "`dispatcher db rebuild`" in remedy
    found = dispatcher("log", "verify", "--json", at=example)
    assert (found.code, found.err, found.json["ok"]) == (1, "", False)
    assert {"position": 40, "message": "its content does not match its hash"} in found.json["findings"]


def test_a_log_that_was_rewritten_or_cut_short_does_not_match_a_kept_head(tmp_path: Path) -> None:
    run(EXAMPLE, str(tmp_path / "long.db"))
    run(EXAMPLE[:10], str(tmp_path / "dispatcher.db"))
    kept = head(str(tmp_path / "long.db"))
    ran = dispatcher("log", "verify", "--head", kept, at=tmp_path)
    assert ran.code == 1
    assert "cut short" in ran.out
    other = f"3:{'0' * 64}"
    assert "rewritten" in dispatcher("log", "verify", "--head", other, at=tmp_path).out


def test_a_head_that_is_none_is_wrong_usage(example: Path) -> None:
    ran = dispatcher("log", "verify", "--head", "51", at=example)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: a head is POSITION:ROOT")


def test_an_entry_that_cannot_be_read_is_exit_code_5(example: Path, tamper: Callable[[str], None]) -> None:
    tamper("UPDATE dispatcher_log SET data = 'secret' WHERE position = 40")
    for command in (["log", "tail"], ["db", "rebuild"], ["replay", "--check"]):
        ran = dispatcher(*command, at=example)
        assert ran.code == 5, command
        assert "position 40" in ran.err
        assert "secret" not in ran.err
    error = dispatcher("db", "rebuild", "--json", at=example)
    assert (error.code, error.error["code"]) == (5, "log_corrupt")


def test_replay_prints_every_attempt_as_it_was_recorded(example: Path) -> None:
    recorded = [
        attempt
        for (name, *_), result in zip(EXAMPLE, run(EXAMPLE), strict=True)
        if name == "process"
        for attempt in result
    ]
    piped = dispatcher("replay", at=example)
    assert [line[4] for line in piped.lines] == recorded
    assert piped.lines[0] == ["8", "0", "storefront", "order-101", "order-101 #1 200 delivered"]
    lines = dispatcher("replay", "--json", at=example).out.splitlines()
    assert [json.loads(line)["record"] for line in lines] == recorded
    assert list(json.loads(lines[0])) == ["position", "ts", "endpoint_id", "event_id", "record"]


@pytest.mark.parametrize(
    ("limit", "last"), [(["--until", "10"], "10"), (["--until-ts", "30"], "17")], ids=str
)
def test_replay_stops_at_a_position_or_a_time(limit: list[str], last: str, example: Path) -> None:
    assert dispatcher("replay", *limit, at=example).lines[-1][0] == last


def test_replay_takes_one_limit(example: Path) -> None:
    ran = dispatcher("replay", "--until", "1", "--until-ts", "1", at=example)
    assert (ran.code, ran.out) == (2, "")


def test_replay_checks_that_the_rules_decide_the_same_again(
    example: Path, tamper: Callable[[str], None]
) -> None:
    assert dispatcher("replay", "--check", at=example).code == 0
    assert dispatcher("replay", "--check", "--json", at=example).json == {"ok": True, "finding": None}
    tamper("UPDATE dispatcher_log SET data = replace(data, 'at\":90', 'at\":91') WHERE position = 17")
    ran = dispatcher("replay", "--check", at=example)
    assert ran.code == 1
    assert ran.lines[0][0] == "17"
    assert ran.err.startswith("error: ")
    found = dispatcher("replay", "--check", "--json", at=example)
    assert (found.code, found.err, found.json["finding"]["position"]) == (1, "", 17)
    assert dispatcher("replay", "--check", "--until", "16", at=example).code == 0


def test_rebuild_tells_rows_and_how_many_were_wrong(example: Path) -> None:
    with closing(sqlite3.connect(example / "dispatcher.db")) as connection:
        connection.execute("UPDATE dispatcher_deliveries SET attempts = 99 WHERE state = 'dead'")
        connection.commit()
    assert dispatcher("log", "verify", at=example).code == 1
    piped = dispatcher("db", "rebuild", at=example)
    assert (piped.code, piped.err) == (0, "")
    assert ["dispatcher_deliveries", "13", "2"] in piped.lines
    again = dispatcher("db", "rebuild", "--json", at=example).json
    assert again["dispatcher_deliveries"] == {"rows": 13, "wrong": 0}
    assert dispatcher("log", "verify", at=example).code == 0


def test_upgrade_tells_the_schema_before_and_after(example: Path) -> None:
    piped = dispatcher("db", "upgrade", at=example)
    assert (piped.code, piped.lines) == (0, [["schema before", REVISION], ["schema now", REVISION]])
    assert dispatcher("db", "upgrade", "--json", at=example).json == {"from": REVISION, "to": REVISION}


def test_upgrade_gives_an_applications_database_a_log(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "app.db")) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    ran = dispatcher("db", "upgrade", "--database", "app.db", "--json", at=tmp_path)
    assert ran.json == {"from": None, "to": REVISION}
    assert dispatcher("log", "head", "--database", "app.db", at=tmp_path).out.startswith("0:")
