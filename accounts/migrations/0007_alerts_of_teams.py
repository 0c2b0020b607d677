"""Owners and admins hear at 80 and at 100 percent of a month, unless whoever runs the service has chosen otherwise."""

from __future__ import annotations

from typing import Any

import django.utils.timezone
from django.db import migrations, models


def add_rules(apps: Any, schema_editor: Any) -> None:
    """Where nobody has made a rule yet; they can be changed, switched off and deleted like any other."""
    rules = apps.get_model("accounts", "AlertRule").objects
    if not rules.exists():
        for percent in (80, 100):
            rules.create(percent=percent, tell_owners=True, created_at=django.utils.timezone.now())


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_preferences_and_team_settings")]

    operations = [
        migrations.AlterField(
            model_name="alertrule",
            name="tell_owners",
            field=models.BooleanField(default=True, verbose_name="tell the team's owners and admins"),
        ),
        migrations.RunPython(add_rules, migrations.RunPython.noop),
    ]
