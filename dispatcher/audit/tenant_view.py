"""What a tenant may see of its events: no operators' codes, and nothing that depends on other tenants.

A blocked host looks exactly like one that does not resolve, or whoever registers endpoints would learn
which names exist inside. So entries come without their hash, from which the code could be found by trial.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dispatcher.core.entries import AttemptRecorded, Entry
from dispatcher.delivery.transport import tenant_code

_SHOWN = (
    *("attempt", "status", "class", "decision", "retry_at", "retry_after", "reason", "replay_dead"),
    "event_type",
)


def status_for_tenant(found: dict[str, Any]) -> dict[str, Any]:
    """Of a status or a dead letter, or of what came of a probe."""
    kept = {name: value for name, value in found.items() if name not in ("worker", "position")}
    return kept | {name: tenant_code(kept[name]) for name in ("error", "last_error") if name in kept}


def for_tenant(entry: Entry) -> Entry:
    """An entry whose sentence a tenant may read."""
    body = entry.body
    if not isinstance(body, AttemptRecorded):
        return entry
    return replace(entry, body=replace(body, error=tenant_code(body.error)))


def entry_for_tenant(entry: dict[str, Any]) -> dict[str, Any]:
    """Of an entry, as JSON values: when, what, and which of its facts are the tenant's."""
    data = {name: entry["data"][name] for name in _SHOWN if name in entry["data"]}
    if "error" in entry["data"]:
        data["error"] = tenant_code(entry["data"]["error"])
    kept = {name: entry[name] for name in ("ts", "type", "endpoint_id", "delivery_id")}
    return {**kept, "data": data}
