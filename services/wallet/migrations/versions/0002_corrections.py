"""Corrections: reasons, reversals, and the one currency of a table.

Revision ID: 0002
Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

CHANGES = """
ALTER TABLE journal
    ADD COLUMN reason text NOT NULL DEFAULT '',
    ADD COLUMN reverses bigint REFERENCES journal;
COMMENT ON COLUMN journal.reason IS 'Why an operator made it.';
COMMENT ON COLUMN journal.reverses IS 'The entry that this one takes back.';
CREATE UNIQUE INDEX journal_reverses ON journal (reverses) WHERE reverses IS NOT NULL;

CREATE TABLE tables (
    table_id text COLLATE "C" PRIMARY KEY,
    currency text COLLATE "C" NOT NULL
);
COMMENT ON TABLE tables IS 'The currency of each table where money was ever set aside.';
INSERT INTO tables (table_id, currency)
    SELECT DISTINCT ON (table_id) table_id, currency FROM accounts
    WHERE purpose = 'escrow' ORDER BY table_id, id;
CREATE TRIGGER written_once BEFORE UPDATE OR DELETE OR TRUNCATE ON tables
    FOR EACH STATEMENT EXECUTE FUNCTION refuse();
"""


def upgrade() -> None:
    op.execute(CHANGES)
