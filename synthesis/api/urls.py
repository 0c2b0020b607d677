"""Addresses below /v1/ that concern speech."""

from django.urls import path

from synthesis.api import (
    batches,
    catalogue,
    elevenlabs,
    elevenlabs_library,
    openai_voices,
    progress,
    speech,
    syntheses,
    usage,
    voice_files,
    voice_versions,
    voices,
    webhooks,
)

urlpatterns = [
    path("webhooks", webhooks.WebhooksView.as_view(), name="api_webhooks"),
    path("webhooks/<str:webhook_id>", webhooks.WebhookView.as_view(), name="api_webhook"),
    path("webhooks/<str:webhook_id>/test", webhooks.WebhookTestView.as_view(), name="api_webhook_test"),
    path("webhooks/<str:webhook_id>/deliveries", webhooks.DeliveriesView.as_view(), name="api_deliveries"),
    path(
        "webhooks/<str:webhook_id>/deliveries/<str:delivery_id>/redeliver",
        webhooks.RedeliverView.as_view(),
        name="api_redeliver",
    ),
    path("usage", usage.UsageView.as_view(), name="api_usage"),
    path("models", catalogue.ModelsView.as_view(), name="api_models"),
    path("models/<str:model>", catalogue.ModelView.as_view(), name="api_model"),
    path("audio/speech", speech.SpeechView.as_view(), name="api_speech"),
    path("audio/voices", openai_voices.AudioVoicesView.as_view(), name="api_audio_voices"),
    path("audio/voices/<str:voice_id>", openai_voices.AudioVoiceView.as_view(), name="api_audio_voice"),
    path("audio/voice_consents", openai_voices.VoiceConsentsView.as_view(), name="api_voice_consents"),
    path(
        "audio/voice_consents/<str:consent_id>",
        openai_voices.VoiceConsentView.as_view(),
        name="api_voice_consent",
    ),
    path("voices", voices.VoicesView.as_view(), name="api_voices"),
    path("voices/import", voice_files.VoiceImportView.as_view(), name="api_voice_import"),
    path("voices/<str:voice_id>", voices.VoiceView.as_view(), name="api_voice"),
    path("voices/<str:voice_id>/sample", voices.VoiceSampleView.as_view(), name="api_voice_sample"),
    path(
        "voices/<str:voice_id>/versions",
        voice_versions.VoiceVersionsView.as_view(),
        name="api_voice_versions",
    ),
    path(
        "voices/<str:voice_id>/preview",
        voice_versions.VoicePreviewView.as_view(),
        name="api_voice_preview",
    ),
    path("voices/<str:voice_id>/export", voice_files.VoiceExportView.as_view(), name="api_voice_export"),
    path("syntheses", syntheses.SynthesesView.as_view(), name="api_syntheses"),
    path("syntheses/<str:synthesis_id>", syntheses.SynthesisView.as_view(), name="api_synthesis"),
    path(
        "syntheses/<str:synthesis_id>/cancel",
        syntheses.SynthesisCancelView.as_view(),
        name="api_synthesis_cancel",
    ),
    path(
        "syntheses/<str:synthesis_id>/audio",
        syntheses.SynthesisAudioView.as_view(),
        name="api_synthesis_audio",
    ),
    path(
        "syntheses/<str:synthesis_id>/peaks",
        syntheses.SynthesisPeaksView.as_view(),
        name="api_synthesis_peaks",
    ),
    path(
        "syntheses/<str:synthesis_id>/events",
        progress.SynthesisEventsView.as_view(),
        name="api_synthesis_events",
    ),
    path("batches", batches.BatchesView.as_view(), name="api_batches"),
    path("batches/<str:batch_id>", batches.BatchView.as_view(), name="api_batch"),
    path("batches/<str:batch_id>/rows", batches.BatchRowsView.as_view(), name="api_batch_rows"),
    path("batches/<str:batch_id>/cancel", batches.BatchCancelView.as_view(), name="api_batch_cancel"),
    path("batches/<str:batch_id>/retry", batches.BatchRetryView.as_view(), name="api_batch_retry"),
    path("batches/<str:batch_id>/zip", batches.BatchZipView.as_view(), name="api_batch_zip"),
    path("text-to-speech/<str:voice_id>", elevenlabs.TextToSpeechView.as_view(), name="api_text_to_speech"),
    path(
        "text-to-speech/<str:voice_id>/stream",
        elevenlabs.TextToSpeechStreamView.as_view(),
        name="api_text_to_speech_stream",
    ),
    path(
        "text-to-speech/<str:voice_id>/with-timestamps",
        elevenlabs.TextToSpeechWithTimestampsView.as_view(),
        name="api_text_to_speech_with_timestamps",
    ),
    path("user/subscription", elevenlabs_library.SubscriptionView.as_view(), name="api_subscription"),
    path("history", elevenlabs_library.HistoryView.as_view(), name="api_history"),
    path(
        "history/<str:history_item_id>",
        elevenlabs_library.HistoryItemView.as_view(),
        name="api_history_item",
    ),
    path(
        "history/<str:history_item_id>/audio",
        elevenlabs_library.HistoryAudioView.as_view(),
        name="api_history_audio",
    ),
]
