"""Which deliveries a worker gets, how many at once, and for how long."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from dispatcher.core.operations import Disable, Enable, Record
from dispatcher.log import claims
from dispatcher.log.claims import Claim, Limits
from tests.unit.log.live_log import LiveLog, queued, registered

LIMITS = Limits(lease=40)


@pytest.fixture
def log(memory_folder: Path) -> LiveLog:
    return LiveLog(memory_folder / "live.db")


def _claim(log: LiveLog, now: int = 0, limit: int = 100, limits: Limits = LIMITS) -> list[Claim]:
    with log.transaction() as connection:
        return claims.claim(connection, now, "worker-1", limit, limits)


def _ids(found: list[Claim]) -> list[str]:
    return [claim.delivery_id for claim in found]


def _release(log: LiveLog, *fences: int) -> set[int]:
    with log.transaction() as connection:
        return claims.release(connection, fences)


def test_a_claim_says_all_that_sending_needs(log: LiveLog) -> None:
    log.do(registered("t/shop"), *queued("t/shop", "a"), at=5)
    (claim,) = _claim(log, now=7)
    assert claim == Claim(
        fence=1,
        endpoint_id="t/shop",
        lane="",
        delivery_id="t/shop/a",
        position=3,
        attempt=1,
        worker="worker-1",
        started_at=7,
        leased_until=47,
    )


def test_a_lane_has_one_claim_at_a_time_and_it_is_its_heads(log: LiveLog) -> None:
    log.do(registered("t/shop"), *queued("t/shop", "a", "b"), *queued("t/shop", "c", key="k"))
    assert _ids(_claim(log)) == ["t/shop/a", "t/shop/c"]
    assert _claim(log) == []


def test_the_database_itself_refuses_a_second_claim_on_a_lane(log: LiveLog) -> None:
    log.do(registered("t/shop"), *queued("t/shop", "a"))
    (claim,) = _claim(log)
    second = (claim.fence + 1, *claim[1:])
    with log.transaction() as connection, pytest.raises(IntegrityError):
        connection.exec_driver_sql("INSERT INTO dispatcher_claims VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", second)


def test_the_next_of_a_lane_is_claimed_once_the_first_is_done_and_released(log: LiveLog) -> None:
    log.do(registered("t/shop"), *queued("t/shop", "a", "b"))
    (first,) = _claim(log)
    log.do(Record("t/shop/a", 200, 0))
    assert _claim(log) == [], "it is recorded, but the request is still open"
    _release(log, first.fence)
    assert _ids(_claim(log)) == ["t/shop/b"]


def test_a_retry_is_claimed_with_its_number_and_not_before_it_is_due(log: LiveLog) -> None:
    log.do(registered("t/shop"), *queued("t/shop", "a"))
    log.do(Record("t/shop/a", 503, 0))
    wait = 30
    assert _claim(log, now=wait - 1) == []
    (claim,) = _claim(log, now=wait)
    assert claim.attempt == 2


def test_an_endpoint_has_no_more_claims_than_its_concurrency(log: LiveLog) -> None:
    log.do(registered("t/shop", concurrency=3, unordered=True), *queued("t/shop", *"abcde"))
    first = _claim(log, limit=2)
    assert len(first) == 2
    assert len(_claim(log)) == 1
    assert _claim(log) == []
    _release(log, first[0].fence)
    log.do(Record(first[0].delivery_id, 200, 0))
    assert len(_claim(log)) == 1


def test_a_tenant_has_no_more_claims_than_its_limit_and_delays_no_other(log: LiveLog) -> None:
    for endpoint in ("big/a", "big/b", "small/a"):
        log.do(registered(endpoint, unordered=True), *queued(endpoint, *"uvwxyz"))
    limits = Limits(lease=40, per_tenant=8)
    claimed = [claim.endpoint_id for claim in _claim(log, limits=limits)]
    assert sorted(claimed) == ["big/a"] * 6 + ["big/b"] * 2 + ["small/a"] * 6
    assert _claim(log, limits=limits) == []


def test_endpoints_of_like_names_are_those_of_their_tenants() -> None:
    assert [claims.tenant_of(name) for name in ("a/x", "ab/x", "a/ab")] == ["a", "ab", "a"]


@pytest.mark.parametrize("limit", [0, 1, 4, 7])
def test_a_call_claims_no_more_than_it_asks_for(limit: int, log: LiveLog) -> None:
    for endpoint in ("t/a", "t/b"):
        log.do(registered(endpoint, unordered=True), *queued(endpoint, *"vwxyz"))
    assert len(_claim(log, limit=limit)) == limit


def test_what_was_due_first_is_claimed_first(log: LiveLog) -> None:
    log.do(*(registered(f"t/{name}") for name in ("late", "early", "middle")))
    log.do(*queued("t/early", "z"), at=1)
    log.do(*queued("t/middle", "second", key="b"), at=2)
    log.do(*queued("t/middle", "third", key="a"), *queued("t/late", "x"), at=3)
    in_order = ["t/early/z", "t/middle/second", "t/middle/third", "t/late/x"]
    assert _ids(_claim(log, now=3, limit=1)) == in_order[:1]
    assert _ids(_claim(log, now=3, limit=2)) == in_order[1:3]
    assert _ids(_claim(log, now=3)) == in_order[3:]


def test_a_disabled_endpoint_has_nothing_claimed(log: LiveLog) -> None:
    log.do(registered("t/shop"), *queued("t/shop", "a"), Disable("t/shop"), *queued("t/shop", "b", key="k"))
    assert _claim(log, now=10**15) == []


def test_a_resumed_endpoint_is_due_whatever_its_retries_waited_for(log: LiveLog) -> None:
    log.do(registered("t/shop"), *queued("t/shop", "a"), *queued("t/shop", "b", key="k"))
    log.do(Record("t/shop/a", 503, 0), Record("t/shop/b", 503, 0))
    assert _claim(log, now=5) == []
    log.do(Disable("t/shop"), Enable("t/shop"), at=5)
    assert _ids(_claim(log, now=5)) == ["t/shop/a", "t/shop/b"]


def test_a_retry_set_after_the_resumption_keeps_its_wait(log: LiveLog) -> None:
    log.do(registered("t/shop"), *queued("t/shop", "a"), Disable("t/shop"), Enable("t/shop"))
    log.do(Record("t/shop/a", 503, 0))
    assert _claim(log, now=29) == []
    assert _ids(_claim(log, now=30)) == ["t/shop/a"]


def test_a_claim_is_released_once_and_given_back_whole(log: LiveLog) -> None:
    log.do(registered("t/shop"), *queued("t/shop", "a"))
    (claim,) = _claim(log)
    assert _release(log, claim.fence) == {claim.fence}
    assert _release(log, claim.fence) == set(), "whoever comes late finds that it is gone"


def test_claims_expire_after_the_last_moment_of_their_lease_the_oldest_first(log: LiveLog) -> None:
    log.do(registered("t/shop", unordered=True), *queued("t/shop", "a", "b"))
    first, second = _claim(log, now=10, limit=1) + _claim(log, now=5, limit=1)
    with log.transaction() as connection:
        assert claims.expired(connection, 45) == []
        assert claims.expired(connection, 46) == [second]
        assert claims.expired(connection, 51) == [second, first]


def test_an_expired_claim_counts_until_it_is_swept(log: LiveLog) -> None:
    log.do(registered("t/shop"), *queued("t/shop", "a"))
    (claim,) = _claim(log)
    assert _claim(log, now=1000) == []
    _release(log, claim.fence)
    assert _ids(_claim(log, now=1000)) == ["t/shop/a"]


def test_a_claimed_delivery_is_known_to_be(log: LiveLog) -> None:
    log.do(registered("t/shop"), *queued("t/shop", "a", "b"))
    (claim,) = _claim(log)
    with log.transaction() as connection:
        asked = ["t/shop/a", "t/shop/b", "t/shop/none"]
        assert claims.claimed(connection, asked) == {"t/shop/a"}
        assert claims.claimed(connection, asked[1:]) == set()
        claims.release(connection, [claim.fence])
        assert claims.claimed(connection, asked) == set()


def test_a_fence_is_never_used_again(log: LiveLog) -> None:
    """Not after the newest claim is released, nor after all are, in whatever process."""
    log.do(registered("t/shop", unordered=True), *queued("t/shop", "a", "b"))
    fences = []
    for _ in range(3):
        found = _claim(log)
        fences += [claim.fence for claim in found]
        for claim in found:
            _release(log, claim.fence)
    with log.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM dispatcher_claims")
    (last,) = _claim(log, limit=1)
    assert [*fences, last.fence] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("rest", "given"),
    [
        (claims._FIRST_OF_DUE_ENDPOINTS, {"now": 0, "limit": 9, "full_tenants": '["t"]', "mail": 1}),
        (claims._DUE_OF_ENDPOINT, {"endpoint_id": "t/a", "resumptions": 1, "now": 0, "room": 9}),
    ],
)
def test_no_table_is_walked_over_to_find_what_is_due(
    rest: str, given: dict[str, object], log: LiveLog
) -> None:
    log.do(registered("t/a"))
    with log.transaction() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN SELECT d.position FROM {rest}", given)
        steps = [str(row[3]) for row in plan]
    assert any(step.startswith("SEARCH d USING INTEGER PRIMARY KEY") for step in steps), steps
    tables = ("SCAN e", "SCAN l", "SCAN c", "SCAN d ", "SCAN d.")
    assert [step for step in steps if step.startswith(tables)] == []
