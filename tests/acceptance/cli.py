"""The command line, run as a user runs it: in a process of its own, piped or on a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 120

COMMAND = [sys.executable, "-m", "dispatcher"]
OURS = ("DISPATCHER_", "PYTHON", "LC_", "LANG", "COVERAGE", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")

EXAMPLE = json.loads((ROOT / "dispatcher" / "examples" / "outage.json").read_text())


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[list[str]]:
        """What was piped, cut at tabs."""
        return [line.split("\t") for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        """The error that --json reports; stdout is empty then."""
        assert self.out == ""
        error = json.loads(self.err)["error"]
        assert list(error) == ["code", "message", "remedy"]
        assert all(error.values())
        return dict(error)


def environment(**more: str) -> dict[str, str]:
    """This process's, without what would change what the command says."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return {**kept, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", "TERM": "xterm-256color", **more}


def dispatcher(*arguments: str, at: Path, stdin: str | bytes = b"", **more: str) -> Ran:
    """Run it in the folder `at`, with stdout and stderr piped."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=at,
        env=environment(**more),
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    encoding = more.get("PYTHONIOENCODING", "utf-8")
    return Ran(done.returncode, done.stdout.decode(encoding), done.stderr.decode(encoding))


@contextmanager
def started(*arguments: str, at: Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """It, running; ended when the block ends, or when a test waits for it in vain."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    more: Mapping[str, str] = options.pop("env", {})
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=at, env=environment(**more), text=True, start_new_session=True, **options
    ) as process:
        watchdog = threading.Timer(PATIENCE_SECONDS, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


class Terminal:
    """A terminal of 120 columns."""

    def __init__(self) -> None:
        self._ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._seen = b""

    def write(self, text: str) -> None:
        """Type it."""
        os.write(self._ours, text.encode())

    def read_until(self, text: str) -> str:
        """What was drawn, as soon as it holds a text."""
        while text.encode() not in self._seen:
            more = self._read()
            assert more, f"{text!r} never came: {self._seen.decode()}"
        return self._seen.decode()

    def read_all(self) -> str:
        """What was drawn, once nobody can draw any more."""
        while self._read():
            pass
        return self._seen.decode()

    def _read(self) -> bytes:
        try:
            more = os.read(self._ours, 65536)
        except OSError:  # Linux's way to say that the other side is closed.
            more = b""
        self._seen += more
        return more

    def close(self) -> None:
        os.close(self._ours)


@contextmanager
def on_terminal(
    *arguments: str, at: Path, streams: tuple[str, ...] = ("stdout", "stderr"), **more: str
) -> Iterator[tuple[subprocess.Popen[str], Terminal]]:
    """It, running, with these of its streams on a terminal and the others dropped."""
    terminal = Terminal()
    options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    options.update(dict.fromkeys(streams, terminal.theirs))
    try:
        with started(*arguments, at=at, env=more, **options) as process:
            os.close(terminal.theirs)
            yield process, terminal
    finally:
        terminal.close()


def drawn(*arguments: str, at: Path, streams: tuple[str, ...] = ("stdout", "stderr"), **more: str) -> str:
    """All that it draws on a terminal."""
    with on_terminal(*arguments, at=at, streams=streams, **more) as (process, terminal):
        seen = terminal.read_all()
        assert process.wait() == 0
    return seen
