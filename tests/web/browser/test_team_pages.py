"""The pages of the team in both languages and themes: axe, and the ways through them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from accounts.services import audit
from synthesis.services import deliveries, rollup
from synthesis.services import webhooks as hooks
from tests import factories
from tests.web.browser.test_pages import LOOKS, check
from tests.web.test_steering import spoken

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("language", "width", "theme"), LOOKS)
def test_every_page(open_page, alice, hibari, language, width, theme):
    factories.colleague(alice, "Bob")
    spoken(alice)
    rollup.roll_up()
    hook = hooks.create(actor=alice.actor, url="https://93.184.216.34/hook", events=["synthesis.failed"])
    deliveries.ping(hook)
    audit.record("team.looked_at", actor=alice.actor)
    page = open_page("/team/usage/", alice, language=language, width=width, theme=theme)
    for path in ("usage/", "webhooks/", f"webhooks/{hook.id}/", "audit/", "settings/"):
        page.goto(f"/team/{path}")
        check(page)
    page.goto("/history/")
    page.locator(".more-filters summary").click()
    # The bar at the bottom of a phone covers whatever has not been scrolled up yet, here the button that plays.
    check(page, without="target-size")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_key_with_limits_and_examples(open_page, alice, hibari, language):
    more, create, name = {
        "en": ("Permissions and limits", "Create a key", "Name of the new key"),
        "zh": ("权限与限额", "创建密钥", "新密钥的名称"),
    }[language]
    page = open_page("/team/", alice, language=language)
    page.get_by_label(name).fill("Website")
    page.locator("summary", has_text=more).click()
    page.locator("[name=characters_per_month]").fill("5000")
    check(page)
    page.get_by_role("button", name=create).click()
    secret = page.locator("#new-secret").inner_text()
    page.locator(".examples summary", has_text="Python").click()
    expect(page.locator("#new-secret-python")).to_contain_text(secret)
    page.locator(".examples summary", has_text="Node").click()
    expect(page.locator("#new-secret-node")).to_contain_text(secret)
    expect(page.get_by_role("row", name="Website")).to_contain_text("5,000")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_many_at_once(open_page, alice, hibari, language):
    selected, zipped, delete = {
        "en": ("2 selected", "Download as ZIP", "Delete"),
        "zh": ("已选 2 条", "打包下载", "删除"),
    }[language]
    spoken(alice)
    spoken(alice, text="Another text that was spoken, which has two sentences. This is the second of them.")
    page = open_page("/history/", alice, language=language)
    page.locator("[data-tick-all]").check()
    expect(page.locator("[data-bulk-words]")).to_have_text(selected)
    with page.expect_download() as download:
        page.get_by_role("button", name=zipped).click()
    assert download.value.suggested_filename.endswith(".zip")
    page.locator(".star").first.click()
    expect(page.locator(".star").first).to_have_attribute("aria-pressed", "true")
    page.locator("[data-bulk]").get_by_role("button", name=delete).click()
    expect(page.locator("article.request")).to_have_count(0)
