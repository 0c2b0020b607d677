"""Every page in both languages and themes, wide and narrow: axe; every one by keyboard; what the studio weighs."""

from __future__ import annotations

import gzip
from itertools import pairwise

import pytest
from playwright.sync_api import Response, expect

from accounts.services import audit, teams
from synthesis.models import Script
from synthesis.services import deliveries, rollup, voice_marks
from synthesis.services import webhooks as hooks
from tests import factories
from tests.browsing import check, show
from tests.synthesis.voicing import own as own_voice
from tests.web.test_scripts import sent
from tests.web.test_steering import spoken

pytestmark = pytest.mark.django_db(transaction=True)

#: The rules of axe whose answer another language, theme or width may change.
CHANGING = (
    *("color-contrast", "link-in-text-block", "target-size", "scrollable-region-focusable"),
    *("document-title", "html-has-lang", "button-name", "link-name", "label", "image-alt", "empty-heading"),
)


@pytest.fixture
def pages(alice, hibari, worker, client):
    """A team with something on each of its pages; their addresses."""
    factories.preset("Aki", gender="male")
    _made, link = teams.invite(
        actor=alice.actor, email="dora@example.org", role="viewer", accept_url="/invitations/{token}/"
    )
    factories.colleague(alice, "Bob")
    # Two lines at the most: axe takes those that are clipped for something that lies over the button below them.
    done = spoken(alice, text="The tide is out. It will be back tonight.")
    rollup.roll_up()
    hook = hooks.create(actor=alice.actor, url="https://93.184.216.34/hook", events=["synthesis.failed"])
    deliveries.ping(hook)
    audit.record("team.looked_at", actor=alice.actor)
    client.force_login(alice.user)
    voices = (hibari, factories.preset("Aki"))
    assert client.post("/scripts/", sent(voices)).status_code == 302
    factories.submit(alice, "One that waits.")
    worker.claim()
    mine = own_voice(alice)
    voice_marks.set_tags(actor=alice.actor, voice_id=mine.id, names=["narration"])
    signed_in = [
        *("/", "/voices/", "/voices/new/", "/history/", f"/requests/{done.id}/", "/scripts/"),
        *(f"/scripts/{Script.objects.get().id}/", "/team/", "/team/usage/", "/team/webhooks/"),
        *(f"/team/webhooks/{hook.id}/", "/team/audit/", "/team/settings/", "/account/"),
        *("/account/two-factor/", "/account/delete/", f"/voices/{hibari.id}/report/"),
        *(f"/voices/{mine.id}/", f"/voices/{mine.id}/delete/"),
    ]
    signed_out = ["/sign-in/", "/password/reset/", "/password/reset/sent/", link, "/nothing/here/"]
    return signed_in, [*signed_out, "/docs/", "/docs/studio"]


@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("zh", "dark")])
def test_every_page_in_every_look(open_page, alice, pages, language, theme):
    """Loaded once in each language; the window is made narrow and the theme changed where it stands."""
    signed_in, signed_out = pages
    other = "dark" if theme == "light" else "light"
    for person, addresses in ((alice, signed_in), (None, signed_out)):
        page = open_page(addresses[0], person, language=language, theme=theme)
        for address in addresses:
            first = address == addresses[0]
            if not first:
                page.goto(address)
            check(page, only=() if first or language == "en" else CHANGING)
            if first:  # what is around every page
                show(page, width=1280, theme=other)
                check(page, only=CHANGING)
            show(page, width=360, theme=other)
            check(page, only=() if first else CHANGING)
            show(page, width=1280, theme=theme)
    _reference(page)
    check(page)
    show(page, width=360, theme=other)
    check(page, only=CHANGING)


def _reference(page) -> None:
    """Routes of the API's reference open, by mouse and by keyboard."""
    page.goto("/docs/api")
    route = page.locator("#submit_a_text")
    route.locator("> summary").click()
    expect(route.locator("pre")).to_contain_text("curl $CHORUS_URL/v1/syntheses")
    other = page.locator("#list_voices > summary")
    other.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#list_voices")).to_have_attribute("open", "")
    route.locator(".api-answers summary").first.click()
    # The others are of the same template; axe would look at each for a long while.
    page.evaluate("document.querySelectorAll('.api-route:not([open])').forEach((one) => one.remove())")


#: Notes what gets the focus: where it is, and whether it can be seen that it has it.
NOTE_FOCUS = """() => {
    window.met = [];
    window.last = null;
    const seen = (one) => { const style = getComputedStyle(one);
        return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none"; };
    document.addEventListener("focusin", ({ target }) => {
        const around = [target, target.nextElementSibling, target.parentElement,
            target.closest("label, .drop, .input-with-icon")];
        window.met.push({
            name: target.outerHTML.slice(0, 160),
            index: [...document.querySelectorAll("*")].indexOf(target),
            visible: around.some((one) => one && seen(one)),
            // Cards come and go meanwhile: what counts is where the two stand now. Getting the
            // focus back, while the page changes around it, is no step.
            follows: !window.last?.isConnected || window.last === target
                || Boolean(window.last.compareDocumentPosition(target) & Node.DOCUMENT_POSITION_FOLLOWING),
        });
        window.last = target;
    });
    // It is scrolled into sight after it got the focus.
    document.addEventListener("focusout", ({ target }) => {
        const box = target.getBoundingClientRect();
        const label = target.labels?.[0]?.getBoundingClientRect() ?? box;
        const last = window.met.at(-1);
        if (last) last.inside = Math.max(box.bottom, label.bottom) > 0 && Math.min(box.top, label.top) < innerHeight
            && Math.max(box.right, label.right) > 0 && Math.min(box.left, label.left) < innerWidth;
    });
    // From the top, also where a field has the focus to begin with.
    document.body.tabIndex = -1;
    document.body.focus();
}"""
#: More than one of our pages has.
MOST_STOPS = 80


def test_every_page_by_keyboard(open_page, alice, pages):
    """Tab goes through everything in the order of the page, and what has the focus is seen, in the window, marked."""
    signed_in, signed_out = pages
    for person, addresses in ((alice, signed_in), (None, signed_out[:4])):
        page = open_page(addresses[0], person)
        for address in addresses:
            page.goto(address)
            page.evaluate(NOTE_FOCUS)
            for _press in range(MOST_STOPS // 10):
                for _key in range(10):
                    page.keyboard.press("Tab")
                if page.evaluate("document.activeElement === document.body"):
                    break
            met = [one for one in page.evaluate("window.met") if not one["name"].startswith("<body")]
            assert len(met) > 3, address
            for before, one in pairwise(met[:-1]):
                if one["index"] < met[0]["index"] or one["name"] == met[0]["name"]:
                    break  # round to the beginning
                assert one["visible"], f"{address}: no mark around {one['name']}"
                assert one["inside"], f"{address}: out of sight: {one['name']}"
                assert one["follows"], f"{address}: out of order: {one['name']} after {before['name']}"


def test_skip_link_menu_dialogs_and_shortcuts(open_page, alice, hibari):
    page = open_page("/history/", alice)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.locator("summary.account").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Your account")).to_be_visible()
    check(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Your account")).to_be_hidden()
    expect(page.locator("summary.account")).to_be_focused()

    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet).to_be_visible()
    check(page, without="target-size")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("input[type=search]").first).to_be_focused()
    page.locator("h1").click()
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.locator("h1")).to_have_text("Studio")
    page.wait_for_load_state("load")
    for key, name in (("v", "Choose a voice"), ("Control+k", "Insert and direct")):
        opener = page.locator("[data-picker-button]" if key == "v" else "[data-shortcut-target=palette]")
        dialog = page.get_by_role("dialog", name=name)
        opener.focus()
        page.keyboard.press(key)
        expect(dialog).to_be_visible()
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(opener).to_be_focused()
    page.locator("h1").click()
    page.keyboard.press("n")
    expect(page.locator("textarea[name=text]")).to_be_focused()
    page.keyboard.press("Control+/")
    page.locator("[data-letters]").uncheck()
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("v")
    expect(page.get_by_role("dialog", name="Choose a voice")).to_be_hidden()


def test_the_studio_is_light(open_page, alice, hibari, capsys):
    """Under 150 kB over the wire, as Caddy and WhiteNoise compress it."""
    page = open_page("about:blank", alice)
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto("/", wait_until="load")
    sizes = [len(gzip.compress(answer.body(), 6)) for answer in answers if answer.status == 200]
    with capsys.disabled():
        print(f"\nThe studio: {sum(sizes) / 1000:.0f} kB in {len(sizes)} files, gzip")
    assert 30_000 < sum(sizes) < 150_000
