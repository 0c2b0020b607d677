"""Batches for tests: submitted over the API, admitted as the sweep does."""

from __future__ import annotations

from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import LedgerEntry
from synthesis.models import Batch, SynthesisRequest
from synthesis.services import batch_admission, verification

URL = "/v1/batches"
CSV = "text,voice,title\nOne is here.,Hibari,First\nTwo is here.,Hibari,\nThree is here.,Hibari,Third\n"
CHARACTERS = len("One is here.") + len("Two is here.") + len("Three is here.")


def post(client, person, data=CSV, kind="text/csv", headers=None, **options):
    body = data.encode() if isinstance(data, str) else data
    return client.generic(
        "POST",
        URL,
        body,
        content_type=kind,
        headers=person.headers | (headers or {}),
        query_params=options,
    )


def form(client, person, data=CSV, name="lines.csv", **fields):
    body = data.encode() if isinstance(data, str) else data
    file = SimpleUploadedFile(name, body)
    return client.post(URL, {"file": file, **fields}, headers=person.headers)


def made(client, person, data=CSV, admit=True, **options):
    """A batch whose first rows are requests."""
    response = post(client, person, data, **options)
    assert response.status_code == 201, response.content
    if admit:
        batch_admission.admit_waiting()
    return response.json()


def get(client, person, batch, what=""):
    response = client.get(f"{URL}/{batch['id']}{what}", headers=person.headers)
    assert response.status_code == 200, response.content
    return response.json()


def error(response):
    error = response.json()["error"]
    return response.status_code, error["code"], error["param"]


def nothing_happened():
    return not (Batch.objects.exists() or SynthesisRequest.objects.exists() or LedgerEntry.objects.exists())


def accounts_are_right():
    assert verification.verify().is_clean


def in_order():
    return list(SynthesisRequest.objects.order_by("created_at", "id"))
