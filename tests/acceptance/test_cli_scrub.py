"""`db scrub`: no byte of an erased key in the file, nor in the log beside it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from dispatcher.live import Dispatcher
from tests.acceptance.conftest import Command
from tests.acceptance.lively import enqueue
from tests.acceptance.test_live_erasure import URL, keys
from tests.acceptance.test_live_secrets import everything


def test_no_byte_of_an_erased_key_is_left_while_the_database_is_in_use(
    command: Command, live: Dispatcher, database: Path
) -> None:
    live.register("shop", URL)
    enqueue(live, "one", "kept")
    found = keys(database)
    live.erase("shop", ["one"])
    assert found["one"][1:33] in everything(database), "in the log beside the file"
    assert command("db", "scrub") == (0, "scrubbed\tyes\n", "")
    left = everything(database)
    assert found["one"][1:33] not in left
    assert found["kept"] in left
    assert command("db", "scrub", "--json").json == {"scrubbed": True}


def test_whoever_reads_holds_it_back(command: Command, live: Dispatcher, database: Path) -> None:
    live.register("shop", URL)
    enqueue(live, "one")
    found = keys(database)
    with closing(sqlite3.connect(database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM dispatcher_log").fetchone()
        live.erase("shop", ["one"])
        ran = command("db", "scrub", "--wait", "0")
        assert (ran.code, ran.out) == (1, "scrubbed\tno\n")
        assert "--wait" in ran.err
        assert command("db", "scrub", "--wait", "1", "--json")[:2] == (1, '{"scrubbed": false}\n')
        assert found["one"][1:33] in everything(database)
        reader.execute("COMMIT")
        assert command("db", "scrub").code == 0
    assert found["one"][1:33] not in everything(database)
