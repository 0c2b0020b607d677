"""One JSON object a line, with every id, and nothing that a user wrote."""

from __future__ import annotations

import io
import json
import logging

import pytest
from django.db import IntegrityError, connection

from accounts import log_context
from config.logs import JsonFormatter
from tests import factories


@pytest.fixture
def lines():
    """What is logged during the test, as objects."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.removeHandler(handler)


def answered(lines):
    [line] = [line for line in lines() if line["message"] == "Answered"]
    return line


def test_an_answer_is_logged_with_request_and_team(alice, client, lines):
    request = factories.submit(alice)
    headers = {**alice.headers, "x-request-id": "quoted-by-a-user"}
    client.get(f"/v1/syntheses/{request.id}/audio?download=secret", headers=headers)
    line = answered(lines)
    assert line["request_id"] == "quoted-by-a-user"
    assert line["team"] == str(alice.actor.team.id)
    assert line["synthesis_id"] == str(request.id)
    assert line["route"] == "v1/syntheses/<str:synthesis_id>/audio"
    assert line["status"] == 400
    assert "secret" not in json.dumps(line)


def test_a_page_is_logged_with_the_team(alice, client, lines):
    client.force_login(alice.user)
    client.get("/history/")
    assert answered(lines)["team"] == str(alice.actor.team.id)


def test_secrets_in_addresses_are_not_logged(db, client, lines):
    client.get("/invitations/this-token-is-a-secret/")
    assert "this-token-is-a-secret" not in json.dumps([*lines()])


def test_an_error_is_logged_with_its_code(alice, client, lines):
    client.get("/v1/voices/nothing", headers=alice.headers)
    assert answered(lines)["code"] == "voice_not_found"


def test_nothing_sticks_to_the_thread(alice, client, lines):
    client.get("/v1/voices", headers=alice.headers)
    log_context.note(team="x")
    assert log_context.current() == {}


def test_blocks_nest():
    with log_context.bind(request_id="a"):
        with log_context.bind(synthesis="b"):
            log_context.note(attempt=1)
            assert log_context.current() == {"request_id": "a", "synthesis": "b", "attempt": 1}
        assert log_context.current() == {"request_id": "a"}


def test_a_broken_constraint_does_not_quote_the_row(alice, lines, settings):
    settings.CHORUS_LOG_TEXT = False
    request = factories.submit(alice, "Something private.")
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE synthesis_synthesisrequest SET segments_done = 99 WHERE id = %s", [request.id]
            )
    except IntegrityError:
        logging.getLogger("test").exception("It went wrong")
    [line] = [line for line in lines() if line["message"] == "It went wrong"]
    assert "request_segments_within_total" in line["traceback"]
    assert "Something private" not in line["traceback"]
