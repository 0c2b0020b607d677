"""Forms that come in chunks, without a length: taken by both kinds of process, and bounded."""

from __future__ import annotations

import io

import pytest
from django.core.wsgi import get_wsgi_application

from accounts.redis import client as redis_client
from config.bodies import measured
from synthesis.models import Batch
from tests import asgi, factories

pytestmark = pytest.mark.django_db(transaction=True)

BATCHES = "/v1/batches"
FORM = (
    b'--xyz\r\nContent-Disposition: form-data; name="voice"\r\n\r\nHibari\r\n'
    b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\ntext\nHello.\n\r\n--xyz--\r\n'
)
KIND = "multipart/form-data; boundary=xyz"


@pytest.fixture(scope="module")
def streams(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), asgi.serve() as running:
        yield running


@pytest.fixture
def alice():
    redis_client().flushdb()
    factories.preset()
    return factories.owner("Alice")


async def _pieces(body, size=100):
    for start in range(0, len(body), size):
        yield body[start : start + size]


def _large():
    """Text in a form: 3 MiB, which is more than is held in memory."""
    return FORM.replace(b"Hello.\n", b"Hello.\n" * 400_000)


class TestAsgi:
    def _post(self, streams, person, body, kind=KIND):
        return streams.request(
            "POST", BATCHES, person, content=_pieces(body, 50_000), headers={"content-type": kind}
        )

    def test_a_form(self, streams, alice):
        response = self._post(streams, alice, FORM)
        assert response.status_code == 201, response.text
        assert Batch.objects.get().rows_total == 1

    def test_a_large_one_is_whole(self, streams, alice):
        error = self._post(streams, alice, _large()).json()["error"]
        assert error["code"] == "batch_too_many_rows"

    def test_one_that_is_too_large(self, streams, alice):
        response = self._post(streams, alice, FORM + b"x" * (51 * 2**20))
        assert (response.status_code, response.json()["error"]["code"]) == (413, "payload_too_large")

    def test_anything_else_needs_a_length(self, streams, alice):
        response = self._post(streams, alice, b"text\nHello.\n", "text/csv")
        assert (response.status_code, response.json()["error"]["code"]) == (411, "length_required")


class TestWsgi:
    def _post(self, person, body, kind=KIND, **changed):
        seen = []
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": BATCHES,
            "SERVER_NAME": "testserver",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "wsgi.url_scheme": "http",
            "wsgi.input": body if isinstance(body, io.BytesIO) else io.BytesIO(body),
            "wsgi.errors": io.StringIO(),
            "CONTENT_TYPE": kind,
            "HTTP_TRANSFER_ENCODING": "chunked",
            "HTTP_AUTHORIZATION": f"Bearer {person.secret}",
        } | changed
        application = measured(get_wsgi_application())
        answer = application(environ, lambda status, headers: seen.append((status, dict(headers))))
        body = b"".join(answer)
        if hasattr(answer, "close"):
            answer.close()
        return seen[0][0], seen[0][1], body

    def test_a_form(self, alice):
        status, _headers, body = self._post(alice, FORM)
        assert status == "201 Created", body
        assert Batch.objects.get().rows_total == 1

    def test_a_large_one_is_whole(self, alice):
        assert b"batch_too_many_rows" in self._post(alice, _large())[2]

    def test_one_that_is_too_large(self, alice):
        status, headers, body = self._post(alice, FORM + b"x" * (51 * 2**20))
        assert (status, headers["Connection"]) == ("413 Request Entity Too Large", "close")
        assert b"payload_too_large" in body

    def test_anything_else_needs_a_length(self, alice):
        assert self._post(alice, b"text\nHello.\n", "text/csv")[0] == "411 Length Required"

    @pytest.mark.parametrize(("key", "status"), [({}, "415 "), ({"HTTP_AUTHORIZATION": "Bearer x"}, "401 ")])
    def test_no_answer_before_the_end_of_its_question(self, alice, key, status):
        """What cuts a caller off who is still sending looks like a broken server to the proxy between them."""
        body = io.BytesIO(b"x" * (3 * 2**20))
        length = {"CONTENT_LENGTH": str(3 * 2**20), "HTTP_TRANSFER_ENCODING": ""}
        assert self._post(alice, body, "application/json", **length, **key)[0].startswith(status)
        assert body.read() == b""
