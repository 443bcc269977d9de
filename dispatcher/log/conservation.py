"""Nothing is lost: what was enqueued is somewhere, counted in three ways that share no code."""

from __future__ import annotations

from sqlalchemy import Connection

STATES = ("pending", "delivered", "dead", "cancelled")


def conservation(connection: Connection) -> dict[str, dict[str, int]]:
    """Deliveries by state as the endpoints count them and as their rows count, and the Enqueued entries.

    `{"entries": {"enqueued"}, "endpoints": {"pending", ..., "total"}, "rows": {...}}`; held are pending here.
    """
    entries = connection.exec_driver_sql(
        "SELECT count(*) FROM dispatcher_log WHERE type = 'Enqueued'"
    ).scalar_one()
    # Added up here: SQLite's sum() fails on what does not fit, and a damaged counter may hold anything.
    rows = connection.exec_driver_sql(f"SELECT {', '.join(STATES)} FROM dispatcher_endpoints").all()
    counters = [sum(row[n] for row in rows if type(row[n]) is int) for n in range(len(STATES))]
    grouped = connection.exec_driver_sql("SELECT state, count(*) FROM dispatcher_deliveries GROUP BY state")
    counted: dict[str, int] = {state: count for state, count in grouped}  # noqa: C416
    return {
        "entries": {"enqueued": entries},
        "endpoints": {**dict(zip(STATES, counters, strict=True)), "total": sum(counters)},
        "rows": {**{state: counted.get(state, 0) for state in STATES}, "total": sum(counted.values())},
    }
