"""The documentation under `/docs/`: Markdown files of `docs/`, in the reader's language, open to everybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin
from mdit_py_plugins.attrs import attrs_block_plugin

from config import error_catalogue

FOLDER = Path(settings.BASE_DIR) / "docs"
#: In reading order; pages that are not named here follow.
ORDER = (
    "index",
    "install",
    "first-hour",
    "studio",
    "scripts",
    "voices",
    "cosyvoice3",
    "operate",
    "settings",
    "monitoring",
    "benchmarks",
    "security",
    "api-guide",
    "errors",
    "troubleshooting",
)


@dataclass(frozen=True, slots=True)
class Page:
    """A file, rendered. `language` is the one it is written in; `sections` are its second headings: (id, words)."""

    slug: str
    title: str
    html: SafeString
    sections: tuple[tuple[str, str], ...]
    language: str


@require_safe
def page(request: HttpRequest, slug: str = "index") -> HttpResponse:
    """One page, with the others beside it."""
    language = "zh" if (get_language() or "").startswith("zh") else "en"
    path = _path(slug, language)
    if path is None:
        raise Http404
    found = _render(path, path.stat().st_mtime_ns)
    context = {
        "page": found,
        "pages": titles(language),
        "errors": error_catalogue.entries() if slug == "errors" else (),
        "elsewhere": found.language != language,
    }
    return render(request, "docs/page.html", context)


def titles(language: str) -> list[tuple[str, str]]:
    """(slug, title) of all pages, in reading order."""
    return [entry for entry in (_title(name, language) for name in slugs()) if entry]


def slugs() -> list[str]:
    """All pages, in reading order."""
    found = {path.stem for path in FOLDER.glob("*.md")}
    return [name for name in ORDER if name in found] + sorted(found - set(ORDER))


def _path(slug: str, language: str) -> Path | None:
    """The file of a page: in the language if there is one, else in English."""
    if slug not in slugs():  # also keeps anything out that would lead elsewhere
        return None
    translated = FOLDER / "zh" / f"{slug}.md"
    return translated if language == "zh" and translated.is_file() else FOLDER / f"{slug}.md"


def _title(slug: str, language: str) -> tuple[str, str] | None:
    path = _path(slug, language)
    return (slug, _render(path, path.stat().st_mtime_ns).title) if path else None


def _parser() -> MarkdownIt:
    # No HTML of its own: the pages have a strict Content-Security-Policy, and nothing in them needs any.
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.use(attrs_block_plugin, allowed=["id"])
    # Pages in Chinese give their headings the English ids in braces, so that links from alerts work in both.
    parser.use(anchors_plugin, min_level=2, max_level=3)
    parser.add_render_rule("fence", _code)
    return parser


def _code(_renderer: object, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
    """A block of code, which scrolls where it is wide: by keyboard it can only be scrolled with the focus on it."""
    return f'<pre tabindex="0"><code>{escape(tokens[index].content)}</code></pre>\n'


@lru_cache(maxsize=64)
def _render(path: Path, changed: int) -> Page:
    parser = _parser()
    tokens = parser.parse(path.read_text(encoding="utf-8"))
    headings = [
        (tokens[index], tokens[index + 1])
        for index in range(len(tokens))
        if tokens[index].type == "heading_open"
    ]
    title = next((words.content for mark, words in headings if mark.tag == "h1"), path.stem)
    _scroll_tables(tokens)
    return Page(
        slug=path.stem,
        title=title,
        html=mark_safe(parser.renderer.render(tokens, parser.options, {})),  # noqa: S308 (our own files)
        sections=tuple(
            (str(mark.attrGet("id") or ""), words.content) for mark, words in headings if mark.tag == "h2"
        ),
        language="zh" if path.parent.name == "zh" else "en",
    )


def _scroll_tables(tokens: list[Token]) -> None:
    """A wide table scrolls by itself instead of widening the page."""
    for token in tokens:
        if token.type == "table_open":
            token.attrSet("class", "table")
            token.attrSet("tabindex", "0")
