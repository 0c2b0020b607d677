"""The built-in voices, as rows."""

from __future__ import annotations

from synthesis.models import Voice
from synthesis.presets import CLONED, PRESETS


def seed() -> None:
    """Write the catalogue of `synthesis.presets`; a preset that left it is hidden, and its requests stay."""
    for preset in (*PRESETS, *CLONED):
        Voice.objects.update_or_create(
            team=None,
            engine=preset.engine,
            preset=preset.slug,
            defaults={
                "kind": Voice.Kind.PRESET,
                "name": preset.name,
                "language": preset.language,
                "gender": preset.gender,
                "style": preset.style,
                "deleted_at": None,
            },
        )
