"""What pages of other parts want to know about speech."""

from __future__ import annotations

from django import template
from django.template.context import Context
from django.utils.translation import get_language

from accounts.actors import Actor
from synthesis.models import Voice

register = template.Library()


@register.simple_tag(takes_context=True)
def example_voice(context: Context) -> str:
    """The name of a voice for examples: one that speaks the reader's language where there is one."""
    actor: Actor = context["request"].actor
    voices = Voice.objects.usable(actor).filter(kind=Voice.Kind.PRESET).order_by("language", "name")
    reader = (get_language() or "en").split("-")[0]
    found = voices.filter(language__startswith=reader).first() or voices.first()
    return found.name if found else ""
