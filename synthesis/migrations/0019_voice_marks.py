"""Tags and favourites of voices, and which text of the consent was agreed to."""

import accounts.ids
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0006_preferences_and_team_settings'),
        ('synthesis', '0018_fair_shares'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='voiceversion',
            name='consent_language',
            field=models.CharField(blank=True, db_default='', default='', max_length=16),
        ),
        migrations.AddField(
            model_name='voiceversion',
            name='consent_version',
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name='VoiceFavourite',
            fields=[
                ('id', models.UUIDField(default=accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('voice', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='favourites', to='synthesis.voice')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'voice'), name='voice_favourite_once')],
            },
        ),
        migrations.CreateModel(
            name='VoiceTag',
            fields=[
                ('id', models.UUIDField(default=accounts.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=40)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.team')),
                ('voice', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tags', to='synthesis.voice')),
            ],
            options={
                'constraints': [models.UniqueConstraint(models.F('team'), models.F('voice'), django.db.models.functions.text.Lower('name'), name='voice_tag_once')],
            },
        ),
    ]
