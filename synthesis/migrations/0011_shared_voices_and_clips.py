"""Voices that are not shared, several recordings of one voice, and where an imported one comes from."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('synthesis', '0011_batches'),
    ]

    operations = [
        migrations.AddField(
            model_name='voice',
            name='shared',
            field=models.BooleanField(db_default=True, default=True, verbose_name='shared with the team'),
        ),
        migrations.AddField(
            model_name='voiceversion',
            name='clips',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name='voiceversion',
            name='origin',
            field=models.JSONField(db_default={}, default=dict),
        ),
    ]
