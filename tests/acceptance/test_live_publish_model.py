"""Any events, published to any endpoints, against a few lines that say where they go."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatcher.errors import Refused
from dispatcher.live import Dispatcher
from tests.acceptance.lively import rows
from tests.acceptance.test_live_publish import URL

ENDPOINTS = st.sampled_from(["a", "b", "c", "a-"])
TYPES = st.sampled_from(["x", "x.y", "x.y.z", "xx.y", "z"])
PATTERNS = st.none() | st.lists(
    st.sampled_from(["*", "x", "x.*", "x.y", "x.y.*", "xx.*", "z"]), max_size=3, unique=True
)
FORMATS = st.sampled_from(["given", "standard", "cloudevents"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), ENDPOINTS, PATTERNS, FORMATS),
        st.tuples(st.just("update"), ENDPOINTS, PATTERNS, FORMATS),
        st.tuples(st.just("disable"), ENDPOINTS),
        st.tuples(st.just("enable"), ENDPOINTS),
        st.tuples(st.just("enqueue"), ENDPOINTS, TYPES, st.integers(0, 3), st.integers(0, 1)),
        st.tuples(st.just("publish"), TYPES, st.integers(0, 3), st.integers(0, 1)),
    ),
    max_size=14,
)
Model = dict[str, Any]


def wanted(patterns: list[str] | None, event_type: str) -> bool:
    words = event_type.split(".")
    for pattern in ["*"] if patterns is None else patterns:
        *begin, last = pattern.split(".")
        if words[: len(begin)] == begin and (
            (last == "*" and len(words) > len(begin)) or words[len(begin) :] == [last]
        ):
            return True
    return False


def expected(model: Model, held: dict[tuple[str, int], Any], step: tuple[Any, ...]) -> Any:
    """What a step is answered; the model and what is held at each endpoint are changed accordingly."""
    name, *given_ = step
    match name, given_:
        case "register", [endpoint_id, patterns, _]:
            if endpoint_id in model:
                return "duplicate_endpoint"
            model[endpoint_id] = patterns
        case "update", [endpoint_id, patterns, _]:
            if endpoint_id not in model:
                return "unknown_endpoint"
            model[endpoint_id] = patterns
        case "publish", [event_type, event, payload]:
            to = [endpoint_id for endpoint_id, types in model.items() if wanted(types, event_type)]
            if any(held.get((e, event), (event_type, payload)) != (event_type, payload) for e in to):
                return "duplicate_event"
            held.update({(endpoint_id, event): (event_type, payload) for endpoint_id in to})
            return tuple(to)
        case "enqueue", [endpoint_id, event_type, event, payload]:
            if endpoint_id not in model:
                return "unknown_endpoint"
            if held.setdefault((endpoint_id, event), (event_type, payload)) != (event_type, payload):
                return "duplicate_event"
    return None


def answered(live: Dispatcher, tenant: str, step: tuple[Any, ...]) -> Any:
    name, *given_ = step
    try:
        match name, given_:
            case "register", [endpoint_id, types, body_format]:
                live.register(endpoint_id, URL, tenant=tenant, types=types, body_format=body_format)
            case "update", [endpoint_id, types, body_format]:
                live.update(endpoint_id, tenant=tenant, types=types, body_format=body_format)
            case "publish", [event_type, event, payload]:
                return live.publish(event_type, payload, event_id=f"e{event}", tenant=tenant).endpoints
            case "enqueue", [endpoint_id, event_type, event, payload]:
                live.enqueue(endpoint_id, payload, event_id=f"e{event}", type=event_type, tenant=tenant)
            case _:
                getattr(live, name)(*given_, tenant=tenant)
    except Refused as refused:
        return None if name in ("disable", "enable") else refused.code
    return None


def test_events_go_where_a_model_says(live: Dispatcher, database: Path) -> None:
    tenants = count()

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(STEPS)
    def agree(steps: list[tuple[Any, ...]]) -> None:
        tenant = f"t{next(tenants)}"
        model: Model = {}
        held: dict[tuple[str, int], Any] = {}
        for step in steps:
            assert answered(live, tenant, step) == expected(model, held, step), step
        found = rows(
            database,
            "SELECT delivery_id, event_type FROM dispatcher_deliveries"
            f" WHERE endpoint_id > '{tenant}/' AND endpoint_id < '{tenant}0'",
        )
        kept = {(tuple(delivery_id.split("/")[1:]), event_type) for delivery_id, event_type in found}
        assert kept == {((e, f"e{event}"), event_type) for (e, event), (event_type, _) in held.items()}

    agree()
