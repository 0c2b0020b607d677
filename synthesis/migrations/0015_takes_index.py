"""The takes of a segment are found by an index that is made beside the use of the table."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("synthesis", "0014_takes_favourites_scripts")]
    operations = [
        AddIndexConcurrently(
            "synthesisrequest",
            models.Index(condition=Q(("take_of__isnull", False)), fields=["take_of"], name="request_take"),
        ),
    ]
