"""${message}

A frozen record: it states every table, index, view and trigger literally and imports nothing of the
dispatcher, so that it does tomorrow what it does today. `dispatcher_log` is never altered in batch mode,
which makes a new table without the triggers that protect the log.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision).replace("'", '"')}
down_revision = ${repr(down_revision).replace("'", '"')}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
