"""What a state fetches from a large source: only what it needs, and nothing twice."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence

from dispatcher.core.agenda import Agenda
from dispatcher.core.decide import decide
from dispatcher.core.entities import DeliveryState, Endpoint, StoredDelivery
from dispatcher.core.evolve import evolve
from dispatcher.core.operations import (
    AnyOperation,
    Cancel,
    Disable,
    Enable,
    Enqueue,
    Erase,
    Record,
    Refusal,
    Register,
    Revive,
)
from dispatcher.core.policy import PROMISED
from dispatcher.core.state import Place, State
from dispatcher.core.status import status
from dispatcher.core.window import FIRST_PAGE, Item, Window

PENDING = 200_000
DEAD = 300


def _stored(
    delivery_id: str, order: int, endpoint_id: str = "shop", death: int | None = None
) -> StoredDelivery:
    state: DeliveryState = "pending" if death is None else "dead"
    return StoredDelivery(
        delivery_id, endpoint_id, "", order, 0, 0, None, None, None, None, state, 0, death, None, None, False
    )


WAITING = [_stored(f"m{number}", number) for number in range(10, PENDING + 10)]
BURIED = [_stored(f"d{n}", PENDING + 10 + n, death=PENDING + 1000 + n) for n in range(DEAD)]
MAIL = [_stored("post", 3, "mail"), _stored("lost", 4, "mail", death=5)]
BY_ID = {row.id: row for row in (*WAITING, *BURIED, *MAIL)}


class Library:
    """`shop` has many pending and some dead; `mail` has one pending and one dead. It counts what it lends."""

    def __init__(self) -> None:
        self.lent: Counter[str] = Counter()
        self.asked: list[str] = []
        self.pages = 0
        """How often pending deliveries were asked for."""

    def _lend(self, rows: list[StoredDelivery]) -> list[StoredDelivery]:
        self.lent.update(row.id for row in rows)
        return rows

    def endpoints(self, ids: Iterable[str]) -> list[Endpoint]:
        known = [endpoint_id for endpoint_id in ids if endpoint_id in ("shop", "mail")]
        self.lent.update(known)
        return [
            Endpoint(i, 2, "u", PROMISED, pending=9, dead=9, stored=True, lane_order=Window(complete=False))
            for i in known
        ]

    def deliveries(self, ids: Iterable[str]) -> list[StoredDelivery]:
        wanted = list(ids)
        self.asked += wanted
        return self._lend([BY_ID[delivery_id] for delivery_id in wanted if delivery_id in BY_ID])

    def pending_after(self, lanes: Sequence[Place], limit: int) -> list[list[StoredDelivery]]:
        self.pages += 1
        return [self._pending_after(endpoint_id, order, limit) for endpoint_id, _, order in lanes]

    def _pending_after(self, endpoint_id: str, order: int, limit: int) -> list[StoredDelivery]:
        if endpoint_id == "mail":
            return self._lend([row for row in MAIL[:1] if row.order > order])
        start = bisect_right(WAITING, order, key=lambda row: row.order)
        return self._lend(WAITING[start : start + limit])

    def lanes_after(self, endpoint_id: str, after: Item, limit: int) -> list[Item]:
        item = (0, 0, 3 if endpoint_id == "mail" else 10, "")
        return [item] if item > after else []

    def dead(self, endpoint_id: str | None) -> list[StoredDelivery]:
        rows = [*BURIED, MAIL[1]]
        return self._lend([row for row in rows if endpoint_id in (None, row.endpoint_id)])

    def dead_after(
        self, endpoint_id: str, order: int, limit: int | None, died_from: int, died_before: int | None
    ) -> list[StoredDelivery]:
        rows = [row for row in (*BURIED, MAIL[1]) if row.endpoint_id == endpoint_id and row.order > order]
        span = range(died_from, died_before or 10**9)
        return self._lend([row for row in rows if row.death in span][:limit])

    def due(self, ts: int) -> list[str]:
        return ["shop", "mail"]


class Reading:
    """A state that begins where the library ends."""

    def __init__(self) -> None:
        self.library = Library()
        self.state = State("live", self.library, position=10**6, ts=0)
        self.agenda = Agenda(self.state)

    def do(self, operation: AnyOperation) -> int:
        """How many entries came of an operation."""
        decided = decide(self.state, operation, 7)
        assert not isinstance(decided, Refusal)
        for entry in decided:
            changed = evolve(self.state, entry)
            if changed is not None:
                self.agenda.note(changed)
        return len(decided)

    @property
    def lent(self) -> dict[str, int]:
        return dict(self.library.lent)


def test_opening_loads_nothing() -> None:
    assert Reading().lent == {}


def test_a_status_loads_the_delivery_and_its_endpoint() -> None:
    reading = Reading()
    for _ in range(2):
        delivery = reading.state.delivery("m77")
        assert delivery is not None
        assert status(delivery)["state"] == "pending"
    assert reading.lent == {"m77": 1, "shop": 1}


def test_what_does_not_exist_is_asked_for_once() -> None:
    reading = Reading()
    assert [reading.state.delivery("missing") for _ in range(3)] == [None] * 3
    for _ in range(2):
        reading.state.load_deliveries(["missing", "m77"])
    assert reading.library.asked == ["missing", "m77"]


def test_an_enqueue_loads_its_endpoint_and_one_page_of_its_lane() -> None:
    reading = Reading()
    reading.do(Enqueue("shop", "new"))
    assert len(reading.lent) <= 1 + FIRST_PAGE


def test_the_heads_of_many_lanes_are_asked_for_at_once_and_once() -> None:
    reading = Reading()
    found = [reading.state.delivery(delivery_id) for delivery_id in ("m77", "lost")]
    lanes = [delivery.lane for delivery in found if delivery is not None]
    for _ in range(2):
        reading.state.load_heads(lanes)
    heads = [reading.state.head(lane) for lane in lanes]
    assert [head.id for head in heads if head is not None] == ["m10", "post"]
    assert reading.library.pages == 1
    assert reading.lent == dict.fromkeys(("m77", "lost", "shop", "mail", "m10", "post"), 1)


def test_the_next_delivery_takes_one_page_of_each_endpoint_that_is_due() -> None:
    reading = Reading()
    found = reading.agenda.next(7)
    assert found is not None
    assert found.id == "post"
    assert len(reading.lent) <= 2 + FIRST_PAGE + 1


def test_working_off_many_loads_about_as_many_and_none_twice() -> None:
    reading = Reading()
    for _ in range(1000):
        found = reading.agenda.next(7)
        assert found is not None
        reading.do(Record(found.id, 200, 7))
    assert len(reading.lent) < 2500
    assert set(reading.lent.values()) == {1}


def test_an_operation_on_one_delivery_loads_little_else() -> None:
    for operation in (Record("m77", 503, 7), Cancel("m77"), Erase("m77"), Revive("shop", ("d5", "d7"))):
        reading = Reading()
        assert reading.do(operation) >= 1
        assert len(reading.lent) <= 3 + 2 * FIRST_PAGE, operation


def test_a_pause_and_its_end_load_no_more_than_a_page() -> None:
    reading = Reading()
    reading.do(Disable("shop"))
    assert reading.lent == {"shop": 1}
    reading.do(Enable("shop"))
    found = reading.agenda.next(7)
    assert found is not None
    assert len(reading.lent) <= 3 + 2 * FIRST_PAGE


def test_a_registration_loads_nothing() -> None:
    reading = Reading()
    reading.do(Register(endpoint_id="new", url="u", policy=PROMISED))
    assert reading.lent == {}


def test_dead_letters_of_one_endpoint_load_its_own_only() -> None:
    reading = Reading()
    mail = reading.state.endpoint("mail")
    assert mail is not None
    assert [delivery.id for delivery in reading.state.dead(mail)] == ["lost"]
    assert reading.lent == {"mail": 1, "lost": 1}


def test_all_dead_letters_are_loaded_once_and_kept_up_to_date() -> None:
    reading = Reading()
    assert len(reading.state.all_dead()) == DEAD + 1
    reading.do(Revive("mail"))
    reading.do(Record("m77", 404, 7))
    assert [delivery.id for delivery in reading.state.all_dead()][-2:] == [f"d{DEAD - 1}", "m77"]
    assert len(reading.state.all_dead()) == DEAD + 1
    assert reading.lent[f"d{DEAD - 1}"] == 1


def test_a_limited_revival_loads_no_more_of_the_dead_than_it_revives() -> None:
    reading = Reading()
    assert reading.do(Revive("shop", limit=7)) == 7
    assert {i for i in reading.lent if i.startswith("d")} == {f"d{n}" for n in range(7)}
    first, last = BURIED[100], BURIED[104]
    assert reading.do(Revive("shop", limit=50, died_from=first.death or 0, died_before=last.death)) == 4
    assert len([i for i in reading.lent if i.startswith("d")]) == 11
    assert set(reading.lent.values()) == {1}


def test_an_endpoint_whose_death_list_was_changed_before_it_was_loaded_shows_the_newest() -> None:
    reading = Reading()
    reading.do(Revive("shop", ("d0",)))
    reading.do(Record("m77", 404, 7))
    shop = reading.state.endpoint("shop")
    assert shop is not None
    ids = [delivery.id for delivery in reading.state.dead(shop)]
    assert ids == [*(f"d{number}" for number in range(1, DEAD)), "m77"]
