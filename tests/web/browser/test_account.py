"""One's own account: signing in, language and theme, two factors and recovery codes, sessions elsewhere, the end."""

from __future__ import annotations

import pytest
from django_otp.plugins.otp_totp.models import TOTPDevice
from playwright.sync_api import expect

from accounts.models import User
from tests.admin.staff import code_of
from tests.browsing import LANGUAGES, check, words
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db(transaction=True)


def sign_in(page, say, person, password: str = PASSWORD) -> None:
    page.get_by_label(say("E-mail address")).fill(person.user.email)
    page.locator("input[name=password]").fill(password)
    page.get_by_role("button", name=say("Sign in"), exact=True).click()


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_factors_sessions_and_the_end(open_page, alice, hibari, language):
    say = words(language)
    page = open_page("/history/", language=language)
    page.wait_for_url(lambda url: "/sign-in/?next=/history/" in url)
    sign_in(page, say, alice, "not the password")
    expect(page.get_by_role("alert")).to_be_visible()
    sign_in(page, say, alice)
    page.wait_for_url(lambda url: url.endswith("/history/"))
    elsewhere = open_page("/account/", alice, language=language)

    # The second factor is set up with the picture's secret; ten recovery codes are shown once.
    page.goto("/account/")
    page.get_by_role("link", name=say("Set it up")).click()
    expect(page.locator(".qr svg")).to_be_visible()
    code = page.get_by_role("textbox", name=say("Code"))
    code.fill("12")
    page.get_by_role("button", name=say("Turn on two-factor sign-in")).click()
    expect(page.locator(".field-error")).to_contain_text(
        say("This code is wrong or was used before. Wait for the next one and try again.")
    )
    device = TOTPDevice.objects.get(user=alice.user)
    assert page.locator("#two-factor-secret").inner_text().replace(" ", "").isalnum()
    TOTPDevice.objects.update(throttling_failure_count=0)
    code.fill(code_of(device))
    page.get_by_role("button", name=say("Turn on two-factor sign-in")).click()
    recovery = page.locator("#recovery-codes").inner_text().split()
    assert len(recovery) == 10
    check(page)
    page.get_by_role("link", name=say("I have kept them")).click()
    expect(page.locator("#second-title + p")).to_have_text(say("On: a code from your phone is asked for."))

    # Elsewhere is another browser: it is signed out from here.
    expect(page.locator(".session")).to_have_count(2)
    page.get_by_role("button", name=say("Sign out everywhere else")).click()
    expect(page.locator(".session")).to_have_count(1)
    elsewhere.reload()
    elsewhere.wait_for_url(lambda url: "/sign-in/" in url)

    # A password alone opens nothing any more; a code of the phone does, and a recovery code does once.
    sign_in(elsewhere, say, alice)
    check(elsewhere)
    elsewhere.get_by_label(say("Code")).fill(recovery[0])
    elsewhere.get_by_role("button", name=say("Continue")).click()
    elsewhere.wait_for_url(lambda url: url.endswith("/account/"))
    elsewhere.locator("summary.account").click()
    elsewhere.locator("header").get_by_role("button", name=say("Sign out"), exact=True).click()
    sign_in(elsewhere, say, alice)
    elsewhere.get_by_label(say("Code")).fill(recovery[0])
    elsewhere.get_by_role("button", name=say("Continue")).click()
    expect(elsewhere.locator(".field-error")).to_be_visible()
    TOTPDevice.objects.update(throttling_failure_count=0)
    elsewhere.get_by_label(say("Code")).fill(code_of(device, ahead=1))
    elsewhere.get_by_role("button", name=say("Continue")).click()
    expect(elsewhere.locator("#studio-form")).to_be_visible()

    page.goto("/account/delete/")
    page.get_by_label(say("Your password")).fill("not the password")
    page.get_by_role("button", name=say("Delete my account for good")).click()
    expect(page.locator(".field-error")).to_be_visible()
    page.get_by_label(say("Your password")).fill(PASSWORD)
    page.get_by_role("button", name=say("Delete my account for good")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(say("Your account is deleted"))
    check(page)
    assert not User.objects.filter(email=alice.user.email).exists()
    elsewhere.reload()
    elsewhere.wait_for_url(lambda url: "/sign-in/" in url)


def test_language_theme_and_password(open_page, alice, hibari):
    """They hold for the person: in this browser at once, in another one after signing in."""
    page = open_page("/account/", alice)
    page.get_by_label("Your name").fill("Alice M.")
    page.get_by_label("Language", exact=True).select_option("zh-hans")
    page.get_by_label("Theme", exact=True).select_option("dark")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("我的账号")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert 'data-theme="dark"' in page.content().split("<head>")[0], "the server wrote it: no flash"
    page.get_by_role("button", name="切换到浅色模式").first.click()
    page.get_by_role("button", name="English").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your account")
    assert "data-theme" not in page.content().split("<head>")[0], "as the system has it"
    page.locator("[name=old_password]").fill(PASSWORD)
    for name in ("new_password1", "new_password2"):
        page.locator(f"[name={name}]").fill("another horse battery")
    page.get_by_role("button", name="Change the password").click()
    expect(page.locator("#toasts")).to_contain_text("Your password is changed.")
    User.objects.filter(pk=alice.user.pk).update(language="zh-hans", theme="dark")
    other = open_page("/sign-in/")
    sign_in(other, words("en"), alice, "another horse battery")
    other.wait_for_url(lambda url: url.endswith("/"))
    expect(other.locator("html")).to_have_attribute("lang", "zh-Hans")
    expect(other.locator("html")).to_have_attribute("data-theme", "dark")
