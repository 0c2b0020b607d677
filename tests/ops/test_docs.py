"""The documentation: served in both languages, true to the program, and complete."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
import yaml
from django.conf import settings
from prometheus_client.parser import text_string_to_metric_families

from config import docs, error_catalogue
from tests.ops import tools

ENGLISH = docs.FOLDER
CHINESE = docs.FOLDER / "zh"
SLUGS = docs.slugs()
#: What callers install has a README of its own, and a bench is no part of the service.
FOLDERS = ("accounts", "synthesis", "gpu_worker", "platform/config", "platform/launcher")
#: Set by the program for itself, or by Django's own commands.
INTERNAL = {"CHORUS_PASSWORD"}


def sources():
    for folder in FOLDERS:
        for path in (tools.ROOT / folder).rglob("*.py"):
            yield path, path.read_text()


def pages():
    return [*ENGLISH.glob("*.md"), *CHINESE.glob("*.md")]


def variables():
    """Every environment variable that the program reads."""
    found = set()
    for path, text in sources():
        if "platform/config" in str(path):
            found |= set(re.findall(r'env\.[a-z]+\(\s*"([A-Z][A-Z0-9_]+)"', text))
        found |= set(re.findall(r'"((?:CHORUS|COSYVOICE)_[A-Z0-9_]+)"', text))
    return {name.removesuffix("_FILE") for name in found} - INTERNAL


def commands():
    return {
        path.stem
        for folder in FOLDERS
        for path in (tools.ROOT / folder).rglob("management/commands/*.py")
        if path.stem != "__init__"
    }


@pytest.mark.parametrize("folder", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_every_setting_is_documented(folder):
    text = (folder / "settings.md").read_text()
    assert {name for name in variables() if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("folder", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_no_setting_is_documented_that_is_not_read(folder):
    documented = set(
        re.findall(
            r"^\| (?:.*?)`((?:CHORUS|COSYVOICE|S3)_[A-Z0-9_]+)`", (folder / "settings.md").read_text(), re.M
        )
    )
    assert documented - variables() == set()


@pytest.mark.parametrize("folder", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_every_command_is_documented(folder):
    rows = set(re.findall(r"^\| `([a-z_]+)` \|", (folder / "settings.md").read_text(), re.MULTILINE))
    assert commands() - rows == set()
    assert {row for row in rows if "_" in row} - commands() == set()


@pytest.mark.parametrize("folder", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_every_metric_is_documented_and_no_other(folder, db, client):
    families = text_string_to_metric_families(client.get("/metrics").content.decode())
    exist = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    text = (folder / "monitoring.md").read_text()
    documented = set(re.findall(r"^\| `(chorus_[a-z_]+)` \|", text, re.MULTILINE))
    assert documented == exist


def test_every_page_is_there_in_chinese():
    assert {path.name for path in ENGLISH.glob("*.md")} == {path.name for path in CHINESE.glob("*.md")}


class _Page(HTMLParser):
    """Ids, links and forbidden things of a page."""

    def __init__(self, html):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.inline: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if values.get("id"):
            self.ids.add(values["id"])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag == "style" or (tag == "script" and not values.get("src")):
            self.inline.append(tag)
        self.inline += [name for name in values if name == "style" or name.startswith("on")]


def get(client, path, language="en"):
    answer = client.get(path, headers={"accept-language": language})
    assert answer.status_code == 200, path
    return answer


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("slug", SLUGS)
def test_pages(db, client, slug, language):
    """Open to everybody, in the reader's language, with links that lead somewhere, without inline code."""
    address = "/docs/" if slug == "index" else f"/docs/{slug}"
    answer = get(client, address, language)
    html = answer.content.decode()
    page = _Page(html)
    assert "Content-Security-Policy" in answer.headers
    assert not page.inline
    assert html.count("<h1") == 1
    for link in page.links:
        path, _hash, anchor = link.partition("#")
        if path.startswith("/docs/") or (not path and anchor):
            target = _Page(get(client, path or address, language).content.decode())
            assert not anchor or anchor in target.ids, link
        else:
            assert path.startswith("/"), f"{link}: nothing of others is linked"


def test_chinese_pages_are_chinese(db, client):
    for slug in SLUGS:
        html = get(client, "/docs/" if slug == "index" else f"/docs/{slug}", "zh-hans").content.decode()
        [main] = re.findall(r"<main.*?</main>", html, re.DOTALL)
        assert len(re.findall("[\u4e00-\u9fff]", main)) > 100, slug


def test_both_languages_have_the_same_anchors(db, client):
    for slug in SLUGS:
        address = "/docs/" if slug == "index" else f"/docs/{slug}"
        ids = [
            {i for i in _Page(get(client, address, language).content.decode()).ids if not i.startswith("id")}
            for language in ("en", "zh-hans")
        ]
        # Nothing links into the sections of that page.
        assert slug == "cosyvoice3" or ids[0] == ids[1], slug


@pytest.mark.parametrize("path", ["/docs/nothing", "/docs/..%2Fsettings", "/docs/zh"])
def test_other_addresses(db, client, path):
    assert client.get(path).status_code == 404


def test_without_the_slash(db, client):
    assert client.get("/docs").status_code in {301, 302}


class TestErrors:
    """Every code has a place on the page that answers link to."""

    def test_every_code_of_the_source_is_listed(self):
        raised = set()
        for path, text in sources():
            if "launcher" not in str(path):
                raised |= set(re.findall(r'\bcode\s*=\s*"([a-z_]+)"', text))
        listed = {entry.code for entry in error_catalogue.entries()}
        assert raised - listed == set()
        assert len(listed) > 80
        others = {"no_speech", "parse_error", "method_not_allowed", "unsupported_media_type"}
        assert others <= listed, "codes that come from elsewhere"

    def test_every_code_is_explained_and_has_its_status(self):
        entries = {entry.code: entry for entry in error_catalogue.entries()}
        assert [code for code, entry in entries.items() if not entry.words] == []
        assert entries["internal_error"].status == 500

    def test_an_answer_s_link_leads_to_its_code(self, alice, client):
        answer = client.get("/v1/voices/nothing", headers=alice.headers)
        path, _hash, anchor = answer.json()["type"].partition("#")
        assert anchor in _Page(get(client, path).content.decode()).ids

    def test_messages_are_translated(self, db, client):
        html = get(client, "/docs/errors", "zh-hans").content.decode()
        assert 'id="voice_not_found"' in html
        assert re.search("[\u4e00-\u9fff]", html.split('id="quota_exceeded"')[1].split("</dd>")[0])

    def test_placeholders_are_told_apart(self):
        words = {entry.code: entry.words for entry in error_catalogue.entries()}
        assert "%(" not in "".join(words.values())


def test_alerts_lead_to_sections_that_exist(db, client):
    rules = yaml.safe_load((tools.ROOT / "docker" / "monitoring" / "alerts.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            address = rule["annotations"]["runbook_url"].removeprefix("{{ $externalLabels.installation }}")
            path, _hash, anchor = address.partition("#")
            for language in ("en", "zh-hans"):
                page = _Page(get(client, path, language).content.decode())
                assert not anchor or anchor in page.ids, rule["alert"]


def test_no_hosts_and_no_paths_of_a_machine():
    allowed = {
        "voice.example.org",
        "your-host",
        "your-git-host",
        "host",
        "collector",
        "127.0.0.1",
        "localhost",
    }
    for path in pages():
        for host in re.findall(r"https?://([^/`\s)\"':]+)", path.read_text()):
            assert host in allowed or host.endswith("example.org"), (path.name, host)
        assert str(tools.ROOT) not in path.read_text()


def test_files_that_are_named_exist():
    for path in pages():
        for name in re.findall(r"`((?:docker|platform|tests)/[A-Za-z0-9_./-]+)`", path.read_text()):
            assert (tools.ROOT / name).exists(), (path.name, name)


def test_the_folder_is_in_the_image():
    assert "!docs" in (tools.ROOT / ".dockerignore").read_text().splitlines()
    assert settings.BASE_DIR / "docs" == ENGLISH
