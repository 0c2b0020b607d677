"""Batches whose end is still to be told are found by an index that is made beside the use of the table."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("synthesis", "0020_callbacks")]
    operations = [
        AddIndexConcurrently(
            "batch", models.Index(condition=Q(("open", True)), fields=["id"], name="batch_open")
        ),
    ]
