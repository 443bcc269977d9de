"""The tables, as they are public: auditors open them with sqlite3."""

from __future__ import annotations

from functools import lru_cache

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

REVISION = "0003"
"""The schema that this release reads and writes."""
VERSION_TABLE = "dispatcher_alembic_version"

metadata = MetaData()

# A 64-bit integer that SQLite still takes for its rowid.
Position = BigInteger().with_variant(Integer(), "sqlite")

log = Table(
    "dispatcher_log",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=False),
    Column("ts", BigInteger, nullable=False),
    Column("type", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("endpoint_id", Text),
    Column("delivery_id", Text),
    Column("data", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False),
)
Index("dispatcher_log_endpoint", log.c.endpoint_id, log.c.position)
Index("dispatcher_log_delivery", log.c.delivery_id, log.c.position)

tiles = Table(
    "dispatcher_tiles",
    metadata,
    Column("level", Integer, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    Column("hash", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

endpoints = Table(
    "dispatcher_endpoints",
    metadata,
    Column("endpoint_id", Text, primary_key=True),
    Column("registered", BigInteger, nullable=False),
    Column("url", Text, nullable=False),
    Column("url_digest", Text),
    Column("policy", Text, nullable=False),
    Column("ordering", Text, nullable=False),
    Column("concurrency", Integer, nullable=False),
    Column("erase", Text, nullable=False),
    Column("disable_when_gone", Integer, nullable=False),
    Column("disabled", Text),
    Column("resumptions", Integer, nullable=False),
    Column("resumed_at", BigInteger, nullable=False),
    Column("pending", Integer, nullable=False),
    Column("delivered", Integer, nullable=False),
    Column("dead", Integer, nullable=False),
    Column("cancelled", Integer, nullable=False),
    Column("next_due_at", BigInteger),
    Column("types", Text),
    Column("body_format", Text),
    Column("keep_payloads", BigInteger),
)
Index(
    "dispatcher_endpoints_due",
    endpoints.c.next_due_at,
    sqlite_where=endpoints.c.next_due_at.is_not(None),
)
Index(
    "dispatcher_endpoints_kept",
    endpoints.c.endpoint_id,
    sqlite_where=endpoints.c.keep_payloads.is_not(None),
)

lanes = Table(
    "dispatcher_lanes",
    metadata,
    Column("endpoint_id", Text, primary_key=True),
    Column("lane", Text, primary_key=True),
    Column("head", BigInteger, nullable=False),
    Column("due_at", BigInteger, nullable=False),
    Column("resumption", Integer, nullable=False),
    sqlite_with_rowid=False,
)
Index("dispatcher_lanes_due", lanes.c.endpoint_id, lanes.c.resumption, lanes.c.due_at, lanes.c.head)

deliveries = Table(
    "dispatcher_deliveries",
    metadata,
    Column("position", Position, primary_key=True, autoincrement=False),
    Column("delivery_id", Text, nullable=False),
    Column("endpoint_id", Text, nullable=False),
    Column("lane", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", BigInteger, nullable=False),
    Column("resumption", Integer, nullable=False),
    Column("death", BigInteger),
    Column("last_status", Integer),
    Column("last_error", Text),
    Column("outcomes", Text),
    Column("seed", BigInteger),
    Column("digest", Text),
    Column("erased", Integer, nullable=False),
    Column("event_type", Text),
    CheckConstraint(
        "state IN ('pending', 'delivered', 'dead', 'cancelled')", name="dispatcher_deliveries_state"
    ),
)
Index("dispatcher_deliveries_id", deliveries.c.delivery_id, unique=True)
_PENDING = text("state = 'pending'")
_DEAD = text("state = 'dead'")
Index(
    "dispatcher_deliveries_pending",
    deliveries.c.endpoint_id,
    deliveries.c.lane,
    deliveries.c.position,
    sqlite_where=_PENDING,
)
Index(
    "dispatcher_deliveries_dead",
    deliveries.c.endpoint_id,
    deliveries.c.death,
    sqlite_where=_DEAD,
)
Index("dispatcher_deliveries_death", deliveries.c.death, sqlite_where=_DEAD)

claims = Table(
    "dispatcher_claims",
    metadata,
    Column("fence", Position, primary_key=True, autoincrement=True),
    Column("endpoint_id", Text, nullable=False),
    Column("lane", Text, nullable=False),
    Column("delivery_id", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("worker", Text, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("leased_until", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)
Index("dispatcher_claims_delivery", claims.c.delivery_id)
Index("dispatcher_claims_lane", claims.c.endpoint_id, claims.c.lane, unique=True)
Index("dispatcher_claims_lease", claims.c.leased_until)

vault_keys = Table(
    "dispatcher_vault_keys",
    metadata,
    Column("name", Text, primary_key=True),
    Column("key", LargeBinary, nullable=False),
)
vault_endpoints = Table(
    "dispatcher_vault_endpoints",
    metadata,
    Column("endpoint_id", Text, primary_key=True),
    Column("key", LargeBinary, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)
# The keys stand apart, in a narrow table: overwritten in place, they leave no byte behind.
payload_keys = Table(
    "dispatcher_payload_keys",
    metadata,
    Column("n", Position, primary_key=True, autoincrement=False),
    Column("key", LargeBinary, nullable=False),
)
payloads = Table(
    "dispatcher_payloads",
    metadata,
    Column("n", Position, primary_key=True, autoincrement=False),
    Column("sealed", LargeBinary, nullable=False),
)
responses = Table(
    "dispatcher_responses",
    metadata,
    Column("n", Position, primary_key=True, autoincrement=False),
    Column("payload", BigInteger, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)
Index("dispatcher_responses_payload", responses.c.payload)

# Of erased payloads: their keys may still stand in the write-ahead log.
unscrubbed = Table(
    "dispatcher_unscrubbed",
    metadata,
    Column("n", Position, primary_key=True, autoincrement=False),
)
# How far payloads were erased that are kept for a time only.
retention = Table(
    "dispatcher_retention",
    metadata,
    Column("endpoint_id", Text, primary_key=True),
    Column("upto", BigInteger, nullable=False),
)

# What applications have accepted in their own transactions, until it is taken into the log. Its keys stand
# apart for the same reason as those of payloads, and are numbered by the sequence.
inbox_keys = Table(
    "dispatcher_inbox_keys",
    metadata,
    Column("n", Position, primary_key=True, autoincrement=True),
    Column("key", LargeBinary, nullable=False),
    sqlite_autoincrement=True,
)
inbox = Table(
    "dispatcher_inbox",
    metadata,
    Column("n", Position, primary_key=True, autoincrement=False),
    Column("accepted_at", BigInteger, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("endpoint_id", Text),
    Column("event_id", Text, nullable=False),
    Column("event_type", Text),
    Column("order_key", Text),
    Column("digest", Text, nullable=False),
    Column("actor", Text),
    Column("refused", Text),
    Column("sealed", LargeBinary, nullable=False),
)
Index("dispatcher_inbox_event", inbox.c.event_id)
Index("dispatcher_inbox_waiting", inbox.c.n, sqlite_where=inbox.c.refused.is_(None))

VIEW_TABLES = (endpoints, lanes, deliveries)

STATUS_VIEW = """\
CREATE VIEW dispatcher_delivery_status AS
SELECT d.delivery_id, d.endpoint_id,
       CASE WHEN d.state = 'pending' AND e.disabled IS NOT NULL THEN 'held' ELSE d.state END AS state,
       d.attempts,
       CASE WHEN d.state <> 'pending' OR e.disabled IS NOT NULL THEN NULL
            WHEN d.resumption < e.resumptions THEN e.resumed_at
            ELSE d.due_at END AS next_attempt_at,
       d.last_status, d.last_error, d.erased
FROM dispatcher_deliveries AS d JOIN dispatcher_endpoints AS e ON e.endpoint_id = d.endpoint_id"""

# INSERT OR REPLACE gets past UPDATE and DELETE triggers: the position itself has to be guarded, too.
TRIGGERS = (
    """\
CREATE TRIGGER dispatcher_log_append BEFORE INSERT ON dispatcher_log
WHEN NEW.position IS NOT (SELECT coalesce(max(position), 0) + 1 FROM dispatcher_log)
BEGIN SELECT RAISE(ABORT, 'dispatcher_log: a new entry takes the next position'); END""",
    """\
CREATE TRIGGER dispatcher_log_no_update BEFORE UPDATE ON dispatcher_log
BEGIN SELECT RAISE(ABORT, 'dispatcher_log: entries are never changed'); END""",
    """\
CREATE TRIGGER dispatcher_log_no_delete BEFORE DELETE ON dispatcher_log
BEGIN SELECT RAISE(ABORT, 'dispatcher_log: entries are never deleted'); END""",
)


def missing_triggers(connection: Connection) -> list[str]:
    """Those of the log's triggers that a database lacks, by name."""
    found = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE type = 'trigger'")
    present = {sql for (sql,) in found}
    return [trigger.split()[2] for trigger in TRIGGERS if trigger not in present]


@lru_cache(maxsize=1)
def sqlite_script() -> tuple[str, ...]:
    """The statements that make a new SQLite database, its revision included."""
    dialect = sqlite.dialect()
    statements = []
    for table in metadata.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)).strip())
        for index in sorted(table.indexes, key=lambda i: str(i.name)):
            statements.append(str(CreateIndex(index).compile(dialect=dialect)))
    statements += [STATUS_VIEW, *TRIGGERS]
    statements.append(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    statements.append(f"INSERT INTO {VERSION_TABLE} VALUES ('{REVISION}')")
    return tuple(statements)
