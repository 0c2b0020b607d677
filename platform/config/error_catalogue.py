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
from django.utils.translation import gettext

from accounts.errors import ChorusError

_FOLDERS = ("accounts", "synthesis", "gpu_worker", "platform/config")
#: Ways in which a string is marked for translation.
_MARKS = {"_", "gettext", "gettext_lazy", "gettext_noop"}
#: A code that is given to something, or is an attribute of a class.
_MENTIONED = re.compile(r"\bcode\s*[=:]")
_PLACE = re.compile(r"%\((\w+)\)[sd]|%%")


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
                elif name in {"fail", "_SegmentFailed", "Failed"}:
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
