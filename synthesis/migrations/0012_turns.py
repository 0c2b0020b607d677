"""Which team comes next, kept in rows of its own; triggers note what changes, whoever changes it.

The version before knows nothing of them: its claims and submissions are noted as well.
"""

from django.db import migrations, models
from django.db.models import Q

FORWARD = """
CREATE FUNCTION chorus_request_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO synthesis_queuechange (team_id, engine) VALUES (OLD.team_id, OLD.engine);
    END IF;
    IF TG_OP <> 'DELETE' AND (TG_OP = 'INSERT' OR OLD.team_id <> NEW.team_id OR OLD.engine <> NEW.engine) THEN
        INSERT INTO synthesis_queuechange (team_id, engine) VALUES (NEW.team_id, NEW.engine);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER request_queued AFTER INSERT ON synthesis_synthesisrequest
    FOR EACH ROW WHEN (NEW.status IN ('queued', 'running')) EXECUTE FUNCTION chorus_request_changed();
CREATE TRIGGER request_moved AFTER UPDATE OF status, priority, not_before, engine, team_id
    ON synthesis_synthesisrequest FOR EACH ROW
    WHEN ((OLD.status IN ('queued', 'running') OR NEW.status IN ('queued', 'running'))
          AND (OLD.status, OLD.priority, OLD.not_before, OLD.engine, OLD.team_id)
              IS DISTINCT FROM (NEW.status, NEW.priority, NEW.not_before, NEW.engine, NEW.team_id))
    EXECUTE FUNCTION chorus_request_changed();
CREATE TRIGGER request_gone AFTER DELETE ON synthesis_synthesisrequest
    FOR EACH ROW WHEN (OLD.status IN ('queued', 'running')) EXECUTE FUNCTION chorus_request_changed();

CREATE FUNCTION chorus_team_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'accounts_plan' THEN
        INSERT INTO synthesis_queuechange (team_id, engine)
        SELECT t.id, '' FROM accounts_team t WHERE t.plan_id = NEW.id;
    ELSIF TG_TABLE_NAME = 'accounts_team' THEN
        INSERT INTO synthesis_queuechange (team_id, engine) VALUES (NEW.id, '');
    ELSIF TG_TABLE_NAME = 'accounts_memberquota' THEN
        INSERT INTO synthesis_queuechange (team_id, engine)
        SELECT m.team_id, '' FROM accounts_membership m
        WHERE m.id = CASE WHEN TG_OP = 'DELETE' THEN OLD.membership_id ELSE NEW.membership_id END;
    ELSE
        INSERT INTO synthesis_queuechange (team_id, engine)
        VALUES (CASE WHEN TG_OP = 'DELETE' THEN OLD.team_id ELSE NEW.team_id END, '');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER plan_changed AFTER UPDATE OF weight, concurrent_requests ON accounts_plan
    FOR EACH ROW EXECUTE FUNCTION chorus_team_changed();
CREATE TRIGGER team_changed AFTER UPDATE OF plan_id, suspended_at ON accounts_team
    FOR EACH ROW EXECUTE FUNCTION chorus_team_changed();
CREATE TRIGGER team_quota_changed AFTER INSERT OR UPDATE OR DELETE ON accounts_teamquota
    FOR EACH ROW EXECUTE FUNCTION chorus_team_changed();
CREATE TRIGGER member_quota_changed AFTER INSERT OR UPDATE OR DELETE ON accounts_memberquota
    FOR EACH ROW EXECUTE FUNCTION chorus_team_changed();
CREATE TRIGGER membership_changed AFTER INSERT OR DELETE ON accounts_membership
    FOR EACH ROW EXECUTE FUNCTION chorus_team_changed();
CREATE TRIGGER team_pool_changed AFTER INSERT OR UPDATE OR DELETE ON synthesis_teampool
    FOR EACH ROW EXECUTE FUNCTION chorus_team_changed();

-- A table of a few rows that come and go all the time: cleaned by their number, not by their share.
ALTER TABLE synthesis_queuechange SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE synthesis_turn SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- What waits already.
INSERT INTO synthesis_queuechange (team_id, engine)
SELECT DISTINCT team_id, engine FROM synthesis_synthesisrequest WHERE status = 'queued';
"""
BACKWARD = """
DROP TRIGGER team_pool_changed ON synthesis_teampool;
DROP TRIGGER membership_changed ON accounts_membership;
DROP TRIGGER member_quota_changed ON accounts_memberquota;
DROP TRIGGER team_quota_changed ON accounts_teamquota;
DROP TRIGGER team_changed ON accounts_team;
DROP TRIGGER plan_changed ON accounts_plan;
DROP FUNCTION chorus_team_changed();
DROP TRIGGER request_gone ON synthesis_synthesisrequest;
DROP TRIGGER request_moved ON synthesis_synthesisrequest;
DROP TRIGGER request_queued ON synthesis_synthesisrequest;
DROP FUNCTION chorus_request_changed();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_prices_and_alerts"),
        ("synthesis", "0011_shared_voices_and_clips"),
    ]
    operations = [
        migrations.CreateModel(
            name="QueueChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("team_id", models.UUIDField()),
                ("engine", models.CharField(max_length=32)),
            ],
        ),
        migrations.CreateModel(
            name="Turn",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("team_id", models.UUIDField()),
                ("engine", models.CharField(max_length=32)),
                ("pool", models.CharField(max_length=32)),
                ("share", models.FloatField(null=True)),
                ("since", models.DateTimeField(null=True)),
                ("look_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=Q(("share__isnull", False)),
                        fields=["engine", "pool", "share", "since"],
                        name="turn_next",
                    ),
                    models.Index(
                        condition=Q(("look_at__isnull", False)), fields=["look_at"], name="turn_look"
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("team_id", "engine"), name="turn_once")],
            },
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
