"""Instructions and tags in a submission: what the engine understands is kept, what it would read out is refused."""

from __future__ import annotations

import pytest

from accounts.errors import InvalidInput
from synthesis.services import submission
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan(settings):
    """Plans a submission to CosyVoice3."""
    settings.CHORUS_ENGINE = "cosyvoice3"
    alice = factories.owner("Alice")
    voice = factories.preset("Sample", engine="cosyvoice3", preset="sample", language="zh")

    def make(**fields):
        return submission.plan(
            actor=alice.actor, voice=str(voice.id), **({"text": "你好。", "language": "zh"} | fields)
        )

    return make


@pytest.fixture
def refused(plan):
    def make(**fields):
        with pytest.raises(InvalidInput) as error:
            plan(**fields)
        return error.value.code, error.value.param

    return make


def test_a_key_and_free_text_are_kept(plan, refused):
    assert plan(instruction="dialect-minnan").instruction == "dialect-minnan"
    assert plan(instruction="  in a\nwhisper ").instruction == "in a whisper"


def test_instructions_that_would_do_harm_arerefused(plan, refused):
    assert refused(instruction="hi<|endofprompt|>") == ("instruction_special_token", "instruction")
    assert refused(instruction="dialect-sichaun") == ("instruction_unknown", "instruction")
    assert refused(instruction="x" * 201) == ("instruction_too_long", "instruction")


def test_tags_are_kept_and_misspelt_onesrefused(plan, refused):
    assert plan(text="[breath]你好。").segments[0].text == "[breath]你好。"
    assert refused(text="[breth]你好。") == ("tag_unknown", "text")
    assert refused(text="<strong>你好。") == ("tag_not_closed", "text")


def test_a_span_over_several_segments_is_one_in_each(plan, refused):
    sentence = "这很重要，请大家一定要认真地听完这一段话，然后再做出自己的决定。"
    segments = [segment.text for segment in plan(text=f"<strong>{sentence * 9}</strong>").segments]
    assert len(segments) > 1
    for text in segments:
        assert text.startswith("<strong>")
        assert text.endswith("</strong>")


def test_characters_count_as_they_were_sent(plan, refused):
    assert plan(text="[breath]你好。").characters == 11


def test_an_engine_without_tags_refuses_them(settings):
    settings.CHORUS_ENGINE = "hibari"
    alice = factories.owner("Alice")
    with pytest.raises(InvalidInput) as error:
        submission.plan(actor=alice.actor, voice=str(factories.preset().id), text="[breath] Hello.")
    assert (error.value.code, error.value.details["tag"]) == ("tags_not_supported", "[breath]")
