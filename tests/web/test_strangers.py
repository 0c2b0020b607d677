"""Every address of the pages that names something of a team's, tried by the owner of another team.

The addresses come from the resolver, so that a new one is tried by itself; one whose parameter is new fails here until
somebody says what it may stand for.
"""

from __future__ import annotations

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from accounts.services import teams
from synthesis.models import Script, SettingsPreset
from synthesis.services import deliveries, webhooks
from tests import factories
from tests.synthesis.voicing import own as own_voice
from tests.web.conftest import HTMX
from tests.web.test_scripts import sent
from tests.web.test_steering import spoken

pytestmark = pytest.mark.django_db

#: Parameters that only choose among what belongs to the rest of the address.
CHOOSING = {"index": 0, "number": 1, "container": "mp3"}
#: The secret in these is all that they ask for: who has it may open them.
BY_SECRET = {"token", "uidb64", "slug"}
#: Subtitles are no sound.
CONTAINERS = {"request_subtitles": "srt", "script_subtitles": "srt"}
#: So that no form is refused for what it lacks before anybody looks whose the thing is.
FIELDS = {"role": "owner", "title": "Mine", "reason": "deceives"}


def _pages(patterns, prefix=""):
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _pages(pattern.url_patterns, address)
        elif isinstance(pattern, URLPattern) and not address.startswith(("v1/", "admin/", "docs/")):
            names = set(pattern.pattern.converters)
            if names and not names & BY_SECRET:
                yield pattern.name, names


PAGES = dict(_pages(get_resolver().url_patterns))


@pytest.fixture
def things(alice, bob, hibari, sign_in):
    """One of Alice's for each parameter."""
    hook = webhooks.create(actor=alice.actor, url="https://93.184.216.34/hook", events=["synthesis.failed"])
    request = spoken(alice)
    voices = factories.preset(), factories.preset("Aki", gender="male")
    assert sign_in(alice).post("/scripts/", sent(voices)).status_code == 302
    return {
        "request_id": request.id,
        "script_id": Script.objects.get().id,
        "preset_id": SettingsPreset.objects.create(
            team=alice.actor.team, user=alice.user, name="Newsreader", values={}
        ).id,
        "webhook_id": hook.id,
        "delivery_id": deliveries.ping(hook).id,
        "voice_id": own_voice(alice).id,
        "membership_id": bob.actor.membership.id,
        "key_id": alice.by_key.api_key.id,
        "invitation_id": teams.invite(
            actor=alice.actor, email="dora@example.org", role="member", accept_url="/invitations/{token}/"
        )[0].id,
    }


@pytest.mark.parametrize("name", sorted(PAGES))
def test_nothing_of_anothers_is_there(sign_in, things, charlie, name):
    """404 whatever the method, as for what does not exist; 405 where there is no such method."""
    values = things | CHOOSING | ({"container": CONTAINERS[name]} if name in CONTAINERS else {})
    address = reverse(name, kwargs={parameter: values[parameter] for parameter in PAGES[name]})
    stranger = sign_in(charlie)
    answers = [
        stranger.get(address).status_code,
        stranger.get(address, headers=HTMX).status_code,
        stranger.post(address, FIELDS).status_code,
        stranger.post(address, FIELDS, headers=HTMX).status_code,
    ]
    assert set(answers) <= {404, 405}
    assert 404 in answers


def test_each_is_there_for_its_owner(sign_in, things, alice):
    """What Charlie does not find exists: otherwise the test above would show nothing."""
    client = sign_in(alice)
    for name in ("request", "script", "webhook", "voice", "parts", "request_peaks"):
        address = reverse(
            name, kwargs={parameter: (things | CHOOSING)[parameter] for parameter in PAGES[name]}
        )
        assert client.get(address).status_code == 200, name
