"""What the acceptance tests share."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from dispatcher import run
from dispatcher.audit.replay import check
from dispatcher.audit.verify import verify
from dispatcher.live import Dispatcher
from tests.acceptance.cli import EXAMPLE, Ran, dispatcher
from tests.acceptance.lively import OPEN, MovedClock
from tests.acceptance.receiver import Receiver
from tests.ramdisk import ramdisk


@pytest.fixture(scope="session")
def example_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the packaged example in it, to be copied."""
    database = tmp_path_factory.mktemp("example") / "dispatcher.db"
    run(EXAMPLE, str(database))
    return database


@pytest.fixture
def example(example_database: Path, tmp_path: Path) -> Path:
    """A folder whose dispatcher.db holds the packaged example."""
    shutil.copy(example_database, tmp_path)
    return tmp_path


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a live database will be. What a test leaves there is in order."""
    for name in ("DISPATCHER_MASTER_KEY", "DISPATCHER_MASTER_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    with ramdisk() as folder:
        file = folder / "live.db"
        yield file
        assert verify(file).findings == []
        assert check(file) is None


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


Opened = Callable[[], Dispatcher]
Command = Callable[..., Ran]


@pytest.fixture
def opened(database: Path, clock: MovedClock) -> Iterator[Opened]:
    """Opens another dispatcher on the database."""
    dispatchers: list[Dispatcher] = []

    def open_one() -> Dispatcher:
        dispatchers.append(Dispatcher(database, clock=clock, open_networks=OPEN))
        return dispatchers[-1]

    yield open_one
    for one in dispatchers:
        one.close()


@pytest.fixture
def command(database: Path, tmp_path: Path) -> Command:
    """The command line on the live database, which may call this machine."""
    return partial(
        dispatcher, at=tmp_path, DISPATCHER_DATABASE=str(database), DISPATCHER_OPEN_NETWORKS=",".join(OPEN)
    )


@pytest.fixture
def live(opened: Opened) -> Dispatcher:
    """A dispatcher whose time is the clock's."""
    return opened()


@pytest.fixture
def live_now(database: Path) -> Iterator[Dispatcher]:
    """A dispatcher in real time, for workers in other processes."""
    with Dispatcher(database, open_networks=OPEN) as live:
        yield live
