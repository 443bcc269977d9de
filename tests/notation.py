"""The scenarios' shorthand for operations, and an equality that tells `True` from `1`."""

from __future__ import annotations

from typing import Any

URL = "https://hooks.example/in"


def R(endpoint_id: str) -> list[Any]:
    """Register at 0."""
    return ["register", 0, endpoint_id, URL]


def Q(ts: int, endpoint_id: str, event_id: str, outcomes: Any) -> list[Any]:
    """Enqueue with scripted outcomes."""
    return ["enqueue", ts, endpoint_id, event_id, outcomes]


def P(ts: int) -> list[Any]:
    """Process."""
    return ["process", ts]


def S(ts: int, event_id: str) -> list[Any]:
    """Status."""
    return ["status", ts, event_id]


def DL(ts: int, *endpoint_id: str) -> list[Any]:
    """Dead letters, of one endpoint or of all."""
    return ["dead_letters", ts, *endpoint_id]


def D(ts: int, endpoint_id: str) -> list[Any]:
    """Disable."""
    return ["disable", ts, endpoint_id]


def E(ts: int, endpoint_id: str, replay_dead: Any) -> list[Any]:
    """Enable, with or without revival of the dead."""
    return ["enable", ts, endpoint_id, replay_dead]


def state(state: str, attempts: int, next_attempt_at: int | None = None) -> dict[str, Any]:
    """What `status` answers."""
    return {"state": state, "attempts": attempts, "next_attempt_at": next_attempt_at}


def exact(value: Any) -> Any:
    """The value with every type spelled out, so that `==` between two of these is strict."""
    if type(value) is list:
        return ("list", [exact(item) for item in value])
    if type(value) is dict:
        return ("dict", {key: exact(item) for key, item in value.items()})
    return (type(value).__name__, value)
