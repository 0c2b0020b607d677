"""A team: members, keys with limits, webhooks with deliveries, usage, the audit log, settings, handing it over."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from accounts.models import Membership, Team
from synthesis.models import Delivery
from synthesis.services import deliveries, rollup
from tests import factories
from tests.browsing import LANGUAGES, check, words
from tests.web.test_steering import spoken

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("language", LANGUAGES)
def test_members_and_keys(open_page, alice, hibari, language):
    say = words(language)
    factories.colleague(alice, "Bob")
    page = open_page("/team/", alice, language=language)
    page.get_by_label(say("Invite by e-mail address")).fill("dora@example.org")
    page.get_by_role("button", name=say("Invite")).click()
    expect(page.locator("#invitation-link")).to_contain_text("/invitations/")
    check(page)
    members = page.locator("#members")
    invited = members.get_by_role("row", name="dora@example.org")
    invited.get_by_role("button", name=say("Withdraw")).click()
    expect(invited).to_have_count(0)
    page.get_by_label(say("Role of %(name)s", name="Bob")).select_option("admin")
    expect(page.get_by_label(say("Role of %(name)s", name="Bob"))).to_have_value("admin")

    page.get_by_label(say("Name of the new key")).fill("Website")
    page.locator("#keys .card-foot summary").click()
    page.locator("#keys .card-foot [name=characters_per_month]").fill("5000")
    check(page)
    page.get_by_role("button", name=say("Create a key")).click()
    secret = page.locator("#new-secret").inner_text()
    for name in ("Python", "Node"):
        page.locator(".examples summary", has_text=name).click()
        expect(page.locator(f"#new-secret-{name.lower()}")).to_contain_text(secret)
    row = page.get_by_role("row", name="Website")
    expect(row).to_contain_text("5,000")
    row.get_by_role("button", name=say("Revoke")).click()
    expect(page.get_by_role("row", name="Website")).to_contain_text(say("Revoked"))
    expect(page.locator("#new-secret")).to_have_count(0)

    members.get_by_role("row", name="Bob").get_by_role("button", name=say("Remove")).click()
    expect(members.get_by_role("row", name="Bob")).to_have_count(0)


@pytest.mark.parametrize("language", LANGUAGES)
def test_webhooks_usage_audit_settings(open_page, alice, hibari, monkeypatch, language):
    say = words(language)

    def arrives(delivery):
        delivery.state, delivery.response_status = Delivery.State.DELIVERED, 200
        delivery.save()
        return True

    monkeypatch.setattr(deliveries, "attempt", arrives)
    bob = factories.colleague(alice, "Bob")
    spoken(alice)
    rollup.roll_up()
    page = open_page("/team/webhooks/", alice, language=language)
    tabs = page.locator(".team-tabs")
    page.get_by_label(say("Address")).fill("https://93.184.216.34/hook")
    page.get_by_role("button", name=say("Add a webhook")).click()
    expect(page.locator("#webhook-secret")).to_contain_text("whsec_")
    page.get_by_role("link", name="https://93.184.216.34/hook").click()
    page.get_by_role("button", name=say("Send a test")).click()
    expect(page.get_by_role("row", name="ping")).to_contain_text("200")

    page.goto("/team/")
    tabs.get_by_role("link", name=say("Usage")).click()
    expect(page.locator("svg.chart")).to_be_visible()
    with page.expect_download() as download:
        page.locator(".card", has=page.locator("#by-user")).get_by_role("link", name="CSV").click()
    assert "109" in download.value.path().read_text("utf-8-sig")

    tabs.get_by_role("link", name=say("Audit log")).click()
    page.wait_for_load_state("load")
    page.get_by_label(say("Search by action, person or object")).fill("webhook.created")
    expect(page.locator("#results tbody tr", has_text="webhook.created")).to_be_visible()
    expect(page.locator("#results tbody tr", has_text="key.created")).to_have_count(0)

    tabs.get_by_role("link", name=say("Settings")).click()
    page.get_by_label(say("Name"), exact=True).fill("Harbour Radio")
    page.get_by_label(say("Time zone")).select_option("Asia/Shanghai")
    page.get_by_label(say("Voice that the studio begins with")).select_option(index=1)
    page.get_by_role("button", name=say("Save")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Harbour Radio")
    page.get_by_role("button", name=say("Hand over")).click()
    expect(page.locator(".page-head")).to_contain_text(say("Admin"))
    assert Membership.objects.get(user=bob.user).role == "owner"
    page.goto("/team/settings/")
    page.get_by_role("button", name=say("Leave the team")).click()
    page.wait_for_url(lambda url: "settings" not in url)
    assert list(Team.objects.get().memberships.values_list("user", flat=True)) == [bob.user.pk]
