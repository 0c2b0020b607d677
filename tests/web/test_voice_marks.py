"""Tags, favourites, who uses a voice, what depends on it, and the words of the consent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from synthesis import consent
from synthesis.models import (
    Script,
    SettingsPreset,
    SynthesisRequest,
    Voice,
    VoiceFavourite,
    VoiceTag,
    VoiceVersion,
)
from synthesis.services import dispatch
from tests import factories
from tests.synthesis.voicing import own as own_voice
from tests.web.conftest import HTMX
from tests.web.test_voices import values

pytestmark = pytest.mark.django_db


@pytest.fixture
def mine(alice, hibari):
    return own_voice(alice, "Mine")


def tag(client, voice, **sent):
    return client.post(f"/voices/{voice.id}/tags/", sent, headers=HTMX)


class TestTags:
    def test_of_the_teams_own_and_of_a_preset(self, sign_in, alice, bob, charlie, mine, hibari):
        client = sign_in(alice)
        assert tag(client, mine, add=" Narration,  客户 A，narration ").status_code == 200
        assert tag(sign_in(bob), hibari, add="narration").status_code == 200
        assert list(VoiceTag.objects.filter(voice=mine).order_by("id").values_list("name", flat=True)) == [
            "Narration",
            "客户 A",
        ]
        assert VoiceTag.objects.get(voice=hibari).name == "Narration", "as the team writes it"
        page = client.get(f"/voices/{hibari.id}/").content.decode()
        assert "Remove the tag “Narration”" in page
        assert "客户 A" in page, "offered"
        theirs = sign_in(charlie).get(f"/voices/{hibari.id}/").content.decode()
        assert "Narration" not in theirs
        assert AuditEntry.objects.filter(action="voice.tagged").count() == 2

    def test_they_find_voices(self, sign_in, alice, mine, hibari):
        client = sign_in(alice)
        tag(client, mine, add="narration, calm")
        tag(client, hibari, add="narration")
        assert "Mine" not in client.get("/voices/?tag=nothing").content.decode()
        both = client.get("/voices/?tag=narration").content.decode()
        assert 'value="narration" checked' in both
        assert ">Mine<" in both
        assert ">Hibari<" in both
        one = client.get("/voices/?tag=narration&tag=calm").content.decode()
        assert ">Hibari<" not in one
        assert ">Mine<" in client.get("/voices/?q=CALM").content.decode()
        assert ">Mine<" in client.get("/voices/?q=english").content.decode(), "by language"
        assert "narration" in client.get("/").content.decode(), "in the studio as well"

    def test_one_is_taken_away(self, sign_in, alice, mine):
        client = sign_in(alice)
        tag(client, mine, add="a, b")
        assert client.post(f"/voices/{mine.id}/tags/", {"remove": "a"}).url == f"/voices/{mine.id}/"
        assert VoiceTag.objects.get(voice=mine).name == "b"

    @pytest.mark.parametrize("add", ["x" * 41, "a\x07", ",".join(str(n) for n in range(21))])
    def test_what_is_no_tag(self, sign_in, alice, mine, add):
        answer = tag(sign_in(alice), mine, add=add)
        assert (answer.status_code, answer.headers["HX-Reswap"]) == (422, "outerHTML")
        assert 'role="alert"' in answer.content.decode()
        assert not VoiceTag.objects.exists()

    def test_who_may(self, sign_in, vera, charlie, mine):
        assert tag(sign_in(vera), mine, add="a").status_code == 403
        assert tag(sign_in(charlie), mine, add="a").status_code == 404
        assert "Add tags" not in sign_in(vera).get(f"/voices/{mine.id}/").content.decode()


class TestFavourites:
    def test_of_one_person(self, sign_in, alice, bob, mine, hibari):
        client = sign_in(alice)
        path = f"/voices/{hibari.id}/favourite/"
        for _again in range(2):
            assert 'aria-pressed="true"' in client.post(path, {"wanted": "1"}, headers=HTMX).content.decode()
        found = client.get("/voices/?favourites=1").content.decode()
        assert ">Hibari<" in found
        assert ">Mine<" not in found
        assert "data-favourite" in client.get("/").content.decode()
        assert "No voice matches" in sign_in(bob).get("/voices/?favourites=1").content.decode()
        client.post(path, {"wanted": "0"})
        assert not VoiceFavourite.objects.exists()

    def test_a_strangers_voice(self, sign_in, charlie, mine):
        assert sign_in(charlie).post(f"/voices/{mine.id}/favourite/", {"wanted": "1"}).status_code == 404
        assert not VoiceFavourite.objects.exists()


class TestUse:
    @pytest.fixture
    def used(self, alice, bob, charlie, hibari):
        """Alice by a key, long ago; Bob by a key; Charlie, who is in another team."""
        old = factories.submit(alice, "Long ago.")
        SynthesisRequest.objects.filter(id=old.id).update(created_at=timezone.now() - timedelta(days=60))
        for _number in range(2):
            factories.submit(bob, "A text of Bob.")
        factories.submit(charlie, "A text of Charlie.")
        return hibari

    def test_in_the_last_days(self, sign_in, alice, used):
        client = sign_in(alice)
        page = client.get(f"/voices/{used.id}/").content.decode()
        assert "<td>Bob</td>" in page
        assert "test key" in page
        assert "<td>Alice</td>" not in page
        assert "<td>Charlie</td>" not in page
        assert "<td>Alice</td>" in client.get(f"/voices/{used.id}/?days=90").content.decode()

    def test_anothers_key_is_not_named(self, sign_in, vera, used):
        page = sign_in(vera).get(f"/voices/{used.id}/").content.decode()
        assert "An API key" in page
        assert "test key" not in page

    def test_nobody(self, sign_in, alice, mine):
        assert "Nobody in your team" in sign_in(alice).get(f"/voices/{mine.id}/").content.decode()


class TestDelete:
    def test_what_depends_on_it_is_told(self, sign_in, alice, mine):
        client = sign_in(alice)
        page = client.get(f"/voices/{mine.id}/delete/").content.decode()
        assert "Nothing waits for it" in page
        factories.submit(alice, voice=str(mine.id))
        done = factories.submit(alice, voice=str(mine.id))
        dispatch.cancel(done.id)
        Script.objects.create(
            team=alice.actor.team, user=alice.user, title="A scene", cast={"Anna": str(mine.id)}
        )
        SettingsPreset.objects.create(
            team=alice.actor.team, user=alice.user, name="News", values={"voice": str(mine.id)}
        )
        alice.actor.team.default_voice = mine.id
        alice.actor.team.save()
        page = client.get(f"/voices/{mine.id}/delete/").content.decode()
        for words in (
            "1 request is waiting for it",
            "1 script has it in its cast",
            "A scene",
            "1 saved setting",
            "newcomers",
            "<td>Alice</td>",
        ):
            assert words in page
        assert client.post(f"/voices/{mine.id}/delete/").url == "/voices/"
        mine.refresh_from_db()
        assert mine.deleted_at

    def test_a_preset_is_not_deleted(self, sign_in, alice, hibari):
        assert sign_in(alice).get(f"/voices/{hibari.id}/delete/").status_code == 403
        assert sign_in(alice).post(f"/voices/{hibari.id}/delete/").status_code == 403


class TestConsent:
    def test_as_it_was_shown(self, sign_in, alice, hibari):
        client = sign_in(alice)
        page = client.get("/voices/new/", headers={"accept-language": "zh-hans"}).content.decode()
        chinese = next(one for one in consent.STATEMENTS if one.language == "zh-Hans")
        assert chinese.text in page
        assert f'value="{chinese.key}"' in page
        # The reader changes the language in another tab: what counts is what this form showed.
        answer = client.post("/voices/new/", values(statement=chinese.key), headers={"accept-language": "en"})
        made = Voice.objects.get(name="Jane")
        assert answer.url == f"/voices/{made.id}/"
        version = made.current_version
        assert (version.consent_statement, version.consent_language, version.consent_version) == (
            chinese.text,
            "zh-Hans",
            chinese.version,
        )
        agreed = AuditEntry.objects.get(action="voice.created").data
        assert (agreed["consent"], agreed["consent_language"]) == (chinese.text, "zh-Hans")
        assert 'lang="zh-Hans"' in client.get(f"/voices/{made.id}/").content.decode()

    def test_words_that_are_new_since(self, sign_in, alice, hibari):
        answer = sign_in(alice).post("/voices/new/", values(statement="en/0"), headers=HTMX)
        assert answer.status_code == 422
        assert "These words are new" in answer.content.decode()
        assert not Voice.objects.filter(name="Jane").exists()

    def test_records_from_before_stay(self, sign_in, alice, mine):
        page = sign_in(alice).get(f"/voices/{mine.id}/").content.decode()
        assert "“I agree.”" in page
        assert VoiceVersion.objects.get(voice=mine).consent_version is None

    def test_each_text_is_fixed(self):
        """What is agreed to is never edited: a better text gets the next number, and a line here."""
        assert [(one.key, one.text) for one in consent.STATEMENTS] == [
            (
                "en/1",
                "This is my own voice, or I have the speaker's permission to clone it and to use it for what my team "
                "makes.",
            ),
            (
                "zh-Hans/1",
                "这是我本人的声音，或者我已获得说话人的许可，可以克隆其声音，并用于我所在团队制作的内容。",
            ),
        ]
