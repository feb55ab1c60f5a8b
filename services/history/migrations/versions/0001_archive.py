"""Hands, their players, e-mail requests, addresses and the trace of who read what."""

from alembic import op

revision = "0001"
down_revision = None

SCHEMA = """
CREATE TABLE hands (
    hand_id     uuid PRIMARY KEY,
    table_id    text NOT NULL,
    shard       integer NOT NULL,
    epoch       bigint NOT NULL,
    seq         bigint NOT NULL,
    ended_at    timestamptz NOT NULL,
    archived_at timestamptz NOT NULL DEFAULT now(),
    record      bytea NOT NULL,
    UNIQUE (shard, epoch, seq)
);
CREATE INDEX hands_of_table ON hands (table_id, ended_at, hand_id);

CREATE TABLE hand_players (
    player_id text NOT NULL,
    hand_id   uuid NOT NULL REFERENCES hands,
    table_id  text NOT NULL,
    ended_at  timestamptz NOT NULL,
    PRIMARY KEY (player_id, hand_id)
);
CREATE INDEX hands_of_player ON hand_players (player_id, ended_at, hand_id);
CREATE INDEX hands_of_player_at_table ON hand_players (player_id, table_id, ended_at, hand_id);

CREATE TABLE archive_progress (
    shard        integer PRIMARY KEY,
    epoch        bigint NOT NULL CHECK (epoch >= 0),
    archived_seq bigint NOT NULL CHECK (archived_seq >= 0)
);

-- state: the numbers of EmailState. due_at: the next try, the end of a lease, or the next look
-- for a hand that has not arrived. token_address is forgotten when the request ends.
CREATE TABLE email_requests (
    email_request_id uuid PRIMARY KEY,
    player_id        text NOT NULL,
    request_id       text NOT NULL,
    hand_id          uuid NOT NULL,
    token_address    text,
    state            smallint NOT NULL DEFAULT 1 CHECK (state IN (1, 2, 3)),
    attempt          integer NOT NULL DEFAULT 0,
    due_at           timestamptz NOT NULL DEFAULT now(),
    requested_at     timestamptz NOT NULL DEFAULT now(),
    ended_at         timestamptz,
    reason           text NOT NULL DEFAULT '',
    UNIQUE (player_id, request_id)
);
CREATE INDEX email_requests_due ON email_requests (due_at) WHERE state = 1;
CREATE INDEX email_requests_by_hand ON email_requests (hand_id) WHERE state = 1;
CREATE INDEX email_requests_by_player ON email_requests (player_id, requested_at);

CREATE TABLE mail_addresses (
    player_id text PRIMARY KEY,
    address   text NOT NULL
);
-- What an operator changed, and when; the addresses themselves are not kept.
CREATE TABLE mail_address_changes (
    request_id     text PRIMARY KEY,
    player_id      text NOT NULL,
    content_sha256 bytea NOT NULL,
    changed_by     text NOT NULL,
    changed_at     timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE staff_reads (
    read_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    read_at   timestamptz NOT NULL DEFAULT now(),
    subject   text NOT NULL,
    hand_id   uuid,
    player_id text,
    table_id  text
);
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION '% is never changed', TG_TABLE_NAME; END $$;
CREATE TRIGGER hands_stay BEFORE UPDATE OR DELETE ON hands
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER staff_reads_stay BEFORE UPDATE OR DELETE ON staff_reads
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
"""


def upgrade() -> None:
    """Create everything."""
    op.execute(SCHEMA)
