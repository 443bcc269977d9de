"""What is written to stdout: JSON, aligned columns on a terminal, tab-separated lines anywhere else."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Cell = str | int | None

ROWS_TOGETHER = 500
WIDEST_PADDING = 60


class Output:
    """Where a command's answer goes, in the form that was asked for."""

    def __init__(self, *, as_json: bool) -> None:
        self.json = as_json
        self.terminal = sys.stdout is not None and sys.stdout.isatty()

    def document(self, value: object) -> None:
        """One JSON value: the whole answer, or one line of it where each line is a value."""
        # A stdout that is no UTF-8 would get \xe9 for é, which is no JSON; \u00e9 passes anywhere.
        encoding = getattr(sys.stdout, "encoding", None) or ""
        print(json.dumps(value, ensure_ascii=encoding.lower().replace("-", "") != "utf8"))

    def line(self, text: str) -> None:
        print(shown(text))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        """Rows under their columns' names; off a terminal without the names."""
        table = Table(self, columns)
        table.add(rows)
        table.finish()

    def record(self, fields: Mapping[str, Cell]) -> None:
        """One thing, a field a line."""
        Table(self, None).add(fields.items())


class Table:
    """Rows in columns. More may be added later: on a terminal the first ones set the widths."""

    def __init__(self, out: Output, columns: Sequence[str] | None) -> None:
        self._columns = columns
        self._console = _console() if out.terminal else None
        self._widths: list[int] = []

    def add(self, rows: Iterable[Sequence[Cell]]) -> None:
        if self._console is None:
            for row in rows:
                print("\t".join("" if cell is None else shown(str(cell)) for cell in row))
            return
        remaining = iter(rows)
        while some := list(islice(remaining, ROWS_TOGETHER)):
            self._draw(self._console, some)

    def finish(self) -> None:
        """Say so on a terminal if there was nothing."""
        if self._console is not None and not self._widths:
            self._console.print("none", style="dim")

    def _draw(self, console: Console, rows: list[Sequence[Cell]]) -> None:
        from rich.cells import cell_len
        from rich.text import Text

        texts = [["-" if cell is None else shown(str(cell)) for cell in row] for row in rows]
        named = self._columns is not None
        right = [named and isinstance(cell, int) for cell in rows[0]]
        drawn = Text()
        if not self._widths:
            lines = [list(self._columns), *texts] if self._columns is not None else texts
            widest = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
            self._widths = [min(width, WIDEST_PADDING) for width in widest]
            if self._columns is not None:
                drawn.append(self._aligned(self._columns, right, ["bold"] * len(right)))
        for cells in texts:
            styles = [style_of(cell) for cell in cells] if named else ["dim", *map(style_of, cells[1:])]
            drawn.append(self._aligned(cells, right, styles))
        # soft_wrap: a line that is too long goes on in the next one, where a copied id is still whole.
        console.print(drawn, soft_wrap=True, end="")

    def _aligned(self, cells: Sequence[str], right: Sequence[bool], styles: Sequence[str]) -> Text:
        from rich.cells import cell_len
        from rich.text import Text

        line = Text()
        for cell, width, to_the_right, style in zip(cells, self._widths, right, styles, strict=True):
            padding = " " * (width - cell_len(cell))
            before, after = (padding, "") if to_the_right else ("", padding)
            line.append("  " if line else "").append(before).append(cell, style).append(after)
        line.rstrip()
        return line.append("\n")


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def style_of(text: str) -> str:
    """The colour of a state, a result or a sentence, told from how it ends."""
    if text.startswith("error: ") or text in ("dead", "disabled"):
        return "red"
    if text.endswith((" dead", "(permanent)", "(no attempt left)")):
        return "red"
    if text.endswith("delivered"):
        return "green"
    return "yellow" if text in ("pending", "held") or " retry at " in text else ""


def shown(text: str) -> str:
    """Text as one line that cannot steer a terminal: control characters and the like are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def prepare_stdout() -> None:
    """From here on no text is too foreign for stdout: what its encoding lacks is escaped."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def flush() -> None:
    """Send what was written on its way. Raises OSError when nobody takes it."""
    if sys.stdout is not None:
        sys.stdout.flush()


def finish_stdout() -> None:
    """Send what is left; where nobody takes it, drop it, or the interpreter would complain at its end."""
    try:
        flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
