"""The audit log: what operators changed, chained by hashes, never to be changed itself."""

from alembic import op

revision = "0002"
down_revision = "0001"

SCHEMA = """
CREATE TABLE audit_log (
    number      bigint PRIMARY KEY,
    record_id   uuid NOT NULL UNIQUE,
    at          timestamptz NOT NULL,
    operator    text NOT NULL,
    action      text NOT NULL,
    table_id    text NOT NULL,
    record      bytea NOT NULL,
    hash        bytea NOT NULL CHECK (length(hash) = 32),
    archived_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX audit_log_of_table ON audit_log (table_id, number) WHERE table_id <> '';
CREATE INDEX audit_log_of_operator ON audit_log (operator, number);

-- The database itself numbers and chains: whoever inserts cannot choose a place. One at a time, so
-- that each sees the one before it.
CREATE FUNCTION chain_audit_record() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE last audit_log%ROWTYPE;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('audit_log', 0));
    SELECT * INTO last FROM audit_log ORDER BY number DESC LIMIT 1;
    NEW.number := coalesce(last.number, 0) + 1;
    NEW.hash := sha256(coalesce(last.hash, ''::bytea) || NEW.record);
    RETURN NEW;
END $$;
CREATE TRIGGER audit_log_chained BEFORE INSERT ON audit_log
    FOR EACH ROW EXECUTE FUNCTION chain_audit_record();
CREATE TRIGGER audit_log_stays BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_log_stays_whole BEFORE TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
"""


def upgrade() -> None:
    """Create the log."""
    op.execute(SCHEMA)
