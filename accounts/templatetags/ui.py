"""What templates need beyond Django's own tags: icons, voice tones, durations."""

from __future__ import annotations

import hashlib
import math
import secrets
from datetime import datetime

from django import template
from django.conf import settings
from django.forms import BoundField
from django.templatetags.static import static
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

register = template.Library()

#: Tones defined in `speech.css` (`.tone-0` …).
TONES = 8
#: What every page needs; `config.static` joins each kind into one file.
SHEETS = [
    f"chorus/css/{name}.css"
    for name in ("tokens", "base", "layout", "forms", "components", "overlays", "speech", "studio")
]
JOINED_SHEET = "chorus/css/app.css"
SCRIPT = "chorus/js/app.js"


@register.simple_tag
def sheets() -> SafeString:
    """Links to the style sheets that every page has: to the joined one where it was made."""
    names = [JOINED_SHEET] if settings.CHORUS_STATIC_MANIFEST else SHEETS
    return format_html_join("\n  ", '<link rel="stylesheet" href="{}">', ((static(name),) for name in names))


@register.simple_tag
def icon(name: str, classes: str = "") -> SafeString:
    """The icon `name` of the sprite, hidden from screen readers: a word always stands beside it or in its button."""
    return format_html(
        '<svg class="icon icon-{} {}" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        name,
        classes,
        static("chorus/icons.svg"),
        name,
    )


@register.simple_tag
def once() -> SafeString:
    """The word of a form that costs something, so that it is done once however often it is sent."""
    return format_html('<input type="hidden" name="once" value="{}">', secrets.token_urlsafe(16))


@register.filter
def code(value: str) -> SafeString:
    """Plain text, with what stands between backticks as `<code>`."""
    made = [
        format_html("<code>{}</code>", part) if number % 2 else escape(part)
        for number, part in enumerate(value.split("`"))
    ]
    return mark_safe("".join(made))  # noqa: S308 (each part is escaped)


@register.filter
def tone(value: object) -> str:
    """The class of the colour that belongs to an id, always the same one."""
    return f"tone-{hashlib.sha256(str(value).encode()).digest()[0] % TONES}"


@register.filter
def initials(value: object) -> str:
    """One letter of a Chinese name, up to two of a Latin one, for an avatar."""
    words = str(value).replace("@", " ").replace(".", " ").split()
    if not words:
        return "?"
    first = words[0][0].upper()
    if len(words) == 1 or not first.isascii():
        return first
    return first + words[1][0].upper()


@register.filter
def clock(seconds: float | None) -> str:
    """Seconds as 0:07, 3:20 or 1:02:03."""
    if seconds is None:
        return ""
    whole = max(0, round(float(seconds)))
    hours, rest = divmod(whole, 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@register.filter
def about(seconds: float | None) -> str:
    """A wait in words, as rough as the estimate is: “a few seconds”, “about 40 seconds”, “about 3 minutes”."""
    if seconds is None:
        return ""
    if seconds < 5:
        return _("a few seconds")
    if seconds < 100:
        rounded = max(5, round(seconds / 5) * 5)
        return ngettext("about %(n)d second", "about %(n)d seconds", rounded) % {"n": rounded}
    if seconds < 5400:
        minutes = round(seconds / 60)
        return ngettext("about %(n)d minute", "about %(n)d minutes", minutes) % {"n": minutes}
    hours = round(seconds / 3600)
    return ngettext("about %(n)d hour", "about %(n)d hours", hours) % {"n": hours}


@register.filter
def when(value: datetime | None) -> str:
    """A moment as people say it: “just now”, “5 minutes ago”, “14:32” today, else the date."""
    if value is None:
        return ""
    seconds = (timezone.now() - value).total_seconds()
    if seconds < 60:
        return _("just now")
    if seconds < 3600:
        minutes = int(seconds // 60)
        return ngettext("%(n)d minute ago", "%(n)d minutes ago", minutes) % {"n": minutes}
    local = timezone.localtime(value)
    if local.date() == timezone.localtime().date():
        return date_format(local, "H:i")
    return date_format(
        local, "MONTH_DAY_FORMAT" if local.year == timezone.localtime().year else "DATE_FORMAT"
    )


@register.filter
def short_number(value: int | None) -> str:
    """1234 as 1,234, 48213 as 48K (4.8万 in Chinese), 1250000 as 1.3M (125万): for where there is little room."""
    if value is None:
        return ""
    if value < 10_000:
        return f"{value:,}"
    step = int(pgettext("thousands or ten thousands: 1000 or 10000", "1000"))
    if step == 10_000:
        return _trim(value / 10_000) + "万" if value < 100_000_000 else _trim(value / 100_000_000) + "亿"
    return _trim(value / 1_000) + "K" if value < 1_000_000 else _trim(value / 1_000_000) + "M"


def _trim(value: float) -> str:
    # Cut off, not rounded: 999,976 characters are not a thousand thousands.
    return (
        f"{math.floor(value * 10) / 10:.1f}".removesuffix(".0") if value < 100 else f"{math.floor(value):,}"
    )


@register.filter
def number(value: int | None) -> str:
    """An integer with separators of thousands."""
    return "" if value is None else f"{value:,}"


@register.inclusion_tag("parts/field.html")
def field(bound: BoundField, optional: bool = False) -> dict[str, object]:
    """A labelled form field with its help and its errors."""
    return {"field": bound, "optional": optional}


#: The first that is found names a browser; each of them calls itself by its forerunners' names as well.
_BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
)


@register.filter
def browser(agent: str) -> str:
    """A browser's name for itself, as people call it: “Firefox, Windows”."""
    names = [next((name for mark, name in known if mark in agent), "") for known in (_BROWSERS, _SYSTEMS)]
    if not names[1] and "Linux" in agent:
        names[1] = "Linux"
    return ", ".join(name for name in names if name) or _("A browser")
