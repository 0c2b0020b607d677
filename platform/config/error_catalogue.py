"""Every error code of the service with its message, read from the source: what `/docs/errors` lists.

A code is either an attribute of a class of errors, or an argument where one is raised. Their messages are translated
like everywhere else, so that the page is complete in each language by itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext, gettext_noop

from accounts.errors import ChorusError
from synthesis.errors import VOICE_DELETED, VOICE_TAKEN_DOWN

_FOLDERS = ("accounts", "synthesis", "gpu_worker", "platform/config")
#: Ways in which a string is marked for translation.
_MARKS = {"_", "gettext", "gettext_lazy", "gettext_noop"}
#: A code that is given to something, or is an attribute of a class.
_MENTIONED = re.compile(r"\bcode\s*[=:]")
_PLACE = re.compile(r"%\((\w+)\)[sd]|%%")

#: What the source does not tell: codes of REST framework and of flaws of recordings, with their status; and words for
#: those whose message is put together where they are raised.
_STATUSES = {
    "internal_error": 500,
    "method_not_allowed": 405,
    "no_speech": 400,
    "parse_error": 400,
    "too_short": 400,
    "unsupported_media_type": 415,
}
_WORDS = {
    "acting_as": gettext_noop("An operator who looks at somebody's pages cannot change this for them."),
    "audio_no_speech": gettext_noop(
        "No speech is to be heard in the recording. Record a few sentences and try again."
    ),
    "audio_too_long": gettext_noop(
        "The recording is longer than is taken here. The message says how long it may be."
    ),
    "audio_window": gettext_noop(
        "The part of the recording to use lies outside of it, or is too short or too long."
    ),
    "batch_invalid": gettext_noop(
        "Something in the file is wrong: `problems` names each row, line and column. Nothing was queued or charged."
    ),
    "column_twice": gettext_noop("The file has two columns of this name. Remove one."),
    "conflict": gettext_noop("The object is in a state that does not allow this. The message says which."),
    "file_not_writable": gettext_noop("The command cannot write this file."),
    "instruction_too_long": gettext_noop("The instruction is longer than the engine takes. Shorten it."),
    "instruction_unknown": gettext_noop(
        "The engine knows no such instruction. GET /v1/instructions lists those that it knows."
    ),
    "key_not_found": gettext_noop("There is no such key, or it is not yours."),
    "maintenance": gettext_noop(
        "Nothing new is taken during maintenance. Try again after the time in Retry-After."
    ),
    "member_not_found": gettext_noop("Nobody in the team has this address."),
    "method_not_allowed": gettext_noop(
        "This address does not take this method. The header Allow lists those it takes."
    ),
    "no_speech": gettext_noop("We could not hear anyone speak here. Record a few sentences and try again."),
    "not_ready": gettext_noop("There is no sound yet. Wait until the request has succeeded."),
    "parse_error": gettext_noop("The body is not what its Content-Type says. Check the JSON, or the form."),
    "password_weak": gettext_noop("The password is too easy to guess. The message says why."),
    "payload_too_large": gettext_noop(
        "The body is larger than this address takes. The message says how large it may be."
    ),
    "plan_not_found": gettext_noop("There is no such plan."),
    "rate_limit_exceeded": gettext_noop("Too many requests in a minute. Wait as long as Retry-After says."),
    "tag_not_closed": gettext_noop(
        "A tag in the text is begun and not ended. The message says which, and where."
    ),
    "tag_unknown": gettext_noop(
        "The engine knows no such tag. GET /v1/instructions lists those that it knows."
    ),
    "tags_not_supported": gettext_noop(
        "The engine of this installation knows no tags in a text. Remove them."
    ),
    "team_not_found": gettext_noop("There is no such team."),
    "text_control_characters": gettext_noop(
        "There is a character in the text that nobody can speak. The message says where. Remove it."
    ),
    "text_special_token": gettext_noop(
        "There is something in the text that the engine would take for an order. The message says where. Remove it."
    ),
    "time_zone_unknown": gettext_noop(
        "There is no such time zone. Names are like Europe/Berlin and Asia/Shanghai."
    ),
    "too_short": gettext_noop("There is less than a second of speech here. Aim for 5 to 15 seconds."),
    "unknown_field": gettext_noop(
        "A field of the body or a parameter of the address is not known there. The message says what was probably "
        "meant. Nothing was done."
    ),
    "unprocessable": gettext_noop("It contradicts what was sent before, or cannot be spoken."),
    "unsupported_media_type": gettext_noop(
        "This address does not take a body of this Content-Type. The description of the route says which it takes."
    ),
    "user_not_found": gettext_noop("Nobody has this e-mail address."),
    "voice_deleted": VOICE_DELETED,
    "voice_taken_down": VOICE_TAKEN_DOWN,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """`status` is the HTTP status, None where a code stands for the end of a synthesis only."""

    code: str
    status: int | None
    message: str

    @property
    def words(self) -> str:
        """The message in the reader's language, with the names of what is filled in."""
        if not self.message:
            return ""
        return _PLACE.sub(lambda match: f"‹{match[1]}›" if match[1] else "%", gettext(self.message))


@cache
def entries() -> tuple[Entry, ...]:
    """One for each code, by name."""
    found: dict[str, Entry] = {}
    statuses = {kind.__name__: kind.status for kind in _kinds(ChorusError)}
    for folder in _FOLDERS:
        for path in sorted((Path(settings.BASE_DIR) / folder).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            # Most files mention none, and parsing them all takes the better part of a second.
            if not _MENTIONED.search(source):
                continue
            for entry in _of(ast.parse(source), statuses):
                known = found.get(entry.code)
                if known is None or (not known.message and entry.message):
                    found[entry.code] = entry
    for code, status in _STATUSES.items():
        found[code] = Entry(code, status, found[code].message if code in found else "")
    for code, words in _WORDS.items():
        if code in found and not found[code].message:
            found[code] = Entry(code, found[code].status, words)
    return tuple(found[code] for code in sorted(found))


def _kinds(kind: type[ChorusError]) -> Iterator[type[ChorusError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def _of(tree: ast.AST, statuses: dict[str, int]) -> Iterator[Entry]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name in statuses:
            values = {
                target.id: statement.value
                for statement in node.body
                if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
                for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
                if isinstance(target, ast.Name)
            }
            if code := _text(values.get("code")):
                yield Entry(code, statuses[node.name], _text(values.get("message")))
        elif isinstance(node, ast.Call):
            keywords = {keyword.arg: keyword.value for keyword in node.keywords}
            for code in _codes(keywords.get("code")):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                message = keywords.get("message") or (node.args[0] if node.args else None)
                if name in statuses:
                    yield Entry(code, statuses[name], _text(message))
                elif name in {"fail", "_SegmentFailed", "Failed", "refuse"}:
                    yield Entry(code, None, _text(message))


def _codes(node: ast.AST | None) -> list[str]:
    """The codes that an argument may be: one, or one of two."""
    if isinstance(node, ast.IfExp):
        return _codes(node.body) + _codes(node.orelse)
    return [code] if (code := _text(node)) else []


def _text(node: ast.AST | None) -> str:
    """The string that an expression is, as it stands in the catalogue of translations."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.Call(func=ast.Name(id=name), args=[argument, *_]) if name in _MARKS:
            return _text(argument)
        case ast.BinOp(left=left, op=ast.Mod()):
            return _text(left)
    return ""
