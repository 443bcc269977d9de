"""`dispatcher db`: care of the database."""

from __future__ import annotations

import sys

import click

from dispatcher.cli.failure import a_finding
from dispatcher.cli.options import common_options
from dispatcher.cli.output import Output
from dispatcher.cli.progress import Bar


@click.group()
def db() -> None:
    """Upgrade the database, make its derived tables again, change its master key, finish erasures."""


@db.command()
@common_options
def upgrade(database: str, out: Output) -> None:
    """Bring an existing database to this release's schema, in one transaction.

    Prints the schema before and after.
    """
    from dispatcher.log.migrate import upgrade as upgrade_schema

    def step(text: str) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            print(f"upgrading to {text}", file=sys.stderr)

    before, after = upgrade_schema(database, step)
    if out.json:
        out.document({"from": before, "to": after})
    else:
        out.record({"schema before": before, "schema now": after})


@db.command()
@common_options
def rebuild(database: str, out: Output) -> None:
    """Make every derived table again from the log, in one transaction. It changes no entry.

    Columns: table, rows written, rows that were wrong before.
    """
    from dispatcher.log.rebuild import rebuild as rebuild_tables

    with Bar("folding") as bar:
        tables = rebuild_tables(database, bar)
    if out.json:
        out.document({name: {"rows": rows, "wrong": wrong} for name, (rows, wrong) in tables.items()})
    else:
        out.table(("table", "rows", "wrong before"), [(name, *counts) for name, counts in tables.items()])


@db.command()
@common_options
def rewrap(database: str, out: Output) -> None:
    """Wrap every key of the vault under the newest master key.

    DISPATCHER_MASTER_KEY, or the file that DISPATCHER_MASTER_KEY_FILE names, holds the new key first, then
    the old one; give both to every worker before. Afterwards the old one can be taken away, except for
    backups. Stopped at any time, it does the rest when it is run again.

    Columns: table, keys, keys that were changed.
    """
    from dispatcher.log.rewrap import rewrap as rewrap_keys
    from dispatcher.log.seal import Keyring

    with Bar("wrapping keys") as bar:
        tables = rewrap_keys(database, Keyring.from_environment(), bar)
    if out.json:
        out.document({name: found._asdict() for name, found in tables.items()})
    else:
        out.table(("table", "keys", "changed"), [(name, *found) for name, found in tables.items()])


@db.command()
@click.option(
    "--wait",
    type=click.IntRange(0, 3600),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="So long, for others that read or write.",
)
@common_options
def scrub(wait: int, database: str, out: Output) -> None:
    """Empty the write-ahead log beside the database: then neither holds a key that was erased before.

    The exit code is 1 if others held it back: run it again.
    """
    from dispatcher.log.open import Database
    from dispatcher.log.scrub import scrub as scrub_keys

    with Database(database, "write") as opened:
        done = scrub_keys(opened, 0)
        if not done and wait:
            if sys.stderr is not None and sys.stderr.isatty():
                print(f"waiting up to {wait} s for others that read or write", file=sys.stderr)
            done = scrub_keys(opened, wait)
    if out.json:
        out.document({"scrubbed": done})
    else:
        out.record({"scrubbed": "yes" if done else "no"})
    if not done:
        raise a_finding(out, "others that read or write held it back", "Run it again, with a longer --wait.")
