"""The vault, for what the log may not hold, and the claims of workers.

A frozen record: it states every table, index, view and trigger literally and imports nothing of the
dispatcher, so that it does tomorrow what it does today.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from alembic.util import CommandError

revision = "0002"
down_revision = "0001"

TABLES = ("claims", "vault_keys", "vault_endpoints", "payload_keys", "payloads", "responses")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "dispatcher_claims",
        sa.Column("fence", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("endpoint_id", sa.Text, nullable=False),
        sa.Column("lane", sa.Text, nullable=False),
        sa.Column("delivery_id", sa.Text, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("worker", sa.Text, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("leased_until", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("dispatcher_claims_delivery", "dispatcher_claims", ["delivery_id"])
    op.create_index("dispatcher_claims_lane", "dispatcher_claims", ["endpoint_id", "lane"], unique=True)
    op.create_index("dispatcher_claims_lease", "dispatcher_claims", ["leased_until"])
    op.create_table(
        "dispatcher_vault_keys",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("key", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "dispatcher_vault_endpoints",
        sa.Column("endpoint_id", sa.Text, primary_key=True),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "dispatcher_payload_keys",
        sa.Column("n", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "dispatcher_payloads",
        sa.Column("n", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "dispatcher_responses",
        sa.Column("n", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("payload", sa.BigInteger, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )
    op.create_index("dispatcher_responses_payload", "dispatcher_responses", ["payload"])


def downgrade() -> None:
    """Refuses to take payloads away; without any, removes what `upgrade` made."""
    if op.get_bind().scalar(sa.text("SELECT 1 FROM dispatcher_vault_endpoints LIMIT 1")) is not None:
        raise CommandError("the vault holds endpoints, which are kept nowhere else: nothing was changed")
    for table in TABLES:
        op.drop_table(f"dispatcher_{table}")
