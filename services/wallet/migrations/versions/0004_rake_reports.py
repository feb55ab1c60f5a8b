"""Whose rake it was: what is known of each hand, and what reports add up.

Revision ID: 0004
Revises: 0003
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE hands (
    entry bigint PRIMARY KEY,
    currency text COLLATE "C" NOT NULL,
    game smallint NOT NULL,
    stake text COLLATE "C" NOT NULL,
    ended timestamptz,
    rake bigint NOT NULL,
    players bigint[] NOT NULL,
    contributed bigint[] NOT NULL,
    CONSTRAINT one_each CHECK (cardinality(players) = cardinality(contributed))
);
COMMENT ON TABLE hands IS 'Settled hands, for attribution of their rake.';
COMMENT ON COLUMN hands.players IS 'Accounts of those dealt in.';
COMMENT ON COLUMN hands.contributed IS 'What each put into the pots, minor units.';
CREATE TRIGGER written_once BEFORE UPDATE OR DELETE OR TRUNCATE ON hands
    FOR EACH STATEMENT EXECUTE FUNCTION refuse();

CREATE TABLE rake_by_table (
    currency text COLLATE "C" NOT NULL,
    day date NOT NULL,
    table_id text COLLATE "C" NOT NULL,
    game smallint NOT NULL,
    stake text COLLATE "C" NOT NULL,
    hands bigint NOT NULL,
    rake bigint NOT NULL,
    PRIMARY KEY (currency, day, table_id, game, stake)
) WITH (fillfactor = 60);
COMMENT ON TABLE rake_by_table IS 'Rake of what is sealed, by the room''s day.';

CREATE TABLE rake_by_player (
    currency text COLLATE "C" NOT NULL,
    player bigint NOT NULL,
    day date NOT NULL,
    table_id text COLLATE "C" NOT NULL,
    game smallint NOT NULL,
    stake text COLLATE "C" NOT NULL,
    hands bigint NOT NULL,
    rake bigint NOT NULL,
    dealt bigint NOT NULL,
    contributed bigint NOT NULL,
    PRIMARY KEY (currency, player, day, table_id, game, stake)
) WITH (fillfactor = 60);
COMMENT ON TABLE rake_by_player IS 'The same by player; his shares in thousandths of a unit.';
"""


def upgrade() -> None:
    op.execute(TABLES)
