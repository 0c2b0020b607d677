from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("synthesis", "0004_streamed"),
    ]

    operations = [
        migrations.AddField(
            model_name="worker",
            name="gpu_percent",
            field=models.PositiveSmallIntegerField(null=True, verbose_name="GPU load in percent"),
        ),
        migrations.AddField(
            model_name="worker",
            name="gpu_memory_bytes",
            field=models.PositiveBigIntegerField(null=True, verbose_name="GPU memory"),
        ),
    ]
