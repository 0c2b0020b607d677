"""Addresses of the pages about speech."""

from django.urls import path

from synthesis.web import audio, live, misuse, requests, studio, voices

urlpatterns = [
    path("", studio.studio, name="studio"),
    path("events/", live.stream, name="events"),
    path("requests/", studio.submit, name="submit"),
    path("requests/<uuid:request_id>/", requests.detail, name="request"),
    path("requests/<uuid:request_id>/card/", requests.card, name="request_card"),
    path("requests/<uuid:request_id>/cancel/", requests.cancel, name="request_cancel"),
    path("requests/<uuid:request_id>/delete/", requests.delete, name="request_delete"),
    path("requests/<uuid:request_id>/audio/", audio.request_audio, name="request_audio"),
    path("history/", requests.history, name="history"),
    path("voices/", voices.voices, name="voices"),
    path("voices/new/", voices.new, name="voice_new"),
    path("voices/check/", voices.check, name="voice_check"),
    path("voices/<uuid:voice_id>/", voices.detail, name="voice"),
    path("voices/<uuid:voice_id>/delete/", voices.delete, name="voice_delete"),
    path("voices/<uuid:voice_id>/report/", misuse.report, name="voice_report"),
    path("voices/<uuid:voice_id>/sample/", audio.voice_sample, name="voice_sample"),
    path("voices/<uuid:voice_id>/original/", audio.voice_original, name="voice_original"),
]
