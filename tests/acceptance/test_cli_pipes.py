"""Where output goes: into pipes that close early, into encodings that lack a letter, onto terminals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dispatcher import run
from tests.acceptance.cli import COMMAND, PATIENCE_SECONDS, dispatcher, drawn, environment, started

DEAD = 5_000
FOREIGN = "é😱"

# An encoding that lacks them, as old systems set it up, or as one may ask for it.
POOR = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1"},
]


@pytest.fixture(scope="module")
def graveyard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose dispatcher.db holds 5,000 dead letters."""
    folder = tmp_path_factory.mktemp("graveyard")
    enqueued = [["enqueue", 0, FOREIGN, f"{FOREIGN}-{n}", [404]] for n in range(DEAD)]
    run([["register", 0, FOREIGN, "https://e.example"], *enqueued, ["process", 0]], folder / "dispatcher.db")
    return folder


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "listing",
    [
        ["dead-letters"],
        ["dead-letters", "--json"],
        ["replay"],
        ["log", "tail", "--after", "0"],
        ["log", "tail", "--after", "0", "--json"],
        ["log", "tail", "--follow", "--last", "5000"],
    ],
    ids=" ".join,
)
def test_a_reader_that_goes_away_is_no_error(listing: list[str], unbuffered: str, graveyard: Path) -> None:
    with started(*listing, at=graveyard, env={"PYTHONUNBUFFERED": unbuffered}) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10)
        process.stdout.close()
        assert (process.wait(PATIENCE_SECONDS), process.stderr.read()) == (0, "")


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_dead_letters_into_head(unbuffered: str, graveyard: Path) -> None:
    command = f"'{sys.executable}' -m dispatcher dead-letters | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=graveyard,
        env=environment(PYTHONUNBUFFERED=unbuffered),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [f"{FOREIGN}-0\t{FOREIGN}\t1\t404\t5003", "0"]
    assert done.stderr == ""


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("arguments", [["--help"], ["status", f"{FOREIGN}-0"]], ids=["help", "status"])
def test_an_answer_into_nothing(arguments: list[str], unbuffered: str, graveyard: Path) -> None:
    with started(*arguments, at=graveyard, env={"PYTHONUNBUFFERED": unbuffered}) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.wait(PATIENCE_SECONDS), process.stderr.read()) == (0, "")


def test_tail_follow_ends_when_its_reader_is_gone(graveyard: Path) -> None:
    with started("log", "tail", "--follow", "--last", "1", at=graveyard) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_SECONDS) == 0


def test_json_is_pure_and_whole(graveyard: Path) -> None:
    listing = subprocess.run(
        [*COMMAND, "dead-letters", "--json"],
        cwd=graveyard,
        env=environment(),
        capture_output=True,
        check=True,
    )
    assert listing.stderr == b""
    subprocess.run([sys.executable, "-m", "json.tool"], input=listing.stdout, check=True, capture_output=True)
    assert len(json.loads(listing.stdout)) == DEAD


@pytest.mark.parametrize("poor", POOR, ids=" ".join)
def test_foreign_letters_are_escaped_where_stdout_lacks_them(poor: dict[str, str], graveyard: Path) -> None:
    dead = f"{FOREIGN}-0"
    piped = dispatcher("history", dead, at=graveyard, **poor)
    assert (piped.code, piped.err) == (0, "")
    shown = dispatcher("status", dead, "--json", at=graveyard, **poor)
    assert (shown.code, shown.err, shown.json["event_id"]) == (0, "", dead)
    unknown = dispatcher("status", f"{FOREIGN}?", at=graveyard, **poor)
    assert unknown.code == 3
    assert "?" in unknown.err


def test_foreign_letters_are_shown_where_stdout_has_them(graveyard: Path) -> None:
    assert f'"{FOREIGN}-0"' in dispatcher("status", f"{FOREIGN}-0", "--json", at=graveyard).out
    assert ["endpoint_id", FOREIGN] in dispatcher("status", f"{FOREIGN}-0", at=graveyard).lines
    escaped = dispatcher("status", f"{FOREIGN}-0", at=graveyard, PYTHONIOENCODING="ascii")
    assert ["endpoint_id", r"\xe9\U0001f631"] in escaped.lines


def test_an_id_that_is_no_text_is_wrong_usage(graveyard: Path) -> None:
    done = subprocess.run(
        [*(part.encode() for part in COMMAND), b"status", b"\xff"],
        cwd=graveyard,
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_full_disk_behind_stdout_is_exit_code_4(graveyard: Path) -> None:
    with Path("/dev/full").open("w") as full, started("log", "head", at=graveyard, stdout=full) as process:
        assert process.stderr is not None
        assert process.wait(PATIENCE_SECONDS) == 4
        assert process.stderr.read().startswith("error: No space left on device\n")


def test_without_a_stdout_it_still_ends_well(graveyard: Path) -> None:
    command = f"'{sys.executable}' -m dispatcher log head >&-"
    done = subprocess.run(
        ["bash", "-c", command], cwd=graveyard, env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_on_a_terminal_columns_are_aligned_under_their_names(example: Path) -> None:
    seen = drawn("endpoint", "list", at=example)
    lines = _plain(seen).splitlines()
    assert lines[0].split() == [
        "endpoint_id", "state", "pending", "held", "delivered", "dead", "cancelled", "url",
    ]  # fmt: skip
    assert {line.index("http") for line in lines[1:]} == {lines[0].index("url")}
    assert {line.index(" 0 ") for line in lines[1:]} == {lines[1].index(" 0 ")}
    assert "\x1b[1m" in seen


def test_on_a_terminal_states_have_colours_unless_they_are_refused(example: Path) -> None:
    assert "\x1b[31mdead\x1b[" in drawn("status", "pick-201", at=example)
    assert "\x1b[31m" not in drawn("status", "pick-201", at=example, NO_COLOR="1")


def test_on_a_terminal_each_attempt_has_its_line_and_nothing_is_said_to_be_none(example: Path) -> None:
    seen = _plain(drawn("run", "--example", "--database", "new.db", at=example)).splitlines()
    (first,) = (n for n, line in enumerate(seen) if "order-102 #1 202 delivered" in line)
    assert seen[first].startswith("  10  process ")
    assert seen[first + 1].strip() == "pick-102 #1 422 dead"
    assert seen[first].index("order-102") == seen[first + 1].index("pick-102")
    assert _plain(drawn("dead-letters", "billing", at=example)).strip() == "none"


def test_json_on_a_terminal_is_json(example: Path) -> None:
    assert json.loads(drawn("status", "pick-201", "--json", at=example))["state"] == "dead"


def test_long_work_shows_how_far_it_is_and_only_on_a_terminal(graveyard: Path, tmp_path: Path) -> None:
    operations = [["register", 0, "e", "u"], *(["enqueue", 0, "e", f"m-{n}", [200]] for n in range(3_000))]
    (tmp_path / "many.json").write_text(json.dumps(operations))
    running = drawn("run", "many.json", at=tmp_path, streams=("stderr",))
    assert re.search(r"running .*/3001", _plain(running))
    for command, doing in (
        (["log", "verify"], "verifying"),
        (["db", "rebuild"], "folding"),
        (["replay", "--check"], "deciding again"),
    ):
        assert doing in drawn(*command, at=graveyard, streams=("stderr",))
        assert drawn(*command, at=graveyard, streams=("stdout",)).count("\x1b[2K") == 0
        assert dispatcher(*command, at=graveyard).err == ""


def _plain(seen: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
