"""Who recomputes everything leaves a log that is whole: only a head kept elsewhere tells it apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dispatcher import head
from dispatcher.audit.verify import verify
from dispatcher.errors import UsageError
from dispatcher.log.read import LogRow
from dispatcher.log.rebuild import rebuild
from tests.forgery import forge, make, rewrite
from tests.ramdisk import ramdisk

Change = Callable[[list[LogRow]], list[LogRow]]


@pytest.fixture
def file() -> Iterator[Path]:
    with ramdisk() as folder:
        make("live", folder / "log.db")
        yield folder / "log.db"


def _size(kept: str) -> int:
    return int(kept.partition(":")[0])


def test_a_kept_head_of_now_is_that_of_a_valid_log(file: Path) -> None:
    assert verify(file, kept_head=head(file)).findings == []
    assert verify(file).head == head(file)


@pytest.mark.parametrize("kept_at", [0, 1, 2, 255, 256, 257, 512, 599, 600])
def test_a_kept_head_of_any_earlier_time_still_holds(file: Path, kept_at: int) -> None:
    with ramdisk() as folder:
        early = folder / "early.db"
        make("live", early)
        rewrite(early, lambda rows: rows[:kept_at])
        kept = head(early)
    assert _size(kept) == kept_at
    assert verify(file, kept_head=kept).findings == []


@pytest.mark.parametrize("lost", [1, 88, 89, 344, 345, 599])
def test_a_log_cut_short_is_found_with_a_kept_head_only(file: Path, lost: int) -> None:
    kept = head(file)
    rewrite(file, lambda rows: rows[:-lost])
    assert verify(file).findings == []
    (found,) = verify(file, kept_head=kept).findings
    assert found.position == _size(kept) - lost + 1
    assert "cut short" in found.message


def test_a_log_cut_short_by_hand_is_found_with_a_kept_head_only(file: Path) -> None:
    kept = head(file)
    forge(
        file,
        "DELETE FROM dispatcher_log WHERE position > 500",
        "DELETE FROM dispatcher_tiles WHERE (number + 1) << level > 500",
    )
    rebuild(file)
    assert verify(file).findings == []
    assert [found.position for found in verify(file, kept_head=kept).findings] == [501]


def _with(position: int, **changes: object) -> Change:
    def change(rows: list[LogRow]) -> list[LogRow]:
        rows[position - 1] = rows[position - 1]._replace(**changes)  # type: ignore[arg-type]
        return rows

    return change


def _without_the_last_attempt(rows: list[LogRow]) -> list[LogRow]:
    last = max(n for n, row in enumerate(rows) if row.type == "AttemptRecorded")
    return rows[:last] + rows[last + 1 :]


REWRITINGS: dict[str, Change] = {
    "another url": lambda rows: _with(2, data=rows[1].data.replace("a.example", "b.example"))(rows),
    "a later ts at the end": lambda rows: _with(600, ts=rows[-1].ts + 1)(rows),
    "a space in the data": lambda rows: _with(300, data=rows[299].data.replace("{", "{ ", 1))(rows),
    "an attempt taken out": _without_the_last_attempt,
}


@pytest.mark.parametrize("rewriting", REWRITINGS)
def test_a_rewritten_log_is_found_with_a_kept_head_only(file: Path, rewriting: str) -> None:
    kept = head(file)
    rewrite(file, REWRITINGS[rewriting])
    assert head(file) != kept
    assert verify(file).findings == []
    (found,) = verify(file, kept_head=kept).findings
    assert "rewritten" in found.message or "cut short" in found.message


def test_what_was_rewritten_after_the_kept_head_is_not_seen_by_it(file: Path) -> None:
    kept = head(file)
    rewrite(
        file, lambda rows: [*rows, rows[-1]._replace(type="EndpointUpdated", delivery_id=None, data="{}")]
    )
    longer = head(file)
    rewrite(file, lambda rows: _with(601, data='{"actor":"x"}')(rows))
    assert verify(file, kept_head=kept).findings == []
    assert verify(file, kept_head=longer).findings != []


def test_a_head_with_another_root_is_found(file: Path) -> None:
    for size in (0, 1, 256, 600):
        (found,) = verify(file, kept_head=f"{size}:{'0' * 64}").findings
        assert "rewritten" in found.message


@pytest.mark.parametrize("kept", ["", "600", "600:abc", f"-1:{'0' * 64}", f"x:{'0' * 64}", f"600:{'g' * 64}"])
def test_what_is_no_head_is_an_error_of_usage(file: Path, kept: str) -> None:
    with pytest.raises(UsageError):
        verify(file, kept_head=kept)
