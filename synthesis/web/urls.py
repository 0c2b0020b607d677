"""Addresses of the pages about speech."""

from django.urls import path

from synthesis.web import (
    audio,
    history,
    live,
    misuse,
    requests,
    settings_presets,
    steering,
    studio,
    takes,
    voices,
)

urlpatterns = [
    path("", studio.studio, name="studio"),
    path("events/", live.stream, name="events"),
    # Below /events, which every front sends to the process that may wait.
    path("events/requests/<uuid:request_id>/stream/", live.sound, name="request_live"),
    path("studio/outline/", steering.outline, name="studio_outline"),
    path("studio/readings/", steering.readings, name="studio_readings"),
    path("studio/settings/", settings_presets.save, name="settings_preset_save"),
    path("studio/settings/<uuid:preset_id>/delete/", settings_presets.delete, name="settings_preset_delete"),
    path("requests/", studio.submit, name="submit"),
    path("requests/<uuid:request_id>/", requests.detail, name="request"),
    path("requests/<uuid:request_id>/card/", requests.card, name="request_card"),
    path("requests/<uuid:request_id>/cancel/", requests.cancel, name="request_cancel"),
    path("requests/<uuid:request_id>/delete/", requests.delete, name="request_delete"),
    path("requests/<uuid:request_id>/audio/", audio.request_audio, name="request_audio"),
    path(
        "requests/<uuid:request_id>/audio.<str:container>", audio.request_converted, name="request_converted"
    ),
    path(
        "requests/<uuid:request_id>/subtitles.<str:container>",
        audio.request_subtitles,
        name="request_subtitles",
    ),
    path("requests/<uuid:request_id>/peaks/", audio.request_peaks, name="request_peaks"),
    path("requests/<uuid:request_id>/parts/", takes.parts, name="parts"),
    path("requests/<uuid:request_id>/parts/<int:index>/again/", takes.again, name="part_again"),
    path("requests/<uuid:request_id>/parts/<int:index>/take/", takes.choose, name="part_choose"),
    path("requests/<uuid:request_id>/parts/<int:index>/sound/", takes.first_sound, name="part_sound"),
    path("requests/<uuid:request_id>/favourite/", history.favourite, name="request_favourite"),
    path("requests/<uuid:request_id>/title/", history.title, name="request_title"),
    path("history/", history.history, name="history"),
    path("history/download/", history.download, name="history_download"),
    path("history/delete/", history.delete, name="history_delete"),
    path("voices/", voices.voices, name="voices"),
    path("voices/new/", voices.new, name="voice_new"),
    path("voices/check/", voices.check, name="voice_check"),
    path("voices/<uuid:voice_id>/", voices.detail, name="voice"),
    path("voices/<uuid:voice_id>/delete/", voices.delete, name="voice_delete"),
    path("voices/<uuid:voice_id>/report/", misuse.report, name="voice_report"),
    path("voices/<uuid:voice_id>/sample/", audio.voice_sample, name="voice_sample"),
    path("voices/<uuid:voice_id>/original/", audio.voice_original, name="voice_original"),
]
