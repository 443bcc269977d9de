"""Which endpoints want an event, found among many."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core.operations import Register, Update
from dispatcher.core.policy import PROMISED
from dispatcher.log import views
from dispatcher.log.views import Subscriber, ViewSource
from tests.unit.log.live_log import LiveLog


@pytest.fixture
def log(tmp_path: Path) -> LiveLog:
    return LiveLog(tmp_path / "live.db")


def test_they_come_in_the_order_of_registration_with_what_their_deliveries_depend_on(log: LiveLog) -> None:
    log.do(
        Register(endpoint_id="t/z", url="u", policy=PROMISED, types=("a.*",), body_format="standard"),
        Register(endpoint_id="t/b", url="u", policy=PROMISED, types=("b",)),
        Register(endpoint_id="t/y", url="u", policy=PROMISED, types=(), order="none"),
        Register(endpoint_id="t/x", url="u", policy=PROMISED, order="none"),
        Register(endpoint_id="tt/z", url="u", policy=PROMISED),
        Register(endpoint_id="t-/z", url="u", policy=PROMISED),
        Register(endpoint_id="t/a", url="u", policy=PROMISED, types=("b", "a.b")),
    )
    with log.transaction() as connection:
        found = ViewSource(connection).subscribers("t", "a.b")
    assert found == [
        Subscriber("t/z", "standard", "strict"),
        Subscriber("t/x", None, "none"),
        Subscriber("t/a", None, "strict"),
    ]
    log.do(Update(endpoint_id="t/z", types=()), Update(endpoint_id="t/b", types=None))
    with log.transaction() as connection:
        assert [one.endpoint_id for one in ViewSource(connection).subscribers("t", "a.b")] == [
            "t/b", "t/x", "t/a",
        ]  # fmt: skip


def test_no_endpoint_of_another_tenant_is_looked_at(log: LiveLog) -> None:
    log.do(Register(endpoint_id="t/a", url="u", policy=PROMISED))
    with log.transaction() as connection:
        statement = f"EXPLAIN QUERY PLAN SELECT DISTINCT coalesce(types, '') {views._OF_TENANT}"
        steps = [str(row[3]) for row in connection.exec_driver_sql(statement, ("t/", "t0"))]
    assert steps[0].startswith("SEARCH dispatcher_endpoints USING INDEX"), steps
    assert "endpoint_id>? AND endpoint_id<?" in steps[0]
