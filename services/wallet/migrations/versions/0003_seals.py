"""The hash chain over what is written once, and what its maker knows by it.

Revision ID: 0003
Revises: 0002
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE seals (
    number bigint PRIMARY KEY CHECK (number > 0),
    after_entry bigint NOT NULL,
    last_entry bigint NOT NULL CHECK (last_entry >= after_entry),
    after_account bigint NOT NULL,
    last_account bigint NOT NULL CHECK (last_account >= after_account),
    rows integer NOT NULL CHECK (rows > 0),
    contents bytea NOT NULL CHECK (octet_length(contents) = 20 * rows),
    previous bytea NOT NULL CHECK (octet_length(previous) = 32),
    hash bytea NOT NULL CHECK (octet_length(hash) = 32),
    at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE seals IS 'A chain of hashes over accounts, journal and transfers.';
COMMENT ON COLUMN seals.contents IS 'For each row its table, key and the beginning of its digest, '
    'so that a row that was changed can be named.';
CREATE TRIGGER written_once BEFORE UPDATE OR DELETE OR TRUNCATE ON seals
    FOR EACH STATEMENT EXECUTE FUNCTION refuse();

CREATE TABLE sealed_balances (
    account bigint PRIMARY KEY,
    balance bigint NOT NULL
) WITH (fillfactor = 60);
COMMENT ON TABLE sealed_balances IS 'What the sealed transfers add up to, by account.';

CREATE TABLE sealed_sums (
    currency text COLLATE "C" NOT NULL,
    purpose text COLLATE "C" NOT NULL,
    balance numeric NOT NULL,
    PRIMARY KEY (currency, purpose)
) WITH (fillfactor = 20);
COMMENT ON TABLE sealed_sums IS 'What the sealed transfers add up to, by purpose.';

CREATE TABLE differences (
    account bigint PRIMARY KEY,
    currency text COLLATE "C" NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    found timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE differences IS 'Accounts whose balance is not the sum of their transfers.';

CREATE TABLE upkeep (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    audited_account bigint NOT NULL DEFAULT 0,
    checked_seal bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20);
COMMENT ON TABLE upkeep IS 'How far the rounds over accounts and seals have come.';
INSERT INTO upkeep DEFAULT VALUES;
"""


def upgrade() -> None:
    op.execute(TABLES)
