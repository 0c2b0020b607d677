"""Settings that are wrong are named when they are read."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://voice.example.org/", "https://voice.example.org"),
        ("https://voice.example.org:443", "https://voice.example.org"),
        ("https://voice.example.org:8443", "https://voice.example.org:8443"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_an_address_is_written_as_browsers_do(monkeypatch, given, origin):
    monkeypatch.setenv("CHORUS_BASE_URL", given)
    assert env.origin("CHORUS_BASE_URL", "") == origin


@pytest.mark.parametrize(
    "given", ["voice.example.org", "ftp://x", "https://", "https://x:y", "https://x/voice"]
)
def test_what_is_no_address_is_named(monkeypatch, given):
    monkeypatch.setenv("CHORUS_BASE_URL", given)
    with pytest.raises(ImproperlyConfigured, match="CHORUS_BASE_URL must look like https://"):
        env.origin("CHORUS_BASE_URL", "")
