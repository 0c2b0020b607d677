"""Static files as browsers get them: one style sheet and one script for all pages, under names with a digest.

What lies in `templates/static` is small files that people read. `collectstatic` joins those that every page needs, so
that a page costs a browser four requests instead of thirty; each file is then compressed, named after its content and
cached for good. Without a manifest (development, tests) browsers load the small files as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

from django.core.files.base import ContentFile
from whitenoise.storage import CompressedManifestStaticFilesStorage  # type: ignore[import-untyped]

from accounts.templatetags.ui import JOINED_SHEET, SCRIPT, SHEETS

_IMPORT = re.compile(r'^import (?:\{ ([\w, ]+) \} from )?"\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:function|class|const) (\w+)", re.MULTILINE)
_LEFT_OVER = re.compile(r"^\s*(?:import|export)\b.*$|\bimport\(", re.MULTILINE)

Read = Callable[[str], str]


class Storage(CompressedManifestStaticFilesStorage):
    """Joins what every page needs before it is hashed and compressed."""

    def post_process(self, paths: dict[str, Any], dry_run: bool = False, **options: Any) -> Iterator[Any]:
        """As Django's; `paths` are the collected files with the storages that they come from."""

        def read(name: str) -> str:
            storage, path = paths[name]
            with storage.open(path) as file:
                return bytes(file.read()).decode()

        if not dry_run:
            for name, content in joined(read).items():
                self.delete(name)
                self._save(name, ContentFile(content.encode()))
                paths[name] = (self, name)
        yield from super().post_process(paths, dry_run, **options)


def joined(read: Read) -> dict[str, str]:
    """The joined files: name and content; `read` hands out the small ones."""
    return {
        JOINED_SHEET: "\n".join(read(name) for name in SHEETS),
        SCRIPT: join_modules(SCRIPT, read),
    }


def join_modules(entry: str, read: Read) -> str:
    """The module `entry` and all that it imports, as one script; each keeps names of its own.

    Knows what our own modules use: imports of names from neighbours and exports of declarations. ValueError for
    anything else, and for modules that need each other.
    """
    folder = PurePosixPath(entry).parent
    joined: dict[str, str] = {}

    def add(name: str, wanted_by: tuple[str, ...]) -> None:
        if name in wanted_by:
            raise ValueError(f"modules that need each other: {' → '.join((*wanted_by, name))}")
        if name in joined:
            return
        source = read(str(folder / name))
        for imported in _IMPORT.finditer(source):
            add(imported[2], (*wanted_by, name))
        joined[name] = _wrapped(name, source)

    add(PurePosixPath(entry).name, ())
    return "".join(['"use strict";\nconst modules = {};\n', *joined.values()])


def _wrapped(name: str, source: str) -> str:
    exports = _EXPORT.findall(source)
    body = _IMPORT.sub(lambda one: f'const {{ {one[1]} }} = modules["{one[2]}"];' if one[1] else "", source)
    body = re.sub(r"^export (?=(?:async )?(?:function|class|const) )", "", body, flags=re.MULTILINE)
    if unknown := _LEFT_OVER.search(body):
        raise ValueError(f"{name}: {unknown[0].strip()!r} cannot be joined")
    return f'modules["{name}"] = (() => {{\n{body}\nreturn {{ {", ".join(exports)} }};\n}})();\n'
