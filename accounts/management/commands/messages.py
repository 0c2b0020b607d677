"""`manage.py messages`: bring the catalogues up to date with every translatable string of the project.

Strings are found in Python by Babel, and in templates by Babel after Django has turned them into Python; so neither
xgettext nor msgmerge is needed. `--check` writes nothing and fails when a catalogue is behind or incomplete.
"""

from __future__ import annotations

import io
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from babel.messages import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.module_loading import import_string
from django.utils.translation.template import templatize

#: Names under which the code calls the functions of `django.utils.translation`, and which arguments are strings.
_KEYWORDS: dict[str, Any] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
}
_PACKAGES = ("accounts", "synthesis", "gpu_worker", "platform/config")
_HEADER = "# Translations of Chorus. Brought up to date by `manage.py messages`; edit the msgstr lines only."
#: Header lines that say nothing or change with every run.
_CHURN = (
    '"POT-Creation',
    '"PO-Rev',
    '"Project-Id',
    '"Report-Msgid',
    '"Last-Trans',
    '"Language-Team',
    '"Generated-By',
)
#: Locales with a catalogue; English is what the code is written in.
LOCALES = ("zh_Hans",)


class Command(BaseCommand):
    """Extract, update, compile."""

    help = "Bring the message catalogues up to date, and compile them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Only `--check`."""
        parser.add_argument(
            "--check", action="store_true", help="Write nothing; fail when something is missing."
        )

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        """For each locale: what the code says now, with the translations that exist."""
        found = collect(settings.BASE_DIR)
        problems = []
        for locale in LOCALES:
            path = catalogue_path(settings.BASE_DIR, locale)
            before = load(path, locale)
            stale = before_ids(before) ^ before_ids(found)
            catalogue = updated(before, found)
            missing = incomplete(catalogue)
            if check and stale:
                problems.append(
                    f"{path.name} ({locale}) is out of date for: {', '.join(map(repr, sorted(stale)))}"
                )
            if not check:
                save(catalogue, path)
                self.stdout.write(f"{locale}: {len(found)} messages, {len(missing)} to be translated")
            problems += [f"{locale}: not translated: {message!r}" for message in missing]
        if check and problems:
            raise CommandError("\n".join(problems))
        for line in problems:
            self.stdout.write(line)


def catalogue_path(root: Path, locale: str) -> Path:
    """Where the catalogue of `locale` is."""
    return root / "locale" / locale / "LC_MESSAGES" / "django.po"


def collect(root: Path) -> Catalog:
    """Every translatable string of the code and the templates below `root`, and of the API's description."""
    catalogue = Catalog(charset="utf-8")
    for path, text in _sources(root):
        name = path.relative_to(root).as_posix()
        for _line, message, comments, context in extract(
            "python", io.BytesIO(text.encode()), _KEYWORDS, ["Translators:"], {"encoding": "utf-8"}
        ):
            catalogue.add(message, locations=[(name, 1)], auto_comments=comments, context=context)
    for source in settings.CHORUS_MORE_WORDS:
        for text in import_string(source)():
            catalogue.add(text, locations=[(source, 1)])
    return catalogue


def _sources(root: Path) -> Iterator[tuple[Path, str]]:
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path, path.read_text()
    for path in sorted((root / "templates").rglob("*")):
        if path.suffix in {".html", ".txt"}:
            # In brackets, so that the indentation of HTML means nothing to Python's tokenizer.
            yield path, f"({templatize(path.read_text())}\n)"


def load(path: Path, locale: str) -> Catalog:
    """The catalogue as it is; an empty one when there is none."""
    if not path.exists():
        return Catalog(locale=locale, domain="django", charset="utf-8")
    with path.open("rb") as file:
        return read_po(file, locale=locale, domain="django", charset="utf-8")


def updated(before: Catalog, found: Catalog) -> Catalog:
    """What `found` says, with the translations of `before`; nothing is guessed, nothing obsolete is kept."""
    before.update(found, no_fuzzy_matching=True, keep_user_comments=False)
    before.obsolete.clear()
    return before


def save(catalogue: Catalog, path: Path) -> None:
    """Write the catalogue without dates and line numbers, which would change with every run; and compile it."""
    catalogue.header_comment = _HEADER
    catalogue.fuzzy = False
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    write_po(buffer, catalogue, width=110, sort_by_file=True, include_lineno=False, ignore_obsolete=True)
    kept = [line for line in buffer.getvalue().decode().split("\n") if not line.startswith(_CHURN)]
    path.write_text("\n".join(kept))
    compile_catalogue(catalogue, path)


def compile_catalogue(catalogue: Catalog, path: Path) -> None:
    """Write the `.mo` beside the `.po`, as `pybabel compile` does."""
    with path.with_suffix(".mo").open("wb") as file:
        write_mo(file, catalogue)


def before_ids(catalogue: Catalog) -> set[str]:
    """What is in a catalogue, without its header."""
    return {
        message.id if isinstance(message.id, str) else message.id[0] for message in catalogue if message.id
    }


def incomplete(catalogue: Catalog) -> list[str]:
    """The source strings that have no translation, or one that somebody should look at."""
    missing = []
    for message in catalogue:
        strings = [message.string] if isinstance(message.string, str) else list(message.string or [""])
        if message.id and (message.fuzzy or not all(strings)):
            missing.append(message.id if isinstance(message.id, str) else message.id[0])
    return missing
