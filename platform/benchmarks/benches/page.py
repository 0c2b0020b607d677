"""The studio over a slow line on a slow processor: its weight, first paint, jumps, and until it can be worked with."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks import load, service
from benchmarks.results import Aim, Line
from launcher.checks import BROWSERS, LEAN_BROWSER
from tests.live.stack import Stack

#: The "Slow 4G" of Chromium's developer tools: bytes a second, and ms by which each request is late.
SLOW_LINE = {
    "offline": False,
    "latency": 562.5,
    "downloadThroughput": 0.9 * 1_600_000 / 8,
    "uploadThroughput": 0.9 * 750_000 / 8,
}
#: How many times slower the processor is.
SLOW_PROCESSOR = 4
#: Notes what moves, and types until the page counts what is typed and htmx holds the form.
_PROBE = """
window.jumps = 0;
new PerformanceObserver((list) => {
  for (const jump of list.getEntries()) if (!jump.hadRecentInput) window.jumps += jump.value;
}).observe({ type: "layout-shift", buffered: true });
const timer = setInterval(() => {
  const form = document.querySelector("#studio-form");
  const area = form?.querySelector("textarea[name=text]");
  const count = form?.querySelector("[data-count-now]");
  if (!count) return;
  area.value = ".";
  area.dispatchEvent(new Event("input", { bubbles: true }));
  if (count.textContent.trim() === "1" && "htmx-internal-data" in form) {
    window.usable = performance.now();
    clearInterval(timer);
  }
  area.value = "";
}, 20);
"""
_SEEN = """() => ({
  usable: window.usable / 1000,
  paint: performance.getEntriesByName("first-contentful-paint")[0].startTime / 1000,
  jumps: window.jumps,
})"""


@dataclass(slots=True)
class Visit:
    """Seconds from the navigation on; `jumps` is Chromium's layout shift score; `bytes` came over the line, by kind."""

    paint: float
    usable: float
    jumps: float
    submitted: float
    bytes: Counter[str] = field(default_factory=Counter)


def run(quick: bool) -> list[Line]:
    """See the module. Times stand beside the same visit without brakes, through the service's own plain HTTP."""
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is None:
        raise RuntimeError(f"there is no chromium (as root: apt-get install {LEAN_BROWSER})")
    times = 1 if quick else 5
    with service.running("hibari") as running, sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        session = _sign_in(browser, running)
        _visit(browser, running, session, slow=False)
        free = [_visit(browser, running, session, slow=False)[0] for _time in range(times)]
        slow = [_visit(browser, running, session, slow=True) for _time in range(times)]
        browser.close()
    first, again = [one for one, _two in slow], [two for _one, two in slow]
    kinds = ", ".join(f"{kind} {size / 1000:.0f} kB" for kind, size in first[0].bytes.most_common())
    lines = [
        Line("weight of a first visit", _kilobytes(first), "kB", aim=Aim("value", most=150), note=kinds),
        Line("weight of a second visit", _kilobytes(again), "kB"),
        Line(
            "what moves while it loads",
            max(visit.jumps for visit in first + again),
            "",
            aim=Aim("value", most=0.1),
            note="Chromium's layout shift score, the worst; 0.1 is where the Web Vitals' “good” ends",
        ),
    ]
    for name, of in (("first paint", "paint"), ("usable", "usable"), ("a press on “Speak”", "submitted")):
        beside = _median(free, of)
        lines.append(Line(f"{name}, first visit", _median(first, of), "s", beside, "without brakes"))
        lines.append(Line(f"{name}, second visit", _median(again, of), "s", beside, "without brakes"))
    return lines


def _sign_in(browser: Browser, running: Stack) -> Any:
    context = browser.new_context(base_url=running.url, locale="en-US")
    page = context.new_page()
    page.goto("/")
    page.locator("input[name=username]").fill(running.ready["email"])
    page.locator("input[name=password]").fill(running.ready["password"])
    page.locator("main button").click()
    page.wait_for_url(f"{running.url}/")
    state = context.storage_state()
    context.close()
    return state


def _visit(browser: Browser, running: Stack, session: Any, *, slow: bool) -> tuple[Visit, Visit]:
    """The first visit with an empty cache, and the next one."""
    context = browser.new_context(base_url=running.url, storage_state=session, locale="en-US")
    page = context.new_page()
    page.add_init_script(_PROBE)
    tools = context.new_cdp_session(page)
    tools.send("Network.enable")
    if slow:
        tools.send("Network.emulateNetworkConditions", SLOW_LINE)
        tools.send("Emulation.setCPUThrottlingRate", {"rate": SLOW_PROCESSOR})
    kinds: dict[str, str] = {}
    came: Counter[str] = Counter()
    tools.on("Network.responseReceived", lambda event: kinds.update({event["requestId"]: event["type"]}))
    tools.on(
        "Network.loadingFinished",
        lambda event: came.update({kinds.get(event["requestId"], "Other"): int(event["encodedDataLength"])}),
    )
    visits = []
    for _visit_number in range(2):
        came.clear()
        visits.append(_look(page, came))
    context.close()
    return visits[0], visits[1]


def _look(page: Page, came: Counter[str]) -> Visit:
    page.goto("/", wait_until="load", timeout=120_000)
    page.wait_for_function("() => window.usable")
    seen = page.evaluate(_SEEN)
    weight = Counter(came)
    count = page.locator("article.request").count()
    page.locator("textarea[name=text]").fill("Hello.")
    submitted = page.evaluate(
        """async (count) => {
            const start = performance.now();
            document.querySelector("#speak").click();
            while (document.querySelectorAll("article.request").length === count) {
                await new Promise((resolve) => setTimeout(resolve, 10));
            }
            return (performance.now() - start) / 1000;
        }""",
        count,
    )
    return Visit(**seen, submitted=submitted, bytes=weight)


def _kilobytes(visits: list[Visit]) -> float:
    return max(sum(visit.bytes.values()) for visit in visits) / 1000


def _median(visits: list[Visit], name: str) -> float:
    return load.percentile([getattr(visit, name) for visit in visits], 50)
