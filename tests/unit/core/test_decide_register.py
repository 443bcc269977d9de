"""Registering endpoints, and changing them."""

from __future__ import annotations

from msgspec import UNSET

from dispatcher.core.entries import EndpointRegistered, EndpointUpdated
from dispatcher.core.operations import Disable, Enqueue, Register, Update
from dispatcher.core.policy import PROMISED, STANDARD
from tests.unit.core.history import History, shop


def test_registering_keeps_every_setting() -> None:
    history = History()
    registered = Register(
        endpoint_id="shop",
        url="https://shop.example",
        policy=STANDARD,
        url_digest="d",
        order="none",
        concurrency=3,
        erase="on_final",
        disable_when_gone=True,
        actor="someone",
    )
    _, entry = history.entries(registered, 5)
    assert entry.body == EndpointRegistered(
        url="https://shop.example",
        policy=STANDARD,
        url_digest="d",
        order="none",
        concurrency=3,
        erase="on_final",
        disable_when_gone=True,
        actor="someone",
    )
    assert (entry.ts, entry.endpoint_id, entry.delivery_id) == (5, "shop", None)
    endpoint = history.endpoint()
    assert (endpoint.url, endpoint.policy, endpoint.url_digest) == ("https://shop.example", STANDARD, "d")
    assert (endpoint.order, endpoint.concurrency, endpoint.erase) == ("none", 3, "on_final")
    assert endpoint.disable_when_gone
    assert endpoint.disabled is None


def test_an_endpoint_asks_for_nothing_special_unless_told() -> None:
    endpoint = shop().endpoint()
    assert (endpoint.order, endpoint.concurrency, endpoint.erase) == ("strict", 8, "never")
    assert not endpoint.disable_when_gone


def test_registering_a_known_endpoint_is_refused_whatever_its_url() -> None:
    history = shop("m")
    other = Register(endpoint_id="shop", url="https://other.example", policy=PROMISED)
    assert history.refusal(other, 1) == "duplicate_endpoint"


def test_registering_a_disabled_endpoint_again_is_refused() -> None:
    history = shop()
    history.entries(Disable("shop"))
    assert history.refusal(Register(endpoint_id="shop", url="u", policy=PROMISED)) == "duplicate_endpoint"


def test_updating_changes_what_is_named_and_nothing_else() -> None:
    history = shop(url_digest="d", erase="on_final")
    (entry,) = history.entries(Update(endpoint_id="shop", concurrency=2, actor="someone"), 9)
    assert entry.body == EndpointUpdated(concurrency=2, actor="someone")
    assert isinstance(entry.body, EndpointUpdated)
    assert entry.body.url is UNSET
    assert (entry.ts, entry.endpoint_id, entry.delivery_id) == (9, "shop", None)
    endpoint = history.endpoint()
    assert (endpoint.url, endpoint.url_digest, endpoint.policy) == ("https://shop.example", "d", PROMISED)
    assert (endpoint.concurrency, endpoint.erase, endpoint.order) == (2, "on_final", "strict")


def test_updating_can_change_every_setting() -> None:
    history = shop()
    settings = {
        "url": "https://new.example",
        "policy": STANDARD,
        "url_digest": "e",
        "order": "none",
        "concurrency": 1,
        "erase": "on_delivery",
        "disable_when_gone": True,
    }
    (body,) = history.bodies(Update(endpoint_id="shop", **settings))  # type: ignore[arg-type]
    assert body == EndpointUpdated(**settings)  # type: ignore[arg-type]
    endpoint = history.endpoint()
    assert {name: getattr(endpoint, name) for name in settings} == settings


def test_updating_an_unknown_endpoint_is_refused() -> None:
    assert shop().refusal(Update(endpoint_id="mail", concurrency=2)) == "unknown_endpoint"


def test_updating_leaves_what_is_pending_alone() -> None:
    history = shop("m")
    history.entries(Update(endpoint_id="shop", url="https://new.example"), 3)
    assert history.status("m") == ("pending", 0, 0)
    assert history.bodies(Enqueue("shop", "n"), 3)
