"""What the panel calls things: each column, fact and filter has a word in the reader's language."""

from __future__ import annotations

from django.urls import get_resolver
from django.utils import translation

from accounts.panel.modeladmin import WORDS, label_of
from accounts.panel.site import panel

#: Words that are the same in Chinese.
SAME = {"GPU", "ID", "Webhook", "PID"}


def test_every_label_is_chinese_for_chinese_readers():
    assert get_resolver().url_patterns  # which registers everything
    found = set()
    with translation.override("zh-hans"):
        for model, model_admin in panel()._registry.items():
            names = [
                *model_admin.facts,
                *(name for name in model_admin.list_display if isinstance(name, str)),
            ]
            labels = {name: str(label_of(name, model, model_admin)) for name in names}
            for name in model_admin.list_filter:
                if isinstance(name, str):
                    label = WORDS.get(name, model._meta.get_field(name).verbose_name)
                    labels[f"filter {name}"] = str(label)
            found |= {
                (model.__name__, name, label)
                for name, label in labels.items()
                if label.isascii() and label not in SAME
            }
    assert sorted(found) == []
