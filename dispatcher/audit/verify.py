"""Is the log what was written, and do the views say what it says?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

from dispatcher.audit.finding import Finding
from dispatcher.audit.tree import TEXT_DAMAGED, check_tree
from dispatcher.core.merkle import parse_head
from dispatcher.errors import LogCorrupt, StorageError, TextDamaged, UsageError
from dispatcher.log.collector import paused_collector
from dispatcher.log.compare import differences, erasure_differences
from dispatcher.log.conservation import STATES, conservation
from dispatcher.log.fold import Progress, fold
from dispatcher.log.open import Connection, Database, Target
from dispatcher.log.read import head, last_entry
from dispatcher.log.schema import missing_triggers

ENTRIES_WORTH_A_PROCESS = 20_000


class Verification(NamedTuple):
    entries: int
    head: str
    """`POSITION:ROOT` of what was verified; without meaning when there are findings."""
    findings: list[Finding]
    """What is wrong, the first position first."""


def verify(
    database: Target, *, kept_head: str | None = None, progress: Progress | None = None
) -> Verification:
    """Fold the log from its start and compare everything that can be derived from it.

    Checks positions, leaf hashes, tiles, that every entry can follow, that the views equal the fold row for
    row, conservation, the triggers, and, given a head that was kept earlier (`POSITION:ROOT`), that the log
    still begins with exactly those entries. Changes nothing. Raises UsageError for a head that is none.
    """
    if kept_head is not None:
        try:
            parse_head(kept_head)
        except ValueError as error:
            raise UsageError(str(error), "Give the line that `dispatcher log head` printed.") from None
    progress = progress or (lambda done, total: None)
    try:
        return _verify(database, kept_head, progress, tolerant=False)
    except TextDamaged:
        return _verify(database, kept_head, progress, tolerant=True)


def _verify(database: Target, kept_head: str | None, progress: Progress, *, tolerant: bool) -> Verification:
    with (
        Database(database, "read", tolerant=tolerant) as opened,
        opened.read() as connection,
        paused_collector(),
    ):
        entries = last_entry(connection)[0]
        both = Together(progress)
        check: AbstractContextManager[Iterator[Finding]]
        if tolerant or opened.path is None or entries < ENTRIES_WORTH_A_PROCESS:
            check = nullcontext(check_tree(connection, entries, kept_head, both.tree))
        else:
            check = tree_process(opened.path, entries, kept_head, both.tree)
        with check as tree:
            findings = list(_fold_findings(connection, both.fold))
            findings += tree
        findings += [
            Finding(None, f"trigger {name} is missing: the log is not protected")
            for name in missing_triggers(connection)
        ]
        try:
            shown_head = head(connection)
        except LogCorrupt:
            shown_head = f"{entries}:"
    findings.sort(key=lambda finding: (finding.position is None, finding.position or 0))
    return Verification(entries, shown_head, findings)


def _fold_findings(connection: Connection, progress: Progress) -> Iterator[Finding]:
    try:
        state = fold(connection, progress=progress)
    except LogCorrupt as corrupt:
        yield Finding(corrupt.position, corrupt.message)
        return
    for difference in differences(connection, state):
        yield Finding(difference.position, f"{difference.table}: {difference.message}")
    yield from _conservation_findings(connection)
    if state.kind != "live":
        return  # It has no payloads.
    for position, erased in erasure_differences(connection):
        message = "is erased, but its key is still there" if erased else "is not erased, but its key is"
        yield Finding(position, f"the payload {message}")


def _conservation_findings(connection: Connection) -> Iterator[Finding]:
    """A finding where the three counts disagree."""
    counts = conservation(connection)
    by_endpoints, by_rows, enqueued = counts["endpoints"], counts["rows"], counts["entries"]["enqueued"]
    if by_rows["total"] != enqueued:
        yield Finding(None, f"{enqueued} events were enqueued, {by_rows['total']} are accounted for in rows")
    for state in (*STATES, "total"):
        if by_rows[state] != by_endpoints[state]:
            yield Finding(
                None,
                f"{state}: {by_rows[state]} by rows of deliveries, {by_endpoints[state]} by the endpoints",
            )


class Together:
    """Two checks side by side, shown as one progress."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._done = {"fold": 0, "tree": 0}

    def fold(self, done: int, total: int) -> None:
        self._say("fold", done, total)

    def tree(self, done: int, total: int) -> None:
        self._say("tree", done, total)

    def _say(self, check: str, done: int, total: int) -> None:
        self._done[check] = done
        self._progress(sum(self._done.values()), 2 * total)


@contextmanager
def tree_process(
    path: str, until: int, kept_head: str | None, progress: Progress
) -> Iterator[Iterator[Finding]]:
    """The findings of `check_tree`, from a process of its own that works beside the block."""
    command = [sys.executable, "-m", "dispatcher.audit.tree", path, str(until)]
    if kept_head is not None:
        command.append(kept_head)
    # The child finds this package where this process found it, installed or not.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # In a group of its own, so that Ctrl-C at the terminal reaches this process alone, which ends the child.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, process_group=0
    ) as process:
        try:
            yield _reported(process, until, progress)
        finally:
            process.kill()


def _reported(process: subprocess.Popen[str], until: int, progress: Progress) -> Iterator[Finding]:
    assert process.stdout is not None
    for line in process.stdout:
        said = json.loads(line)
        if isinstance(said, list):
            yield Finding(*said)
        else:
            progress(said, until)
    if process.wait() == TEXT_DAMAGED:
        raise TextDamaged("there is text that is no UTF-8")
    if process.returncode != 0:
        raise StorageError(
            f"the check of the hashes ended early, with exit code {process.returncode}",
            "Run the command again.",
        )
