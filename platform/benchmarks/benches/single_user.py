"""The same load on a page for one user, as upstream's demo serves CosyVoice: Gradio, with the same engine.

`demo.queue(max_size=4, default_concurrency_limit=2)`, as upstream's `webui.py` says. Gradio is installed for this
alone, into an environment of its own beside this folder, which borrows everything else from the service's.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from benchmarks import load, service, texts
from benchmarks.results import Line
from tests.live.stack import free_port

GRADIO = "gradio==5.49.1"
CALLERS = 16
ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = ROOT / ".bench" / "gradio"
PAGE = Path(__file__).resolve().parents[1] / "gradio_page.py"


def run(quick: bool) -> list[Line]:
    """See the module. Each of sixteen callers asks for its texts one after the other."""
    each = 2 if quick else 6
    todo = [[texts.sentence(index * 100 + number) for number in range(each)] for index in range(CALLERS)]
    python = _environment()
    with service.running(service.engine(quick)) as running:
        voice = service.preset(running)

        def ours(text: str) -> None:
            with running.client() as client:
                body = {"input": text, "voice": voice.id}
                client.post("/v1/audio/speech", json=body).raise_for_status()

        chorus = _measure(todo, ours)
        # The service's worker is idle from here on: the page has the same cores.
        service.settle(running)
        with _page(python, running.environment(), voice) as url:
            page = _measure(todo, lambda text: _ask(url, text))
    total = CALLERS * each
    return [
        Line("answers a minute", chorus.rate, "/min", page.rate, "Gradio", note=f"{total} requests asked"),
        Line("failed", float(chorus.failed), "", float(page.failed), "Gradio", note=page.why),
        Line("median wait", chorus.median, "s", page.median, "Gradio, of those answered"),
    ]


class _Measured:
    """What came of a load."""

    def __init__(self, seconds: float, taken: list[float], failures: list[str]) -> None:
        self.rate = 60 * len(taken) / seconds
        self.failed = len(failures)
        self.median = load.percentile(taken, 50) if taken else 0.0
        self.why = f"Gradio's first failure: {failures[0]}" if failures else ""


def _measure(todo: list[list[str]], ask: Callable[[str], None]) -> _Measured:
    taken: list[float] = []
    failures: list[str] = []

    def work(index: int) -> None:
        for text in todo[index]:
            started = time.perf_counter()
            try:
                ask(text)
            except (httpx.HTTPError, RuntimeError) as error:
                failures.append(str(error)[:200])
            else:
                taken.append(time.perf_counter() - started)

    started = time.perf_counter()
    load.at_once(len(todo), work)
    return _Measured(time.perf_counter() - started, taken, failures)


def _ask(url: str, text: str) -> None:
    """One click on the page's button: a call by Gradio's own protocol, and the file that it names."""
    with httpx.Client(base_url=url, timeout=300) as client:
        answer = client.post("/gradio_api/call/speak", json={"data": [text]})
        answer.raise_for_status()
        path = f"/gradio_api/call/speak/{answer.json()['event_id']}"
        event = ""
        with client.stream("GET", path) as stream:
            for line in stream.iter_lines():
                if line.startswith("event:"):
                    event = line.partition(":")[2].strip()
                elif line.startswith("data:") and event in {"complete", "error"}:
                    data = json.loads(line.partition(":")[2])
                    break
            else:
                raise RuntimeError("the page's stream ended without an answer")
        if event == "error":
            raise RuntimeError(f"the page answered with an error: {data}")
        client.get(data[0]["url"]).raise_for_status()


def _environment() -> Path:
    """An interpreter with Gradio and, behind it, the service's own packages."""
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / "done").exists():
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", GRADIO], check=True
        )
        (ENVIRONMENT / "done").touch()
    found = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    # A later entry of the path: Gradio's own versions of shared packages come first.
    borrowed = [sysconfig.get_path("purelib"), str(ROOT), str(ROOT / "platform")]
    (Path(found) / "service.pth").write_text("\n".join(borrowed) + "\n")
    return python


@contextlib.contextmanager
def _page(python: Path, environment: dict[str, str], voice: service.Preset) -> Iterator[str]:
    port = free_port()
    page = environment | {"GRADIO_ANALYTICS_ENABLED": "False", "MALLOC_ARENA_MAX": "2"}
    process = subprocess.Popen(
        [python, PAGE, str(port), voice.preset, voice.language],
        env=page,
        cwd=ROOT,
        stdout=sys.stderr,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 120
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{url}/config").status_code == 200:
                    break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the Gradio page does not start")
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(30)
