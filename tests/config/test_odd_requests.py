"""What no client of ours sends, and somebody will: never a 500, and nothing guessed that costs something."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from synthesis.models import SynthesisRequest
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    factories.preset()
    return factories.owner("Alice")


def _code(answer):
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize("charset", ["base64", "rot13", "undefined", "utf-16", "no-such-thing"])
def test_the_address_is_utf_8_whatever_the_body_is_said_to_be(client, alice, charset):
    kind = f"application/json; charset={charset}"
    answer = client.generic("GET", "/v1/voices?search=云", b"", kind, headers=alice.headers)
    assert (answer.status_code, answer.json()["results"]) == (200, [])
    assert client.generic("GET", "/sign-in/?next=/x", b"", kind).status_code == 200
    form = client.generic(
        "POST", "/v1/voices", b"--x--", f"multipart/form-data; boundary=x; charset={charset}"
    )
    assert form.status_code == 401
    form = client.generic(
        "POST",
        "/v1/voices",
        b"--x--",
        f"multipart/form-data; boundary=x; charset={charset}",
        headers=alice.headers,
    )
    assert form.status_code == 400


@pytest.mark.parametrize(
    "parts",
    [
        {f"f{n}": SimpleUploadedFile("x.wav", b"x") for n in range(101)},
        {f"f{n}": "x" for n in range(1001)},
    ],
)
@pytest.mark.parametrize("path", ["/v1/voices", "/v1/batches", "/v1/audio/voices"])
def test_a_form_of_too_many_parts(client, alice, path, parts):
    assert _code(client.post(path, parts, headers=alice.headers)) == (400, "too_many_parts")


@pytest.mark.parametrize(
    "body",
    [
        '{"text": "Cheap.", "text": "Something else.", "voice": "Hibari"}',
        '{"text": "Hello.", "voice": "Hibari", "seed": %s}' % ("1" * 5000),
    ],
)
def test_json_that_can_be_read_in_two_ways_or_not_at_all(client, alice, body):
    answer = client.post("/v1/syntheses", body, content_type="application/json", headers=alice.headers)
    assert _code(answer) == (400, "malformed_json")
    assert "int_max_str_digits" not in answer.content.decode()
    assert not SynthesisRequest.objects.exists()


@pytest.mark.parametrize("query", ["dry_run=true&dry_run=false", "dry_run="])
def test_a_dry_run_that_is_not_quite_one_costs_nothing(client, alice, query):
    answer = client.post(
        f"/v1/syntheses?{query}",
        {"text": "Hello.", "voice": "Hibari"},
        content_type="application/json",
        headers=alice.headers,
    )
    assert answer.status_code == 400
    assert not SynthesisRequest.objects.exists()


def test_an_empty_idempotency_key_protects_nobody(client, alice):
    answer = client.post(
        "/v1/syntheses",
        {"text": "Hello.", "voice": "Hibari"},
        content_type="application/json",
        headers=alice.headers | {"Idempotency-Key": ""},
    )
    assert _code(answer) == (400, "idempotency_key_invalid")


@pytest.mark.parametrize("address", ["fe80::1%eth0", "::1%lo", "fe80::%1/64"])
def test_an_address_with_a_zone_is_none(client, alice, address):
    answer = client.post(
        "/v1/keys",
        {"name": "x", "allowed_ips": [address]},
        content_type="application/json",
        headers=alice.headers,
    )
    assert _code(answer) == (400, "address_invalid")


def test_ipv4_written_as_ipv6_is_ipv4(client, alice):
    fields = {"name": "x", "allowed_ips": ["::ffff:127.0.0.1", "::ffff:10.0.0.0/104"]}
    answer = client.post("/v1/keys", fields, content_type="application/json", headers=alice.headers)
    assert answer.json()["allowed_ips"] == ["127.0.0.1", "10.0.0.0/8"]
    secret = answer.json()["secret"]
    assert client.get("/v1/voices", headers={"xi-api-key": secret}).status_code == 200


def test_a_name_that_cannot_be_seen(client, alice):
    answer = client.post(
        "/v1/keys", {"name": "\u202e"}, content_type="application/json", headers=alice.headers
    )
    assert _code(answer) == (400, "name_invalid")


def test_a_batch_of_two_files(client, alice):
    files = [SimpleUploadedFile(name, b"text\nHello.") for name in ("a.csv", "b.csv")]
    answer = client.post("/v1/batches?voice=Hibari", {"file": files}, headers=alice.headers)
    assert _code(answer) == (400, "parameter_repeated")
    assert not SynthesisRequest.objects.exists()


def test_a_name_that_stands_twice_is_found_at_once(client, alice):
    names = ", ".join(f'"{number}": 0' for number in range(60_000))
    body = f'{{{names}, "59999": 0}}'
    answer = client.post("/v1/syntheses", body, content_type="application/json", headers=alice.headers)
    assert "“59999” stands there twice" in answer.content.decode()
