"""Forms of the studio and the voices. They only shape input; what is allowed is decided by the services."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from accounts.web.forms import Styled, offer
from synthesis.consent import Statement
from synthesis.engines import Capabilities, capabilities
from synthesis.languages import language_name
from synthesis.models import Format, Voice, VoiceVersion
from synthesis.services import submission


def engine() -> Capabilities:
    """What the engine of this installation can do."""
    return capabilities(settings.CHORUS_ENGINE)


class StudioForm(Styled, forms.Form):
    """What should be said, and how."""

    text = forms.CharField(
        label=_("Text to speak"),
        strip=False,
        required=False,
        widget=forms.Textarea(
            attrs={
                "class": "composer-text",
                "rows": 8,
                "placeholder": _("Type or paste what should be said…"),
                "spellcheck": "true",
                "autofocus": True,
            }
        ),
    )
    voice = forms.CharField(required=False)
    language = forms.ChoiceField(label=_("Language"), required=False)
    speed = forms.FloatField(
        label=_("Speed"),
        initial=1.0,
        widget=forms.NumberInput(attrs={"type": "range", "class": "slider", "step": "0.05"}),
    )
    format = forms.ChoiceField(
        label=_("Format"), choices=Format.choices, initial=Format.MP3, widget=forms.RadioSelect
    )
    instruction = forms.CharField(
        label=_("How it should be said"),
        required=False,
        help_text=_("For example: cheerful, a little slower; or: in Sichuan dialect."),
        widget=forms.TextInput,
    )

    seed = forms.IntegerField(
        label=_("Seed"),
        required=False,
        min_value=0,
        max_value=submission.SEED_MAX,
        help_text=_("The same seed says it the same way again. Empty: a new one each time."),
        widget=forms.NumberInput(attrs={"autocomplete": "off", "inputmode": "numeric"}),
    )
    stream = forms.BooleanField(label=_("Play while it is made"), required=False, initial=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        can = engine()
        offer(
            self,
            "language",
            [
                ("", _("As the text is written")),
                *((tag, language_name(tag)) for tag in can.languages),
            ],
        )
        self.fields["speed"].widget.attrs |= {"min": can.speed[0], "max": can.speed[1]}
        if not can.instructions:
            del self.fields["instruction"]
        if not can.seed:
            del self.fields["seed"]


class VoiceForm(Styled, forms.Form):
    """A new voice of the team's own."""

    audio = forms.FileField(
        label=_("Recording"),
        help_text=_("MP3, WAV, M4A, OGG, WebM or FLAC, or the sound of a video; 3 seconds to 10 minutes."),
        error_messages={
            "required": _("Choose a recording."),
            "empty": _("This file is empty. Choose another one."),
        },
        widget=forms.FileInput(attrs={"accept": "audio/*,video/*,.m4a,.opus,.flac"}),
    )
    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        error_messages={"required": _("Give the voice a name.")},
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    language = forms.ChoiceField(label=_("Language of the recording"))
    transcript = forms.CharField(
        label=_("What is said in it"),
        required=False,
        help_text=_("Word for word, if you have it: cloning becomes closer to the original."),
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    shared = forms.BooleanField(
        label=_("Share it with the whole team"),
        required=False,
        initial=True,
        help_text=_("Otherwise only you and those who manage the team see it."),
    )
    consent = forms.BooleanField(
        error_messages={
            "required": _("Without the consent of the person who speaks, a voice cannot be kept.")
        },
    )

    def __init__(self, *args: Any, statement: Statement, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: What is shown and agreed to.
        self.statement = statement
        self.fields["consent"].label = statement.text
        reader = (get_language() or "en").split("-")[0]
        spoken = [tag for tag in engine().languages if tag.split("-")[0] == reader]
        self.fields["language"].initial = spoken[0] if spoken else None
        offer(self, "language", [(tag, language_name(tag)) for tag in engine().languages])


class RecordAgainForm(VoiceForm):
    """Another recording of a voice that there is already: what the voice is called and whose it is stays."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("name", "language", "shared"):
            del self.fields[name]


class VoiceUpdateForm(Styled, forms.Form):
    """What can be changed about a voice of the team's own."""

    name = forms.CharField(label=_("Name"), max_length=100)
    language = forms.ChoiceField(label=_("Language of the recording"))
    gender = forms.ChoiceField(label=_("Gender"), choices=Voice.Gender.choices, required=False)
    transcript = forms.CharField(
        label=_("What is said in it"), required=False, widget=forms.Textarea(attrs={"rows": 3})
    )
    start = forms.FloatField(
        label=_("From (seconds)"), min_value=0, widget=forms.NumberInput(attrs={"step": "0.1"})
    )
    end = forms.FloatField(
        label=_("To (seconds)"), min_value=0, widget=forms.NumberInput(attrs={"step": "0.1"})
    )

    shared = forms.BooleanField(
        label=_("Share it with the whole team"),
        required=False,
        help_text=_("Otherwise only who made it and those who manage the team see it."),
    )

    def __init__(
        self, *args: Any, voice: Voice, version: VoiceVersion, may_share: bool, **kwargs: Any
    ) -> None:
        kwargs["initial"] = {
            "name": voice.name,
            "language": voice.language,
            "gender": voice.gender,
            "transcript": version.transcript,
            "start": round(version.window_start, 1),
            "end": round(version.window_end, 1),
            "shared": voice.shared,
        }
        super().__init__(*args, **kwargs)
        if not may_share:
            del self.fields["shared"]
        offer(self, "language", [(tag, language_name(tag)) for tag in engine().languages])
        for name in ("start", "end"):
            self.fields[name].widget.attrs["max"] = round(version.original_seconds, 1)

    def clean(self) -> dict[str, Any]:
        """The window ends after it begins."""
        values = super().clean() or {}
        start, end = values.get("start"), values.get("end")
        if start is not None and end is not None and end <= start:
            self.add_error("end", _("The end must lie after the beginning."))
        return values

    def changes(self) -> dict[str, Any]:
        """Only what differs from before, as the service takes it: what is not touched makes no new version."""
        values = {name: self.cleaned_data[name] for name in self.changed_data if name not in {"start", "end"}}
        if {"start", "end"} & set(self.changed_data):
            values["window"] = (self.cleaned_data["start"], self.cleaned_data["end"])
        return values
