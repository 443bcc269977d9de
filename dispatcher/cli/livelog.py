"""What a command that runs for long says on stderr: JSON lines, or on a terminal lines above a live one."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dispatcher.cli.output import shown

if TYPE_CHECKING:
    from rich.live import Live

    from dispatcher.cli.recorded import Attempt

LEVELS = ("debug", "info", "warning", "error")
OURS = "dispatcher"

logger = logging.getLogger("dispatcher.work")


def tell(event: str, text: str, *, level: int = logging.INFO, **fields: object) -> None:
    """Log an event: in JSON by its name and fields, on a terminal as a text. Neither may hold a secret."""
    logger.log(level, "%s", text, extra={"event": event, "fields": fields})


class JsonLines(logging.Formatter):
    """One object a line: time, level, event and its fields; of another record the logger and message."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told: dict[str, object] = {"time": at.replace("+00:00", "Z"), "level": record.levelname.lower()}
        attempt = attempt_of(record)
        if attempt is not None:
            told |= {"event": "attempt", **attempt.fields}
        elif hasattr(record, "event"):
            told |= {"event": record.event, **record.__dict__["fields"]}
        else:
            told |= {"event": "message", "logger": record.name, "message": message(record)}
        if record.exc_info:
            told["trace"] = trace(record)
        return json.dumps(told)


class Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        attempt = attempt_of(record)
        text = message(record) if attempt is None else attempt.sentence
        return "\n  ".join([f"{at} {record.levelname.lower()}: {shown(text)}", *trace(record)])


def attempt_of(record: logging.LogRecord) -> Attempt | None:
    """The attempt that a worker's record is about."""
    entry = getattr(record, "entry", None)
    if entry is None:
        return None
    from dispatcher.cli.recorded import Attempt

    return Attempt.of(entry)


def message(record: logging.LogRecord) -> str:
    # Messages of other libraries may hold urls, whole.
    ours = record.name.split(".")[0] == OURS
    return record.getMessage() if ours else f"{record.module}:{record.lineno} has something to say"


def trace(record: logging.LogRecord) -> list[str]:
    """Where an exception came from, and its class; its text may hold what is secret."""
    if not record.exc_info or record.exc_info[0] is None:
        return []
    kind, _, found = record.exc_info
    frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(found)]
    return [*frames, kind.__name__]


class LiveLine:
    """The line at the bottom of a terminal that is drawn anew, and what is printed above it."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._live: Live | None = None

    def draw(self, line: str) -> None:
        from rich.live import Live
        from rich.text import Text

        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)

    def print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()


class _Above(logging.Handler):
    def __init__(self, live: LiveLine) -> None:
        super().__init__()
        self._live = live

    def emit(self, record: logging.LogRecord) -> None:
        self._live.print(self.format(record))


@contextmanager
def logging_to_stderr(level: str | None, *, as_json: bool) -> Iterator[LiveLine | None]:
    """Log to stderr within the block; without JSON with a live line, in which case warnings are enough."""
    live = None if as_json else LiveLine()
    handler: logging.Handler
    if live is None:
        handler = logging.StreamHandler(sys.stderr) if sys.stderr is not None else logging.NullHandler()
        handler.setFormatter(JsonLines())
    else:
        handler = _Above(live)
        handler.setFormatter(Lines())
    root, ours = logging.getLogger(), logging.getLogger(OURS)
    root.addHandler(handler)
    ours.setLevel((level or ("info" if as_json else "warning")).upper())
    try:
        yield live
    finally:
        root.removeHandler(handler)
        ours.setLevel(logging.NOTSET)
        if live is not None:
            live.close()
