"""How fast the log is folded and verified, against merely reading and decoding it.

bare: SELECT of all eight columns of the log through the driver's cursor, and msgspec's decoding of each
  `data` with the decoders that the fold uses; nothing is kept.
fold: `dispatcher.log.fold.fold` on the same connection, in the same open read transaction: the state is built
  and kept until the clock has stopped; no hash is computed, no view compared.
verify: `dispatcher.audit.verify.verify` of the file, whole: opening it, hashing every entry (in a second
  process), the fold, the comparison with every row of the views, the counts.

The file is the one that `run_rate` measures. The garbage collector is off on all sides, SQLite's cache is
warm.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from dispatcher import run
from dispatcher.audit.verify import verify
from dispatcher.core.upcast import DECODERS
from dispatcher.log.fold import fold
from dispatcher.log.open import Database
from tests.bench.measure import Took, arguments, in_turns, middle, print_line, rounded, sides, timed
from tests.bench.workload import delivered


def read_bare(connection: sqlite3.Connection) -> int:
    """Decode every entry; how many there were."""
    count = 0
    rows = connection.execute(
        "SELECT position, ts, type, version, endpoint_id, delivery_id, data, hash"
        " FROM dispatcher_log ORDER BY position"
    )
    for _position, _ts, entry_type, version, _endpoint_id, _delivery_id, data, _hash in rows:
        DECODERS[entry_type, version](data)
        count += 1
    return count


def measure(path: Path, rounds: int) -> tuple[int, dict[str, list[Took]]]:
    """How many entries there are, and what each side took."""
    with Database(path, "read") as database, database.read() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        entries = read_bare(driver)
        verified = verify(path)
        assert verified.entries == entries, f"{verified.entries} entries verified, {entries} read"
        assert not verified.findings, verified.findings
        assert fold(connection).position == entries
        measured = in_turns(
            {
                "bare": lambda: timed(lambda: read_bare(driver)),
                "fold": lambda: timed(lambda: fold(connection)),
                "verify": lambda: timed(lambda: verify(path)),
            },
            rounds,
        )
    return entries, measured


def main() -> None:
    given = arguments(__doc__, 100_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "measured.db"
        run(delivered(given.size), path)
        entries, measured = measure(path, given.rounds)
    seconds = {name: middle(rounds) for name, rounds in measured.items()}
    line = {
        "ratio": rounded(seconds["bare"] / seconds["fold"]),
        "verify_ratio": rounded(seconds["bare"] / seconds["verify"]),
        **sides(**measured),
        "entries": entries,
        **{f"{name}_entries_per_second": round(entries / taken) for name, taken in seconds.items()},
        "garbage_collector": "off on all sides",
    }
    print_line("fold_rate", "bare_seconds / fold_seconds >= 0.5, bare_seconds / verify_seconds >= 0.3", line)


if __name__ == "__main__":
    main()
