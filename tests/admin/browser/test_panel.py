"""The ways through the panel that people go every day, in a browser."""

from __future__ import annotations

import re

import pytest
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.models import QuotaChange, TeamQuota
from synthesis.models import Status, SynthesisRequest
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_fresh_administrator_enrols_and_comes_to_the_overview(panel):
    root = staff.person()
    page = panel("/admin/")
    page.get_by_label("E-mail address").fill(root.email)
    page.locator("input[name=password]").fill(factories.PASSWORD)
    page.locator("main button").click()
    page.get_by_role("img", name="QR code").wait_for()
    shown = page.locator("#two-factor-secret").inner_text().replace(" ", "")
    assert re.fullmatch(r"[A-Z2-7]{32}", shown)
    page.get_by_role("textbox", name="Code").fill(staff.code_of(TOTPDevice.objects.get(user=root)))
    page.get_by_role("button", name="Turn on two-factor sign-in").click()
    assert page.locator(".codes li").count() == 10
    page.get_by_role("link", name="I have kept them").click()
    page.get_by_role("heading", name="Overview").wait_for()
    page.get_by_role("link", name="Teams").click()
    page.get_by_role("heading", name="Teams").wait_for()


def test_limits_are_previewed_applied_and_undone(panel):
    alice = factories.owner("Alice", team="Harbour Audio")
    page = panel("/admin/accounts/team/", staff.person())
    page.get_by_role("link", name="Harbour Audio").click()
    page.get_by_role("link", name="Change plan and limits").click()
    page.get_by_label("Characters per month").fill("250000")
    page.get_by_label("Reason").fill("New contract")
    page.get_by_role("button", name="Show what this would do").click()
    assert page.locator("tbody tr").count() == 1
    assert "250,000" in page.locator("tbody tr").inner_text()
    assert not TeamQuota.objects.exists()
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("status").get_by_text("Changed.").wait_for()
    assert TeamQuota.objects.get(team=alice.actor.team).characters_per_month == 250_000
    page.goto(f"/admin/accounts/quotachange/{QuotaChange.objects.get().pk}/")
    page.get_by_role("link", name="Undo").click()
    page.get_by_role("button", name="Apply").click()
    page.get_by_role("status").get_by_text("Undone.").wait_for()
    assert TeamQuota.objects.get().characters_per_month is None


def test_many_requests_are_canceled_from_the_list(panel):
    alice = factories.owner("Alice")
    for _i in range(3):
        factories.submit(alice)
    page = panel("/admin/synthesis/synthesisrequest/", staff.person())
    page.locator(".filter summary").first.click()
    page.get_by_role("link", name="Queued").click()
    page.wait_for_load_state("load")
    page.locator("#action-toggle").check()
    page.get_by_text("3 of 3 selected").wait_for()
    page.locator("select[name=action]").select_option("cancel")
    page.get_by_role("button", name="Go").click()
    page.get_by_text("3 chosen").wait_for()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_text("Canceled without charge: 3.").wait_for()
    assert not SynthesisRequest.objects.exclude(status=Status.CANCELED).exists()


def test_the_panel_works_on_a_phone(panel):
    factories.owner("Alice", team="Harbour Audio")
    page = panel("/admin/", staff.person(), width=390, theme="dark")
    page.get_by_text("Menu", exact=True).click()
    page.locator(".panel-menu").get_by_role("link", name="Teams").click()
    page.get_by_role("link", name="Harbour Audio").click()
    page.get_by_role("heading", name="Harbour Audio").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_wrong_code_says_so(panel):
    root = staff.person()
    staff.client_of(root)  # enrols
    page = panel("/sign-in/?next=/admin/")
    page.get_by_label("E-mail address").fill(root.email)
    page.locator("input[name=password]").fill(factories.PASSWORD)
    page.locator("main button").click()
    page.get_by_label("Code").fill("12")
    page.get_by_role("button", name="Continue").click()
    page.get_by_text("This code is wrong").wait_for()
