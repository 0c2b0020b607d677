"""`/v1/schema`: every route, exactly."""

from __future__ import annotations

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

METHODS = {"get", "post", "patch", "delete"}


@pytest.fixture
def schema(client):
    response = client.get("/v1/schema")
    assert response.status_code == 200
    return response.json()


def _operations(schema):
    return [
        (path, method, operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]


def _addresses(patterns, prefix=""):
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _addresses(pattern.url_patterns, address)
        elif isinstance(pattern, URLPattern):
            yield address, pattern.callback


def test_no_key_is_needed_and_it_is_generated_without_a_warning(client, capsys):
    assert client.get("/v1/schema").status_code == 200
    assert capsys.readouterr().err.count("Warning") == 0


def test_every_route_and_method_is_described(schema):
    described = {(path, method) for path, method, _operation in _operations(schema)}
    for address, callback in _addresses(get_resolver().url_patterns):
        if not address.startswith(("v1/", "v2/")) or address == "v1/schema":
            continue
        path = "/" + address.replace("<str:", "{").replace(">", "}")
        view = callback.cls
        methods = {method for method in METHODS if hasattr(view, method)}
        scoped = {method.lower() for method in view.required_scopes}
        assert methods == scoped, f"{path}: each method says which scope it needs"
        for method in methods:
            assert (path, method) in described, f"{method} {path} is not described"


def test_every_operation_says_what_it_does_and_how_it_fails(schema):
    for path, method, operation in _operations(schema):
        where = f"{method} {path}"
        assert operation["summary"], where
        assert operation["description"], where
        assert operation["tags"], where
        assert operation["security"] == [{"bearer": []}, {"xi-api-key": []}], where
        responses = operation["responses"]
        assert {"401", "403", "503"} <= set(responses), where
        assert any(status.startswith("2") for status in responses), where
        if "{" in path:
            assert "404" in responses, where
        if "requestBody" in operation:
            assert {"400", "411", "413", "415"} <= set(responses), where
        for status, response in responses.items():
            if int(status) >= 400:
                shape = response["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                theirs = {"ElevenLabsError", "ElevenLabsEither"}
                expected = theirs if operation["tags"] == ["ElevenLabs"] else {"Error"}
                assert shape in expected, f"{where} {status}"


def test_our_own_routes_take_what_is_described_and_nothing_else(schema):
    views = {
        "/" + address.replace("<str:", "{").replace(">", "}"): callback.cls
        for address, callback in _addresses(get_resolver().url_patterns)
        if address.startswith(("v1/", "v2/"))
    }
    for path, method, operation in _operations(schema):
        where, names = f"{method} {path}", views[path].query_names
        if operation["tags"][0] in {"OpenAI", "ElevenLabs"}:
            assert names is None, f"{where}: clients of others send what they like"
            continue
        described = {one["name"] for one in operation.get("parameters", []) if one["in"] == "query"}
        assert set(names.get(method.upper(), ())) == described, where
        for body in operation.get("requestBody", {}).get("content", {}).values():
            if "$ref" in body["schema"]:
                shape = schema["components"]["schemas"][body["schema"]["$ref"].rpartition("/")[2]]
                assert shape["additionalProperties"] is False, where


def test_references_lead_somewhere(schema):
    def walk(node):
        if isinstance(node, dict):
            if "$ref" in node:
                yield node["$ref"]
            for value in node.values():
                yield from walk(value)
        elif isinstance(node, list):
            for value in node:
                yield from walk(value)

    for reference in walk(schema):
        _here, components, kind, name = reference.split("/")
        assert name in schema[components][kind]


def test_headers_are_described_where_they_are_sent(schema):
    for path, method, operation in _operations(schema):
        responses = operation["responses"]
        for status, response in responses.items():
            where, headers = f"{method} {path} {status}", set(response["headers"])
            assert "x-request-id" in headers, where
            assert ("Retry-After" in headers) == (status in {"429", "503"}), where
            assert ("Location" in headers) == (status == "201"), where
            parameters = {parameter["name"] for parameter in operation.get("parameters", [])}
            assert ("Preference-Applied" in headers) == (status == "201" and "Prefer" in parameters), where
            assert ("Content-Range" in headers) == (status in {"206", "416"}), where
            limited = "429" in responses and (status.startswith("2") or status == "429")
            assert ("RateLimit" in headers) == limited, where
        reads = method == "get" and "application/json" in responses.get("200", {}).get("content", {})
        if reads:
            assert "ETag" in responses["200"]["headers"], path
            assert "ETag" in responses["304"]["headers"], path
            assert "If-None-Match" in [parameter["name"] for parameter in operation["parameters"]], path


def test_routes_of_the_teams_own_voices_say_what_a_preset_answers(schema):
    found = {
        f"{method} {path}"
        for path, method, operation in _operations(schema)
        if "`voice_is_preset`" in operation["responses"]["403"]["description"]
    }
    assert found == {
        "patch /v1/voices/{voice_id}",
        "delete /v1/voices/{voice_id}",
        "get /v1/voices/{voice_id}/versions",
        "post /v1/voices/{voice_id}/versions",
        "get /v1/voices/{voice_id}/export",
        "delete /v1/audio/voices/{voice_id}",
    }


def test_wrong_method(client):
    assert client.post("/v1/schema").status_code == 405
