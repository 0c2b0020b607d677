"""Every string that users see has a Chinese translation, with the same placeholders."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.utils import translation

from accounts.management.commands import messages

PLACEHOLDER = re.compile(r"%\([a-z_]+\)[sd]|%%|\{[a-z_]*\}")


@pytest.fixture(scope="module")
def found():
    return messages.collect(settings.BASE_DIR)


@pytest.mark.parametrize("locale", messages.LOCALES)
def test_catalogue_is_up_to_date(found, locale):
    before = messages.load(messages.catalogue_path(settings.BASE_DIR, locale), locale)
    missing = messages.before_ids(found) - messages.before_ids(before)
    superfluous = messages.before_ids(before) - messages.before_ids(found)
    assert (missing, superfluous) == (set(), set()), "run `manage.py messages` and translate"


@pytest.mark.parametrize("locale", messages.LOCALES)
def test_everything_is_translated(locale):
    assert (
        messages.incomplete(messages.load(messages.catalogue_path(settings.BASE_DIR, locale), locale)) == []
    )


@pytest.mark.parametrize("locale", messages.LOCALES)
def test_placeholders_survive(locale):
    for message in messages.load(messages.catalogue_path(settings.BASE_DIR, locale), locale):
        if not message.id:
            continue
        sources = [message.id] if isinstance(message.id, str) else list(message.id)
        targets = [message.string] if isinstance(message.string, str) else list(message.string)
        # The last source is the plural; Chinese has one form for all numbers.
        wanted = set(PLACEHOLDER.findall(sources[-1])) | set(PLACEHOLDER.findall(sources[0]))
        for target in targets:
            assert set(PLACEHOLDER.findall(target)) == wanted, message.id


def test_collects_from_python_and_templates(found):
    ids = messages.before_ids(found)
    assert "There is nothing at this address, or it is not yours." in ids
    assert "Skip to the content" in ids
    assert "%(shown)s character" in ids


def test_chinese_is_served():
    for locale in messages.LOCALES:
        path = messages.catalogue_path(settings.BASE_DIR, locale)
        messages.compile_catalogue(messages.load(path, locale), path)
    with translation.override("zh-hans"):
        assert translation.gettext("Skip to the content") != "Skip to the content"
