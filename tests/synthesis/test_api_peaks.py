"""`/v1/syntheses/{id}/peaks`: the outline of the sound."""

from __future__ import annotations

import io
import uuid

import numpy as np
import pytest
import soundfile

from synthesis import storage
from tests import factories
from tests.synthesis import finished

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(alice):
    """Two seconds: the first soft, the second loud."""
    row = finished.succeed(factories.submit(alice))
    time = np.arange(24_000) / 24_000
    tone = np.sin(2 * np.pi * 220 * time)
    data = io.BytesIO()
    soundfile.write(data, np.concatenate([0.1 * tone, 0.8 * tone]), 24_000, format="FLAC")
    key = storage.segment_key(row, 0)
    storage.put(key, data.getvalue(), "audio/flac")
    row.segments.update(audio_key=key)
    return row


def _url(row, query=""):
    return f"/v1/syntheses/{getattr(row, 'id', row)}/peaks{query}"


def _error(response):
    return response.status_code, response.json()["error"]["code"]


def test_the_outline(client, alice, row):
    body = client.get(_url(row, "?count=20"), headers=alice.headers).json()
    assert body["seconds"] == row.output.seconds
    assert len(body["peaks"]) == 20
    assert body["peaks"][4] == pytest.approx(0.1, abs=0.01)
    assert body["peaks"][15] == pytest.approx(0.8, abs=0.01)
    assert len(client.get(_url(row), headers=alice.headers).json()["peaks"]) in range(150, 801)


def test_it_is_measured_once(client, alice, row, monkeypatch):
    first = client.get(_url(row), headers=alice.headers).json()
    row.segments.update(audio_key="")
    assert client.get(_url(row), headers=alice.headers).json() == first


def test_one(client, alice, row):
    assert len(client.get(_url(row, "?count=1"), headers=alice.headers).json()["peaks"]) == 1


@pytest.mark.parametrize("count", ["0", "10001", "x", "-1"])
def test_a_wrong_count(client, alice, row, count):
    response = client.get(_url(row, f"?count={count}"), headers=alice.headers)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "count")


def test_before_and_after_there_is_sound(client, alice, row):
    assert _error(client.get(_url(factories.submit(alice)), headers=alice.headers)) == (409, "not_ready")
    row.segments.update(audio_key="")
    assert _error(client.get(_url(row), headers=alice.headers)) == (410, "output_expired")
    row.output.delete()
    assert _error(client.get(_url(row), headers=alice.headers)) == (410, "output_expired")


def test_who_may(client, alice, row):
    charlie = factories.owner("Charlie")
    assert client.get(_url(row)).status_code == 401
    assert _error(client.get(_url(row), headers=charlie.headers)) == (404, "synthesis_not_found")
    assert client.get(_url(uuid.uuid4()), headers=alice.headers).status_code == 404
    assert client.post(_url(row), headers=alice.headers).status_code == 405
