"""Indexes of what is at work and of what pauses. Made beside the use of the table: none of it is locked."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("synthesis", "0012_turns")]
    operations = [
        AddIndexConcurrently(
            "synthesisrequest",
            models.Index(
                condition=Q(("status", "running")), fields=["team", "user"], name="request_at_work"
            ),
        ),
        AddIndexConcurrently(
            "synthesisrequest",
            models.Index(
                condition=Q(("not_before__gt", F("created_at")), ("status", "queued")),
                fields=["team", "not_before"],
                name="request_paused",
            ),
        ),
        RemoveIndexConcurrently("synthesisrequest", "request_running"),
    ]
