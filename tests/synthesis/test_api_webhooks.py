"""`/v1/webhooks`: create, list, show, change, delete, test, deliveries, redeliver."""

from __future__ import annotations

import json
import uuid

import pytest

from accounts import outgoing
from accounts.models import Role
from accounts.redis import client as redis_client
from accounts.services import keys
from synthesis.models import Delivery, Webhook
from synthesis.services import webhooks
from tests import factories
from tests.accounts.test_outgoing import answer, serve
from tests.synthesis import finished

pytestmark = pytest.mark.django_db

URL = "/v1/webhooks"
ADDRESS = "http://127.0.0.1:1/hook"


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch):
    redis_client().flushdb()
    monkeypatch.setattr(outgoing, "_is_public", lambda address: address == "127.0.0.1")


def _send(client, method, path, person, **fields):
    body = json.dumps(fields)
    return getattr(client, method)(path, body, content_type="application/json", headers=person.headers)


def _create(client, person, **fields):
    return _send(client, "post", URL, person, **({"url": ADDRESS, "events": ["synthesis.failed"]} | fields))


def _error(response):
    error = response.json()["error"]
    return response.status_code, error["code"], error["param"]


def _delivery(person):
    webhook = webhooks.create(actor=person.actor, url=ADDRESS, events=["synthesis.succeeded"])
    finished.succeed(factories.submit(person))
    return webhook, Delivery.objects.get()


def test_create_show_change_and_delete(client, alice):
    response = _create(client, alice)
    assert response.status_code == 201
    body = response.json()
    assert body.pop("secret").startswith("whsec_")
    assert (body["url"], body["events"], body["enabled"]) == (ADDRESS, ["synthesis.failed"], True)
    one = f"{URL}/{body['id']}"
    assert client.get(one, headers=alice.headers).json() == body
    changed = _send(client, "patch", one, alice, events=["synthesis.succeeded"], enabled=False).json()
    assert (changed["events"], changed["enabled"]) == (["synthesis.succeeded"], False)
    assert _send(client, "patch", one, alice, enabled=True).json()["enabled"] is True
    assert client.delete(one, headers=alice.headers).status_code == 204
    assert client.get(one, headers=alice.headers).status_code == 404


def test_list(client, alice, charlie):
    for _i in range(3):
        _create(client, alice)
    assert len(client.get(URL, headers=alice.headers).json()["results"]) == 3
    assert client.get(URL, headers=charlie.headers).json()["results"] == []


def test_a_team_has_so_many(client, alice, monkeypatch):
    monkeypatch.setattr(webhooks, "MOST", 1)
    assert _create(client, alice).status_code == 201
    assert _error(_create(client, alice))[:2] == (409, "webhook_limit_reached")


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"url": None}, "missing_field", "url"),
        ({"url": "ftp://example.org/"}, "address_refused", "url"),
        ({"url": "http://10.0.0.1/"}, "address_refused", "url"),
        ({"url": "http://[::1]/"}, "address_refused", "url"),
        ({"url": "http://nobody.invalid/"}, "address_unknown", "url"),
        ({"url": "http://a:b@127.0.0.1/"}, "address_refused", "url"),
        ({"url": "http://127.0.0.1:0/"}, "address_refused", "url"),
        ({"url": "http://127.0.0.1:25/"}, "address_refused", "url"),
        ({"url": "x" * 2001}, "invalid_value", "url"),
        ({"events": None}, "missing_field", "events"),
        ({"events": []}, "event_missing", "events"),
        ({"events": ["everything"]}, "event_unknown", "events"),
        ({"events": "synthesis.failed"}, "invalid_value", "events"),
    ],
)
def test_a_wrong_field_is_named(client, alice, fields, code, param):
    assert _error(_create(client, alice, **fields)) == (400, code, param)
    assert not Webhook.objects.exists()


def test_a_wrong_change_is_named(client, alice):
    one = f"{URL}/{_create(client, alice).json()['id']}"
    assert _error(_send(client, "patch", one, alice, url="http://10.0.0.1/"))[2] == "url"
    assert _error(_send(client, "patch", one, alice, events=[]))[2] == "events"
    assert _error(_send(client, "patch", one, alice, enabled="perhaps"))[2] == "enabled"


class TestTest:
    @pytest.mark.parametrize(("status", "state"), [(200, "delivered"), (500, "failed"), (302, "failed")])
    def test_what_came_back(self, client, alice, status, state):
        with serve(answer(status)) as server:
            one = _create(client, alice, url=server.url).json()
            body = _send(client, "post", f"{URL}/{one['id']}/test", alice).json()
        assert (body["event"], body["state"], body["response_status"]) == ("ping", state, status)
        assert json.loads(server.seen[0][3])["type"] == "ping"
        # A test says nothing of how the webhook does.
        assert Webhook.objects.get().failing_since is None

    def test_nobody_there(self, client, alice):
        one = _create(client, alice).json()
        body = _send(client, "post", f"{URL}/{one['id']}/test", alice).json()
        assert (body["state"], body["response_status"]) == ("failed", None)
        assert body["error"]


class TestDeliveries:
    def test_the_log(self, client, alice):
        webhook, delivery = _delivery(alice)
        (body,) = client.get(f"{URL}/{webhook.id}/deliveries", headers=alice.headers).json()["results"]
        assert (body["id"], body["event"], body["state"]) == (
            str(delivery.id),
            "synthesis.succeeded",
            "pending",
        )
        assert body["body"]["id"] == body["event_id"]

    def test_once_more(self, client, alice):
        webhook, old = _delivery(alice)
        Delivery.objects.update(state="failed", next_attempt_at=None)
        url = f"{URL}/{webhook.id}/deliveries/{old.id}/redeliver"
        response = _send(client, "post", url, alice)
        assert response.status_code == 202
        new = Delivery.objects.exclude(id=old.id).get()
        assert (new.event_id, new.body, new.state) == (old.event_id, old.body, "pending")

    def test_not_to_one_that_is_disabled(self, client, alice):
        webhook, old = _delivery(alice)
        webhooks.update(actor=alice.actor, webhook_id=webhook.id, enabled=False)
        url = f"{URL}/{webhook.id}/deliveries/{old.id}/redeliver"
        assert _error(_send(client, "post", url, alice))[:2] == (409, "webhook_disabled")

    @pytest.mark.parametrize("identifier", [uuid.uuid4(), "nonsense"])
    def test_one_that_does_not_exist(self, client, alice, identifier):
        webhook, _old = _delivery(alice)
        url = f"{URL}/{webhook.id}/deliveries/{identifier}/redeliver"
        assert _error(_send(client, "post", url, alice))[:2] == (404, "delivery_not_found")


#: Every route of one webhook, with its method.
ROUTES = [
    ("get", ""),
    ("patch", ""),
    ("delete", ""),
    ("post", "/test"),
    ("get", "/deliveries"),
    ("post", "/deliveries/{delivery}/redeliver"),
]


class TestWhoMay:
    @pytest.mark.parametrize(("method", "what"), ROUTES)
    def test_a_strangers(self, client, alice, charlie, method, what):
        webhook, delivery = _delivery(alice)
        url = f"{URL}/{webhook.id}{what.format(delivery=delivery.id)}"
        body = None if method == "get" else "{}"
        response = getattr(client, method)(
            url, body, content_type="application/json", headers=charlie.headers
        )
        assert _error(response)[:2] == (404, "webhook_not_found")
        assert Delivery.objects.count() == 1

    @pytest.mark.parametrize(("method", "what"), ROUTES)
    def test_no_key_and_what_does_not_exist(self, client, alice, method, what):
        url = f"{URL}/nonsense{what.format(delivery=uuid.uuid4())}"
        assert getattr(client, method)(url).status_code == 401
        response = getattr(client, method)(url, content_type="application/json", headers=alice.headers)
        assert response.status_code == 404

    def test_a_member_is_no_admin(self, client, alice):
        for role in (Role.MEMBER, Role.VIEWER):
            bob = factories.colleague(alice, f"Bob {role}".replace(" ", ""))
            bob.actor.membership.role = role
            bob.actor.membership.save()
            assert _error(_create(client, bob))[:2] == (403, "permission_denied")
            assert client.get(URL, headers=bob.headers).status_code == 403

    def test_a_key_without_the_scope_and_wrong_method(self, client, alice):
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["voices:read"])
        response = client.get(URL, headers={"authorization": f"Bearer {secret}"})
        assert _error(response)[:2] == (403, "insufficient_scope")
        assert client.patch(URL, headers=alice.headers).status_code == 405


def test_an_idempotency_key_is_refused_since_the_secret_is_kept_nowhere(client, alice):
    body = json.dumps({"url": ADDRESS, "events": ["synthesis.failed"]})
    headers = alice.headers | {"idempotency-key": "k"}
    response = client.post(URL, body, content_type="application/json", headers=headers)
    assert _error(response) == (400, "idempotency_not_supported", "Idempotency-Key")
    assert not Webhook.objects.exists()
