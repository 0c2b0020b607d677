"""The description of the API: `/v1/schema` for programs, `/docs/api` for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.text import slugify
from django.utils.translation import get_language, gettext
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularAPIView

from config import docs
from config.examples import CURL_ONLY, EXAMPLES

#: How deep a body's fields are listed: `error.code` is two deep.
_DEPTH = 3
#: In which order people look for things; what is not named here follows.
_ORDER = (
    "Voices",
    "Syntheses",
    "Batches",
    "Conversions",
    "OpenAI",
    "ElevenLabs",
    "Usage",
    "Keys",
    "Webhooks",
)


class SchemaView(SpectacularAPIView):
    """OpenAPI 3, the same for everybody and without a key."""

    authentication_classes = []
    permission_classes = []
    renderer_classes = [OpenApiJsonRenderer]


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter or a field of a body; `depth` 0 is the body itself."""

    name: str
    kind: str
    required: bool
    words: str
    depth: int
    place: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What may come back."""

    status: str
    words: str
    kind: str
    fields: tuple[Field, ...]

    @property
    def is_good(self) -> bool:
        """Whether it is what one hopes for."""
        return self.status < "400"


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of an address. `words` are paragraphs."""

    id: str
    method: str
    path: str
    summary: str
    words: tuple[str, ...]
    parameters: tuple[Field, ...]
    body_kinds: tuple[str, ...]
    body: tuple[Field, ...]
    answers: tuple[Answer, ...]
    example: str


@dataclass(frozen=True, slots=True)
class Group:
    """What belongs together."""

    id: str
    title: str
    operations: tuple[Operation, ...]


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Every route with its fields, answers and an example, made from the same description that programs read."""
    language = "zh" if (get_language() or "").startswith("zh") else "en"
    context = {"groups": groups(get_language() or "en"), "pages": docs.titles(language)}
    return render(request, "docs/api.html", context)


@cache
def schema() -> dict[str, Any]:
    """As `/v1/schema` has it, in English."""
    made = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return json.loads(json.dumps(made, default=str))


@cache
def groups(language: str) -> tuple[Group, ...]:
    """What the page shows to readers of `language`, which must be the active one."""
    found: dict[str, list[Operation]] = {}
    for path, methods in schema()["paths"].items():
        for method, operation in methods.items():
            found.setdefault(operation["tags"][0], []).append(_operation(path, method, operation))
    known = [name for name in _ORDER if name in found]
    names = [*known, *sorted(set(found) - set(known))]
    return tuple(Group(slugify(name), gettext(name), tuple(found[name])) for name in names)


def words() -> Iterator[str]:
    """Everything in the description that people read: for the catalogue of translations."""
    for methods in schema()["paths"].values():
        for operation in methods.values():
            yield from operation["tags"]
            yield operation["summary"]
            yield from _paragraphs(operation["description"])
            yield from filter(None, map(_said, operation.get("parameters", [])))
            yield from filter(None, map(_said, operation["responses"].values()))
    for component in schema()["components"]["schemas"].values():
        yield from filter(None, map(_said, component.get("properties", {}).values()))


def _operation(path: str, method: str, operation: dict[str, Any]) -> Operation:
    contents = operation.get("requestBody", {}).get("content", {})
    first: dict[str, Any] = next(iter(contents.values()), {})
    return Operation(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=gettext(operation["summary"]),
        words=tuple(gettext(text) for text in _paragraphs(operation["description"])),
        parameters=tuple(
            Field(
                one["name"],
                _kind(one["schema"]),
                bool(one.get("required")),
                _translated(one),
                0,
                {"path": gettext("in the address"), "header": gettext("header")}.get(one["in"], ""),
            )
            for one in operation.get("parameters", [])
        ),
        body_kinds=tuple(contents),
        body=tuple(_fields(first.get("schema", {}))),
        answers=tuple(_answer(status, one) for status, one in operation["responses"].items()),
        example=_curl(path, method, operation, contents),
    )


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def _said(node: dict[str, Any]) -> str:
    """Its description, without the list of choices that drf-spectacular adds: the kind says them."""
    return str(node.get("description", "")).partition("* `")[0].strip()


def _translated(node: dict[str, Any]) -> str:
    # gettext("") is the header of the catalogue.
    return gettext(said) if (said := _said(node)) else ""


def _answer(status: str, answer: dict[str, Any]) -> Answer:
    contents = answer.get("content", {})
    first: dict[str, Any] = next(iter(contents.values()), {})
    body = first.get("schema", {})
    return Answer(
        status,
        _translated(answer),
        ", ".join(contents),
        # Every error has one shape, which is described once.
        tuple(_fields(body)) if status < "300" else (),
    )


def _resolved(node: dict[str, Any]) -> dict[str, Any]:
    """A schema behind its references; what drf-spectacular adds to a reference (null, a description) is kept."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        return {**schema()["components"]["schemas"][name], **{k: v for k, v in node.items() if k != "$ref"}}
    if len(node.get("allOf", [])) == 1:
        inner = _resolved(node["allOf"][0])
        return {**inner, **{key: value for key, value in node.items() if key != "allOf"}}
    return node


def _kind(node: dict[str, Any]) -> str:
    """ "string", "integer or null", "array of objects", "a | b"."""
    node = _resolved(node)
    if "enum" in node:
        return " | ".join(str(value) for value in node["enum"] if value not in (None, ""))
    if "oneOf" in node or "anyOf" in node:
        kinds = dict.fromkeys(_kind(one) for one in node.get("oneOf") or node["anyOf"])
        return gettext(" or ").join(kinds)
    kind = node.get("type", "")
    if isinstance(kind, list):
        return gettext(" or ").join(kind)
    if kind == "array":
        kind = gettext("array of %(kind)s") % {"kind": _kind(node["items"]) or "…"}
    elif node.get("format") in {"uuid", "date-time", "uri", "binary", "email", "date"}:
        kind = {"binary": gettext("file")}.get(node["format"], node["format"])
    return kind + (gettext(" or ") + "null" if node.get("nullable") else "")


def _fields(node: dict[str, Any], prefix: str = "", depth: int = 0) -> Iterator[Field]:
    node = _resolved(node)
    while node.get("type") == "array":
        node = _resolved(node["items"])
    for name, inner in node.get("properties", {}).items():
        full = _resolved(inner)
        yield Field(
            f"{prefix}{name}", _kind(inner), name in node.get("required", ()), _translated(full), depth
        )
        item = _resolved(full["items"]) if full.get("type") == "array" else full
        if depth + 1 < _DEPTH and "properties" in item:
            mark = "[]" if full.get("type") == "array" else ""
            yield from _fields(item, f"{prefix}{name}{mark}.", depth + 1)


def _curl(path: str, method: str, operation: dict[str, Any], contents: dict[str, Any]) -> str:
    """A command that does it, for a shell that knows $CHORUS_URL and $CHORUS_API_KEY."""
    lines = [f"curl {'-X ' + method.upper() + ' ' if method not in ('get', 'post') else ''}$CHORUS_URL{path}"]
    lines.append('-H "Authorization: Bearer $CHORUS_API_KEY"')
    name = operation["operationId"]
    if name in CURL_ONLY:
        lines += CURL_ONLY[name]
    elif name in EXAMPLES:
        body = json.dumps(EXAMPLES[name], ensure_ascii=False)
        lines += ['-H "Content-Type: application/json"', f"-d '{body}'"]
    elif method == "post":
        lines.append("-X POST")
    success = next(iter(operation["responses"].values())).get("content", {})
    if success and not any("json" in kind or "event-stream" in kind for kind in success):
        ending = {"application/zip": "zip", "text/csv": "csv"}.get(next(iter(success)), "mp3")
        lines.append(f"-o out.{ending}")
    return " \\\n  ".join(lines)
