"""Addresses that requests and batches name for themselves, what they are told, and what signs it."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import accounts.ids


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_preferences_and_team_settings"), ("synthesis", "0019_voice_marks")]

    operations = [
        migrations.CreateModel(
            name="Callback",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=accounts.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("event_id", models.UUIDField(default=accounts.ids.new_id)),
                ("event", models.CharField(max_length=32)),
                ("body", models.JSONField()),
                (
                    "state",
                    models.CharField(
                        choices=[("pending", "Waiting"), ("delivered", "Delivered"), ("failed", "Failed")],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField(default=django.utils.timezone.now, null=True)),
                ("response_status", models.PositiveSmallIntegerField(null=True)),
                ("error", models.CharField(blank=True, max_length=200)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("attempted_at", models.DateTimeField(null=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="accounts.team"
                    ),
                ),
                ("about", models.UUIDField()),
                ("url", models.CharField(max_length=2000)),
            ],
            options={
                "verbose_name": "callback",
                "verbose_name_plural": "callbacks",
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "pending")),
                        fields=["next_attempt_at"],
                        name="callback_due",
                    ),
                    models.Index(fields=["about", "-id"], name="callback_log"),
                    models.Index(fields=["team"], name="callback_team"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("event", "start")), fields=("about",), name="callback_start_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SigningSecret",
            fields=[
                (
                    "team",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="accounts.team",
                    ),
                ),
                ("secret", models.CharField(editable=False, max_length=64)),
                ("previous", models.CharField(blank=True, editable=False, max_length=64)),
                ("previous_until", models.DateTimeField(null=True)),
                ("rotated_at", models.DateTimeField(null=True)),
            ],
            options={"verbose_name": "signing secret", "verbose_name_plural": "signing secrets"},
        ),
        migrations.AddField("batch", "open", models.BooleanField(db_default=False, default=True)),
        migrations.AddField(
            "batch", "webhook", models.CharField(blank=True, db_default="", default="", max_length=2000)
        ),
        migrations.AddField(
            "synthesisrequest",
            "webhook",
            models.CharField(blank=True, db_default="", default="", max_length=2000),
        ),
        migrations.AddField(
            "synthesisrequest",
            "webhook_events",
            django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=16), null=True, size=None
            ),
        ),
        migrations.AlterField("delivery", "event_id", models.UUIDField(default=accounts.ids.new_id)),
    ]
