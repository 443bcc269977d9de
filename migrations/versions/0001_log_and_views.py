"""The log, its tiles, and the views folded from it.

A frozen record: it states every table, index, view and trigger literally and imports nothing of the
dispatcher, so that it does tomorrow what it does today. `dispatcher_log` is never altered in batch mode,
which makes a new table without the triggers that protect the log.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0001"
down_revision = None

DELIVERY_STATUS = """\
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


def upgrade() -> None:
    _create_log()
    _create_endpoints()
    _create_lanes()
    _create_deliveries()
    op.execute(DELIVERY_STATUS)
    for trigger in TRIGGERS:
        op.execute(trigger)


def downgrade() -> None:
    """Refuses to take a log away; without entries, removes what `upgrade` made."""
    if op.get_bind().scalar(sa.text("SELECT 1 FROM dispatcher_log LIMIT 1")) is not None:
        raise CommandError("dispatcher_log holds entries, and a log is never deleted: nothing was changed")
    op.execute("DROP VIEW dispatcher_delivery_status")
    for table in ("deliveries", "lanes", "endpoints", "tiles", "log"):
        op.drop_table(f"dispatcher_{table}")


def _position() -> sa.Column[int]:
    # A 64-bit integer that SQLite still takes for its rowid.
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("position", kind, primary_key=True, autoincrement=False)


def _create_log() -> None:
    op.create_table(
        "dispatcher_log",
        _position(),
        sa.Column("ts", sa.BigInteger, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("endpoint_id", sa.Text),
        sa.Column("delivery_id", sa.Text),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
    )
    op.create_index("dispatcher_log_endpoint", "dispatcher_log", ["endpoint_id", "position"])
    op.create_index("dispatcher_log_delivery", "dispatcher_log", ["delivery_id", "position"])
    op.create_table(
        "dispatcher_tiles",
        sa.Column("level", sa.Integer, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )


def _create_endpoints() -> None:
    op.create_table(
        "dispatcher_endpoints",
        sa.Column("endpoint_id", sa.Text, primary_key=True),
        sa.Column("registered", sa.BigInteger, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("url_digest", sa.Text),
        sa.Column("policy", sa.Text, nullable=False),
        sa.Column("ordering", sa.Text, nullable=False),
        sa.Column("concurrency", sa.Integer, nullable=False),
        sa.Column("erase", sa.Text, nullable=False),
        sa.Column("disable_when_gone", sa.Integer, nullable=False),
        sa.Column("disabled", sa.Text),
        sa.Column("resumptions", sa.Integer, nullable=False),
        sa.Column("resumed_at", sa.BigInteger, nullable=False),
        sa.Column("pending", sa.Integer, nullable=False),
        sa.Column("delivered", sa.Integer, nullable=False),
        sa.Column("dead", sa.Integer, nullable=False),
        sa.Column("cancelled", sa.Integer, nullable=False),
        sa.Column("next_due_at", sa.BigInteger),
    )
    _create_partial_index("endpoints_due", "endpoints", ["next_due_at"], "next_due_at IS NOT NULL")


def _create_lanes() -> None:
    op.create_table(
        "dispatcher_lanes",
        sa.Column("endpoint_id", sa.Text, primary_key=True),
        sa.Column("lane", sa.Text, primary_key=True),
        sa.Column("head", sa.BigInteger, nullable=False),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("resumption", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    columns = ["endpoint_id", "resumption", "due_at", "head"]
    op.create_index("dispatcher_lanes_due", "dispatcher_lanes", columns)


def _create_deliveries() -> None:
    op.create_table(
        "dispatcher_deliveries",
        _position(),
        sa.Column("delivery_id", sa.Text, nullable=False),
        sa.Column("endpoint_id", sa.Text, nullable=False),
        sa.Column("lane", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due_at", sa.BigInteger, nullable=False),
        sa.Column("resumption", sa.Integer, nullable=False),
        sa.Column("death", sa.BigInteger),
        sa.Column("last_status", sa.Integer),
        sa.Column("last_error", sa.Text),
        sa.Column("outcomes", sa.Text),
        sa.Column("seed", sa.BigInteger),
        sa.Column("digest", sa.Text),
        sa.Column("erased", sa.Integer, nullable=False),
        sa.CheckConstraint(
            "state IN ('pending', 'delivered', 'dead', 'cancelled')", name="dispatcher_deliveries_state"
        ),
    )
    op.create_index("dispatcher_deliveries_id", "dispatcher_deliveries", ["delivery_id"], unique=True)
    pending = ["endpoint_id", "lane", "position"]
    _create_partial_index("deliveries_pending", "deliveries", pending, "state = 'pending'")
    _create_partial_index("deliveries_dead", "deliveries", ["endpoint_id", "death"], "state = 'dead'")
    _create_partial_index("deliveries_death", "deliveries", ["death"], "state = 'dead'")


def _create_partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    condition = sa.text(where)
    op.create_index(
        f"dispatcher_{name}",
        f"dispatcher_{table}",
        columns,
        sqlite_where=condition,
        postgresql_where=condition,
    )
