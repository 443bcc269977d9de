"""Webhook delivery whose every operation is an entry of one tamper-evident log."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dispatcher.audit.heads import head
    from dispatcher.core.policy import PROMISED, STANDARD, RetryPolicy
    from dispatcher.delivery.verify import verify_webhook
    from dispatcher.live import Dispatcher
    from dispatcher.simulate import run

# Imported when first used: a command that only parses its arguments never waits for SQLAlchemy.
_HOMES = {
    "PROMISED": "dispatcher.core.policy",
    "Dispatcher": "dispatcher.live",
    "RetryPolicy": "dispatcher.core.policy",
    "STANDARD": "dispatcher.core.policy",
    "head": "dispatcher.audit.heads",
    "run": "dispatcher.simulate",
    "verify_webhook": "dispatcher.delivery.verify",
}

__all__ = ["PROMISED", "STANDARD", "Dispatcher", "RetryPolicy", "head", "run", "verify_webhook"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dispatcher' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
