"""Fair share by what a team has been served, and no longer by what it has at work.

By what runs at once, a single worker always found nothing at work and gave every turn to the plan of the highest
weight: the others starved. Now it is start-time fair queueing (Goyal, Vin and Cheng, 1996): a request begins at the
share that its team has reached, a clock stands where the last one began, and who was away comes back at the clock.

The functions keep their names and arguments: workers of the version before call them as they are.
"""

from importlib import import_module

from django.db import migrations, models

BEFORE = import_module("synthesis.migrations.0016_claim_functions")
DROP = """
DROP FUNCTION chorus_claim(text, text, text, uuid[], double precision, integer);
DROP FUNCTION chorus_tidy(integer);
DROP FUNCTION chorus_turn(uuid, text, uuid[]);
"""
FORWARD = DROP + """
-- Works out a team's turn anew and writes it down; its next request and what that adds to the team's share, unless
-- nothing of it may be taken. `aside` are requests that are locked by somebody. Limits of team, person and key hold for
-- what runs at once.
CREATE FUNCTION chorus_turn(
    the_team uuid, the_engine text, aside uuid[],
    OUT request uuid, OUT share double precision, OUT since timestamptz, OUT work double precision
) LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    team record;
    own record;
    busy integer;
    users uuid[];
    keys uuid[];
    again timestamptz;
BEGIN
    SELECT t.suspended_at, p.weight, coalesce(q.concurrent_requests, p.concurrent_requests) AS allowed,
           coalesce(tp.pool_id, '') AS pool
    INTO team
    FROM accounts_team t JOIN accounts_plan p ON p.id = t.plan_id
    LEFT JOIN accounts_teamquota q ON q.team_id = t.id
    LEFT JOIN synthesis_teampool tp ON tp.team_id = t.id
    WHERE t.id = the_team;
    IF NOT FOUND THEN
        DELETE FROM synthesis_turn WHERE team_id = the_team;
        RETURN;
    END IF;
    SELECT count(*) INTO busy FROM synthesis_synthesisrequest r
    WHERE r.team_id = the_team AND r.status = 'running';
    IF team.suspended_at IS NULL AND busy < team.allowed THEN
        -- People and keys that have as much at work as they may.
        users := ARRAY(
            SELECT m.user_id FROM accounts_membership m JOIN accounts_memberquota q ON q.membership_id = m.id
            WHERE m.team_id = the_team AND q.concurrent_requests <= (
                SELECT count(*) FROM synthesis_synthesisrequest r
                WHERE r.team_id = the_team AND r.user_id = m.user_id AND r.status = 'running'));
        keys := ARRAY(
            SELECT k.id FROM accounts_apikey k
            WHERE k.team_id = the_team AND k.concurrent_requests <= (
                SELECT count(*) FROM synthesis_synthesisrequest r
                WHERE r.team_id = the_team AND r.api_key_id = k.id AND r.status = 'running'));
        SELECT r.id, r.created_at, greatest(r.characters, 1) / team.weight INTO request, since, work
        FROM synthesis_synthesisrequest r
        WHERE r.team_id = the_team AND r.status = 'queued' AND r.engine = the_engine AND r.not_before <= moment
          AND r.user_id <> ALL (users) AND (r.api_key_id IS NULL OR r.api_key_id <> ALL (keys))
          AND r.id <> ALL (aside)
        ORDER BY r.priority DESC, r.created_at LIMIT 1;
        IF request IS NOT NULL THEN
            -- Who was away comes back no further behind than those who stayed. Each pool has a clock of its own.
            SELECT t.finish INTO own FROM synthesis_turn t
            WHERE t.team_id = the_team AND t.engine = the_engine AND t.pool = team.pool;
            share := greatest(own.finish, 0, (
                SELECT c.now FROM synthesis_fairclock c WHERE c.engine = the_engine AND c.pool = team.pool));
        END IF;
        since := greatest(since, (SELECT max(t.served_at) FROM synthesis_turn t WHERE t.team_id = the_team));
    END IF;
    SELECT min(r.not_before) INTO again FROM synthesis_synthesisrequest r
    WHERE r.team_id = the_team AND r.status = 'queued' AND r.not_before > r.created_at AND r.not_before > moment
      AND r.engine = the_engine;
    IF request IS NULL AND again IS NULL AND EXISTS (
        SELECT FROM synthesis_synthesisrequest r
        WHERE r.team_id = the_team AND r.status = 'queued' AND r.engine = the_engine AND r.not_before > moment
    ) THEN
        -- Not yet by the database's clock, which may differ from the submitter's.
        again := moment + interval '1 second';
    END IF;
    INSERT INTO synthesis_turn AS turn (team_id, engine, pool, share, since, look_at)
    VALUES (the_team, the_engine, team.pool, chorus_turn.share, chorus_turn.since, again)
    ON CONFLICT (team_id, engine) DO UPDATE
        SET pool = excluded.pool, share = excluded.share, since = excluded.since, look_at = excluded.look_at,
            finish = CASE WHEN turn.pool = excluded.pool THEN turn.finish ELSE 0 END
        WHERE (turn.pool, turn.share, turn.since, turn.look_at)
            IS DISTINCT FROM (excluded.pool, excluded.share, excluded.since, excluded.look_at);
END $$;

-- Reads up to `most` notes, and as many turns whose pause is over; how many notes it read. Under the claim's lock.
CREATE FUNCTION chorus_tidy(most integer) RETURNS integer LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    note record;
    others record;
    count_of_notes integer := 0;
BEGIN
    FOR note IN
        WITH gone AS (
            DELETE FROM synthesis_queuechange
            WHERE id = ANY (ARRAY(SELECT id FROM synthesis_queuechange ORDER BY id LIMIT most))
            RETURNING team_id, engine
        )
        SELECT team_id, engine, count(*) AS n FROM gone GROUP BY team_id, engine
    LOOP
        count_of_notes := count_of_notes + note.n;
        IF note.engine <> '' THEN
            PERFORM chorus_turn(note.team_id, note.engine, '{}');
        END IF;
        FOR others IN
            SELECT engine FROM synthesis_turn WHERE team_id = note.team_id AND engine <> note.engine
        LOOP
            PERFORM chorus_turn(note.team_id, others.engine, '{}');
        END LOOP;
    END LOOP;
    FOR note IN SELECT team_id, engine FROM synthesis_turn WHERE look_at <= clock_timestamp() LIMIT most LOOP
        PERFORM chorus_turn(note.team_id, note.engine, '{}');
    END LOOP;
    RETURN count_of_notes;
END $$;

-- Marks queued requests as running for a worker, one for each of `attempts` (ids of new rows) at most. Fair share: the
-- team that has had the fewest characters for its weight comes next; among equals the one that was served longest ago.
CREATE FUNCTION chorus_claim(
    the_worker text, the_engine text, the_pool text, attempts uuid[], lease double precision, notes integer
) RETURNS SETOF uuid LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    first record;
    found_now record;
    aside uuid[] := '{}';
    most integer := cardinality(attempts);
    taken integer := 0;
    number integer;
BEGIN
    -- Each statement below has a snapshot of its own, which is not older than the lock.
    PERFORM pg_advisory_xact_lock(1128812370);
    -- A worker that is to pause, stop or start anew is given nothing, whether it has heard of it or not.
    IF EXISTS (SELECT FROM synthesis_worker w
               WHERE w.name = the_worker AND w."order" IN ('pause', 'stop', 'restart')) THEN
        RETURN;
    END IF;
    PERFORM chorus_tidy(notes);
    FOR look IN 1 .. most + 1000 LOOP
        EXIT WHEN taken >= most;
        SELECT t.team_id, t.share, t.since INTO first FROM synthesis_turn t
        WHERE t.engine = the_engine AND t.pool = the_pool AND t.share IS NOT NULL
        ORDER BY t.engine, t.pool, t.share, t.since LIMIT 1;
        IF NOT FOUND THEN
            EXIT WHEN chorus_tidy(notes) = 0;
            CONTINUE;
        END IF;
        found_now := chorus_turn(first.team_id, the_engine, aside);
        -- It has changed a moment ago, and another team may come before it now.
        CONTINUE WHEN found_now.request IS NULL
            OR (found_now.share, found_now.since) > (first.share, first.since);
        PERFORM FROM synthesis_synthesisrequest r
        WHERE r.id = found_now.request AND r.status = 'queued' FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            -- Somebody cancels it or moves it, and is not waited for.
            aside := aside || found_now.request;
            PERFORM chorus_turn(first.team_id, the_engine, aside);
            CONTINUE;
        END IF;
        UPDATE synthesis_synthesisrequest SET
            status = 'running', attempt = attempt + 1, worker = the_worker,
            lease_until = clock_timestamp() + make_interval(secs => lease),
            started_at = coalesce(started_at, clock_timestamp())
        WHERE id = found_now.request RETURNING attempt INTO number;
        UPDATE synthesis_turn SET served_at = clock_timestamp(), finish = found_now.share + found_now.work
        WHERE team_id = first.team_id AND engine = the_engine;
        UPDATE synthesis_fairclock SET now = found_now.share WHERE engine = the_engine AND pool = the_pool;
        IF NOT FOUND THEN
            INSERT INTO synthesis_fairclock (engine, pool, now) VALUES (the_engine, the_pool, found_now.share);
        END IF;
        taken := taken + 1;
        INSERT INTO synthesis_attempt
            (id, request_id, number, worker, started_at, outcome, error_code, detail)
        VALUES (attempts[taken], found_now.request, number, the_worker, clock_timestamp(), '', '', '');
        RETURN NEXT found_now.request;
        IF taken < most THEN
            PERFORM chorus_turn(first.team_id, the_engine, aside);
        END IF;
    END LOOP;
    -- What was set aside is free again by the next claim.
    INSERT INTO synthesis_queuechange (team_id, engine)
    SELECT DISTINCT r.team_id, r.engine FROM synthesis_synthesisrequest r WHERE r.id = ANY (aside);
END $$;

-- One row for each pool, written by every claim.
ALTER TABLE synthesis_fairclock SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- What waits already.
INSERT INTO synthesis_queuechange (team_id, engine)
SELECT DISTINCT team_id, engine FROM synthesis_synthesisrequest WHERE status = 'queued';
"""


class Migration(migrations.Migration):
    dependencies = [("synthesis", "0017_conversions")]
    operations = [
        migrations.AddField("turn", "finish", models.FloatField(db_default=0.0)),
        migrations.CreateModel(
            name="FairClock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("engine", models.CharField(max_length=32)),
                ("pool", models.CharField(max_length=32)),
                ("now", models.FloatField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("engine", "pool"), name="fair_clock_once")],
            },
        ),
        migrations.RunSQL(FORWARD, BEFORE.BACKWARD + BEFORE.FORWARD),
    ]
