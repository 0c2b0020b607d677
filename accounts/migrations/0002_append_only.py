"""The ledger and the audit log are append-only, whoever asks."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION chorus_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$;
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE ON accounts_ledgerentry
    FOR EACH ROW EXECUTE FUNCTION chorus_append_only();
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON accounts_auditentry
    FOR EACH ROW EXECUTE FUNCTION chorus_append_only();
"""
BACKWARD = """
DROP TRIGGER audit_append_only ON accounts_auditentry;
DROP TRIGGER ledger_append_only ON accounts_ledgerentry;
DROP FUNCTION chorus_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
