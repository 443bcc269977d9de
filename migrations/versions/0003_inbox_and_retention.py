"""The inbox, event types and body formats, and what is known of erasures.

A frozen record: it states every table, index, view and trigger literally and imports nothing of the
dispatcher, so that it does tomorrow what it does today.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0003"
down_revision = "0002"

TABLES = ("unscrubbed", "retention", "inbox_keys", "inbox")
COLUMNS = (
    ("endpoints", "types", sa.Text),
    ("endpoints", "body_format", sa.Text),
    ("endpoints", "keep_payloads", sa.BigInteger),
    ("deliveries", "event_type", sa.Text),
)
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    for table, column, kind in COLUMNS:
        op.add_column(f"dispatcher_{table}", sa.Column(column, kind))
    op.create_index(
        "dispatcher_endpoints_kept",
        "dispatcher_endpoints",
        ["endpoint_id"],
        sqlite_where=sa.text("keep_payloads IS NOT NULL"),
    )
    op.create_table(
        "dispatcher_unscrubbed",
        sa.Column("n", NUMBER, primary_key=True, autoincrement=False),
    )
    op.create_table(
        "dispatcher_retention",
        sa.Column("endpoint_id", sa.Text, primary_key=True),
        sa.Column("upto", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "dispatcher_inbox_keys",
        sa.Column("n", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "dispatcher_inbox",
        sa.Column("n", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("accepted_at", sa.BigInteger, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("endpoint_id", sa.Text),
        sa.Column("event_id", sa.Text, nullable=False),
        sa.Column("event_type", sa.Text),
        sa.Column("order_key", sa.Text),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("actor", sa.Text),
        sa.Column("refused", sa.Text),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )
    op.create_index("dispatcher_inbox_event", "dispatcher_inbox", ["event_id"])
    op.create_index(
        "dispatcher_inbox_waiting", "dispatcher_inbox", ["n"], sqlite_where=sa.text("refused IS NULL")
    )
    # What was erased before may stand in the write-ahead log as well.
    op.execute(
        "INSERT INTO dispatcher_unscrubbed SELECT position FROM dispatcher_deliveries WHERE erased = 1"
    )


def downgrade() -> None:
    """Removes what `upgrade` made, unless that would lose events or what the log says."""
    if op.get_bind().scalar(sa.text("SELECT 1 FROM dispatcher_inbox LIMIT 1")) is not None:
        raise CommandError("the inbox holds events, which are kept nowhere else: nothing was changed")
    if any(
        op.get_bind().scalar(sa.text(f"SELECT 1 FROM dispatcher_{table} WHERE {column} IS NOT NULL LIMIT 1"))
        for table, column, _ in COLUMNS
    ):
        raise CommandError(
            "the log names event types, formats or times of keeping, which an older release does not know:"
            " nothing was changed"
        )
    op.drop_index("dispatcher_endpoints_kept", "dispatcher_endpoints")
    for table in TABLES:
        op.drop_table(f"dispatcher_{table}")
    for table, column, _ in COLUMNS:
        op.drop_column(f"dispatcher_{table}", column)
