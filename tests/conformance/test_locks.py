"""What one part of a process does with a database leaves the locks of its other parts alone."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from dispatcher import head, run
from dispatcher.audit.standing import endpoints, standing
from dispatcher.log.open import Database
from tests.notation import Q, R

# Another process that opens the database for writing, and cleans up if it is the last to close it.
ELSEWHERE = "import sys; from dispatcher import head, run; run([], sys.argv[1]); print(head(sys.argv[1]))"


def test_reading_a_database_gives_up_no_lock_that_this_process_holds_on_it(tmp_path: Path) -> None:
    """POSIX drops all locks on a file when any of its descriptors is closed. Others would then take the log
    that is still being written for abandoned, and delete what was written: nobody would see the rest."""
    file = tmp_path / "log.db"
    run([R("a")], file)
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("UPDATE dispatcher_endpoints SET url = 'changed'")
        before = (tmp_path / "log.db-wal").stat().st_ino
        head(file)
        with standing(file) as state:
            endpoints(state)
        subprocess.run([sys.executable, "-c", ELSEWHERE, file], check=True, stdout=subprocess.DEVNULL)
        assert (tmp_path / "log.db-wal").stat().st_ino == before


def test_what_is_appended_after_a_read_is_seen_by_other_processes(tmp_path: Path) -> None:
    file = tmp_path / "log.db"
    run([R("a")], file)
    with Database(file, "read") as database, database.read():
        head(file)
        run([Q(0, "a", "m", [200])], file)
        there = subprocess.run(
            [sys.executable, "-c", ELSEWHERE, file], check=True, capture_output=True, text=True
        )
        assert there.stdout.strip() == head(file)
