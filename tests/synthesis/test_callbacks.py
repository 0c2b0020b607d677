"""`webhook` of a submission: what it is told, once, by whom it is signed, and who may look."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.redis import client as redis_client
from accounts.services import keys
from synthesis.models import Batch, Callback, Delivery, SigningSecret, SynthesisRequest
from synthesis.services import (
    batch_admission,
    batch_ends,
    batches,
    callbacks,
    deliveries,
    dispatch,
    requests,
    webhooks,
)
from tests import factories
from tests.accounts.test_outgoing import answer, serve
from tests.synthesis import batching, finished

pytestmark = pytest.mark.django_db

#: Deliveries are sent by threads, with connections of their own.
sends = pytest.mark.django_db(transaction=True)

URL = "/v1/syntheses"
SECRET = "/v1/webhooks/default/secret"
NOBODY = "http://127.0.0.1:1/hook"
ALL = list(callbacks.EVENTS)


@pytest.fixture(autouse=True)
def _surroundings(settings):
    redis_client().flushdb()
    settings.CHORUS_INTERNAL_WEBHOOKS = True
    settings.CHORUS_BASE_URL = "http://testserver"


@pytest.fixture
def alice():
    factories.preset()
    return factories.owner("Alice")


def _submit(client, person, webhook=NOBODY, **fields):
    body = {"text": "Hello there.", "voice": "Hibari", "webhook": webhook} | fields
    return client.post(URL, body, content_type="application/json", headers=person.headers)


def _row(response):
    assert response.status_code == 201, response.content
    return SynthesisRequest.objects.get(id=response.json()["id"])


def _error(response):
    error = response.json()["error"]
    return response.status_code, error["code"], error["param"]


def _events():
    return list(Callback.objects.order_by("id").values_list("event", flat=True))


def _is_signed(seen, *secrets):
    _method, _path, headers, body = seen
    (_t, moment), *given = (part.split("=") for part in headers["Chorus-Signature"].split(","))
    expected = [
        hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
        for secret in secrets
    ]
    return [digest for _v1, digest in given] == expected


class TestWhatIsTold:
    @sends
    def test_the_object_at_each_event_and_its_log(self, client, alice):
        with serve(answer()) as server:
            response = _submit(
                client, alice, f"{server.url}/hook?a=1", webhook_events_filter=ALL, title="Mine"
            )
            row = _row(response)
            made = response.json()
            assert (made["webhook"], made["webhook_events_filter"]) == (f"{server.url}/hook?a=1", ALL)
            claimed = finished.claim(row)
            dispatch.save_segment(claimed, index=0, audio_key="k", seconds=1.0, engine_seconds=0.5)
            SynthesisRequest.objects.filter(id=row.id).update(status="queued", lease_until=None)
            finished.succeed(row)
            assert deliveries.send_due() == 3
            assert deliveries.send_due() == 0
        told = {headers["Chorus-Event"]: json.loads(body) for _m, _p, headers, body in server.seen}
        assert {event: body["status"] for event, body in told.items()} == {
            "start": "running",
            "output": "running",
            "completed": "succeeded",
        }
        assert {path for _m, path, _h, _b in server.seen} == {"/hook?a=1"}
        assert told["output"]["segments_done"] == 1
        shown = client.get(f"{URL}/{row.id}", headers=alice.headers).json()
        # Deliveries are kept, and deleting a request removes its words.
        assert {shown["input"].pop(name) for name in ("text", "instruction")} == {"Hello there.", ""}
        assert told["completed"] == shown
        key = client.get(SECRET, headers=alice.headers).json()["key"]
        assert all(_is_signed(seen, key) for seen in server.seen)
        log = client.get(f"{URL}/{row.id}/deliveries", headers=alice.headers).json()["results"]
        assert [(one["event"], one["state"], one["response_status"]) for one in log] == [
            ("completed", "delivered", 200),
            ("output", "delivered", 200),
            ("start", "delivered", 200),
        ]
        assert log[0]["body"] == told["completed"]

    @pytest.mark.parametrize("end", [finished.fail, lambda row: dispatch.cancel(row.id)])
    def test_the_end_alone_unless_more_is_asked_for(self, client, alice, end):
        response = _submit(client, alice)
        assert response.json()["webhook_events_filter"] == ["completed"]
        end(_row(response))
        told = Callback.objects.get()
        shown = client.get(f"{URL}/{told.about}", headers=alice.headers).json()
        assert (told.event, told.body["error"]) == ("completed", shown["error"])

    def test_nothing_without_an_address(self, client, alice):
        response = _submit(client, alice, webhook=None)
        assert (response.json()["webhook"], response.json()["webhook_events_filter"]) == (None, [])
        finished.succeed(_row(response))
        assert not Callback.objects.exists()
        assert not SigningSecret.objects.exists()

    def test_a_start_is_told_once_and_made_good_when_a_process_died_before_it(
        self, client, alice, monkeypatch
    ):
        row = _row(_submit(client, alice, webhook_events_filter=["start"]))
        with monkeypatch.context() as patch:
            patch.setattr(callbacks, "started", lambda request: 1 / 0)  # killed right after the claim
            with pytest.raises(ZeroDivisionError):
                finished.claim(row)
        assert _events() == []
        for _claim in range(2):
            assert dispatch.abandon(worker="w1") == 1
            finished.claim(row)
        assert _events() == ["start"]

    def test_pieces_that_wait_are_told_together(self, client, alice):
        text = "This is the first sentence of them. " * 20
        row = _row(_submit(client, alice, text=text, webhook_events_filter=["output"]))
        claimed = finished.claim(row)

        def save(index):
            dispatch.save_segment(claimed, index=index, audio_key="k", seconds=1.0, engine_seconds=0.5)

        save(0)
        save(1)
        waiting = Callback.objects.get()
        assert waiting.body["segments_done"] == 2
        # Somebody is just sending it: what comes now is told by another.
        assert deliveries._take(Callback, waiting.id) is not None
        save(2)
        assert [one.body["segments_done"] for one in Callback.objects.order_by("id")] == [2, 3]

    def test_what_is_rolled_back_is_not_told_and_what_is_deleted_is(self, client, alice):
        row = _row(_submit(client, alice, title="Mine"))
        with transaction.atomic():
            dispatch.cancel(row.id)
            transaction.set_rollback(True)
        assert _events() == []
        requests.delete(actor=alice.actor, request_id=row.id)
        told = Callback.objects.get()
        assert (told.url, told.body["status"]) == (NOBODY, "canceled")
        assert SynthesisRequest.objects.get().webhook == ""

    @sends
    def test_it_is_tried_again_and_redirects_are_not_followed(self, client, alice):
        with serve(answer(302, Location="/elsewhere")) as server:
            finished.succeed(_row(_submit(client, alice, server.url)))
            assert deliveries.send_due() == 0
        assert len(server.seen) == 1
        told = Callback.objects.get()
        assert (told.state, told.attempts, told.response_status) == ("pending", 1, 302)
        assert timedelta(seconds=50) < told.next_attempt_at - timezone.now() < timedelta(seconds=70)
        Callback.objects.update(attempts=len(deliveries.BACK_OFF_MINUTES), next_attempt_at=timezone.now())
        deliveries.send_due()
        assert Callback.objects.get().state == "failed"
        Callback.objects.update(created_at=timezone.now() - deliveries.KEEP)
        assert deliveries.forget_old() == 1


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"webhook": "http://93.184.216.34/"}, "address_refused", "webhook"),
        ({"webhook": "https://10.0.0.1/"}, "address_refused", "webhook"),
        ({"webhook": "https://[::1]/"}, "address_refused", "webhook"),
        ({"webhook": "https://nobody.invalid/"}, "address_unknown", "webhook"),
        ({"webhook": "https://a:b@93.184.216.34/"}, "address_refused", "webhook"),
        ({"webhook": "https://" + "x" * 2000}, "invalid_value", "webhook"),
        ({"webhook": 5}, "invalid_value", "webhook"),
        ({"webhook": "https://93.184.216.34/", "webhook_events_filter": ["logs"]}, "event_unknown", None),
        ({"webhook": None, "webhook_events_filter": ["start"]}, "missing_field", "webhook"),
    ],
)
def test_a_wrong_field_is_named(client, alice, settings, fields, code, param):
    settings.CHORUS_INTERNAL_WEBHOOKS = False
    for query in ("", "?dry_run=true"):
        body = {"text": "Hello there.", "voice": "Hibari"} | fields
        response = client.post(f"{URL}{query}", body, content_type="application/json", headers=alice.headers)
        assert _error(response) == (400, code, param or "webhook_events_filter")
    assert not SynthesisRequest.objects.exists()


class TestSecret:
    @sends
    def test_it_stays_until_it_is_rotated_and_the_old_one_signs_for_a_day(self, client, alice):
        first = client.get(SECRET, headers=alice.headers)
        assert (first.status_code, first.headers["Cache-Control"]) == (200, "no-store")
        old = first.json()["key"]
        assert old.startswith("whsec_")
        assert client.get(SECRET, headers=alice.headers).json()["key"] == old
        rotated = client.post(SECRET, headers=alice.headers).json()
        assert rotated["key"] != old
        with serve(answer()) as server:
            finished.succeed(_row(_submit(client, alice, server.url)))
            deliveries.send_due()
            SigningSecret.objects.update(previous_until=timezone.now())
            finished.succeed(_row(_submit(client, alice, server.url)))
            deliveries.send_due()
        assert _is_signed(server.seen[0], rotated["key"], old)
        assert _is_signed(server.seen[1], rotated["key"])
        entry = AuditEntry.objects.get(action="webhook.secret_rotated")
        assert old not in str(entry.data)


class TestBatches:
    def _made(self, client, alice, **options):
        hook = webhooks.create(actor=alice.actor, url=NOBODY, events=["batch.completed"])
        return batching.made(client, alice, webhook=NOBODY, **options), hook

    def _told(self):
        return [
            [one.body for one in Callback.objects.order_by("id")],
            [one.body["data"] for one in Delivery.objects.order_by("id")],
        ]

    def test_its_end_is_told_once_to_both_and_again_after_a_retry(self, client, alice):
        batch, _hook = self._made(client, alice)
        assert batch["webhook"] == NOBODY
        one, two, three = batching.in_order()
        finished.succeed(one)
        finished.fail(two)
        assert batch_ends.tell() == 0
        finished.succeed(three)
        assert [batch_ends.tell(), batch_ends.tell()] == [1, 0]
        shown = batching.get(client, alice, batch)
        assert self._told() == [[shown], [shown]]
        assert (shown["status"], shown["counts"]["failed"]) == ("failed", 1)
        (logged,) = batching.get(client, alice, batch, "/deliveries")["results"]
        assert (logged["event"], logged["body"]) == ("completed", shown)
        batches.retry(actor=alice.actor, batch_id=Batch.objects.get().id)
        batch_admission.admit_waiting()
        assert batch_ends.tell() == 0
        finished.succeed(SynthesisRequest.objects.get(status="queued"))
        assert batch_ends.tell() == 1
        assert [body["status"] for body in self._told()[1]] == ["failed", "succeeded"]

    def test_a_process_that_dies_in_between_tells_nothing_twice(self, client, alice, monkeypatch):
        batch, _hook = self._made(client, alice)
        batches.cancel(actor=alice.actor, batch_id=Batch.objects.get().id)
        for place, name in [(deliveries, "tell"), (callbacks, "batch_ended")]:
            original = getattr(place, name)

            def dies(*args, original=original, **kwargs):
                original(*args, **kwargs)
                raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                patch.setattr(place, name, dies)
                with pytest.raises(KeyboardInterrupt):
                    batch_ends.tell()
            assert self._told() == [[], []]
        assert batch_ends.tell() == 1
        assert [len(told) for told in self._told()] == [1, 1]
        assert self._told()[0][0]["id"] == batch["id"]

    def test_a_deleted_one_has_ended_too(self, client, alice):
        self._made(client, alice)
        batches.delete(actor=alice.actor, batch_id=Batch.objects.get().id)
        assert [[body["status"] for body in told] for told in self._told()] == [["canceled"], ["canceled"]]

    def test_a_wrong_address(self, client, alice, settings):
        settings.CHORUS_INTERNAL_WEBHOOKS = False
        for options in ({}, {"dry_run": "true"}):
            response = batching.post(client, alice, webhook="https://10.0.0.1/", **options)
            assert _error(response) == (400, "address_refused", "webhook")
        assert batching.nothing_happened()


class TestWhoMay:
    def test_a_strangers(self, client, alice, charlie):
        row = _row(_submit(client, alice))
        batch = batching.made(client, alice, admit=False)
        for path in (f"{URL}/{row.id}", f"/v1/batches/{batch['id']}"):
            assert client.get(f"{path}/deliveries", headers=charlie.headers).status_code == 404
            assert client.get(f"{path}/deliveries").status_code == 401
            assert client.post(f"{path}/deliveries", headers=alice.headers).status_code == 405
        own = [client.get(SECRET, headers=person.headers).json()["key"] for person in (alice, charlie)]
        assert own[0] != own[1]

    def test_the_secret_is_for_who_manages_webhooks(self, client, alice):
        bob = factories.colleague(alice, "Bob")
        _key, narrow = keys.create(actor=alice.actor, name="narrow", scopes=["syntheses:read"])
        for method in ("get", "post"):
            send = getattr(client, method)
            assert send(SECRET).status_code == 401
            assert _error(send(SECRET, headers=bob.headers))[1] == "permission_denied"
            refused = send(SECRET, headers={"authorization": f"Bearer {narrow}"})
            assert _error(refused)[1] == "insufficient_scope"
        assert client.patch(SECRET, headers=alice.headers).status_code == 405
        assert client.get(SECRET, headers={"xi-api-key": alice.secret}).status_code == 200

    def test_what_does_not_exist(self, client, alice):
        for path in (URL, "/v1/batches"):
            assert client.get(f"{path}/nonsense/deliveries", headers=alice.headers).status_code == 404
