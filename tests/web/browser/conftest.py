"""A real browser on the real pages. The worker is played by the test, so that every state can be held and looked at."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import av
import numpy as np
import pytest
from playwright.sync_api import Page

from synthesis import storage
from synthesis.models import SynthesisRequest
from synthesis.services import dispatch, workers
from tests import browsing, factories

browser = pytest.fixture(scope="package")(browsing.chromium)


@pytest.fixture
def alice(transactional_db) -> factories.Person:
    """The database is shared with the server's threads, so nothing here can be rolled back."""
    return factories.owner("Alice", team="Harbour Audio")


@pytest.fixture
def hibari(transactional_db):
    return factories.preset()


@pytest.fixture
def open_page(browser, live_server) -> Iterator[Callable[..., Page]]:
    """`open_page("/voices/", alice, language="zh", width=360, theme="dark")`; fails a test whose pages complain."""
    pages = browsing.Pages(browser, live_server.url)

    def opened(path: str, person: factories.Person | None = None, **look) -> Page:
        return pages.open(path, browsing.signed_in(person.user) if person else None, **look)

    yield opened
    pages.close()


@pytest.fixture
def worker(transactional_db) -> Worker:
    """The test as a worker."""
    return Worker()


class Worker:
    """Speaks what is queued, as far as it is told to."""

    def __init__(self) -> None:
        self.beat()

    def beat(self) -> None:
        """Be seen as alive."""
        workers.beat(name="played", engine="hibari", host="here", pid=1, state="idle")

    def claim(self) -> SynthesisRequest:
        """Take the next request."""
        (request,) = dispatch.claim(worker="played", engine="hibari")
        return request

    def finish(self, request: SynthesisRequest, seconds: float = 2.0) -> None:
        """Deliver a tone of `seconds` as its file."""
        sound = tone(seconds)
        key = storage.output_key(request, "mp3")
        storage.put(key, sound, "audio/mpeg")
        made = dispatch.Made(key, "audio/mpeg", len(sound), "0" * 64, seconds, 24_000)
        assert dispatch.complete(request, made)


def tone(seconds: float) -> bytes:
    """A quiet tone as MP3."""
    samples = (np.sin(np.arange(int(24_000 * seconds)) * 0.06) * 3_000).astype(np.int16)
    target = io.BytesIO()
    with av.open(target, "w", format="mp3") as container:
        stream = container.add_stream("libmp3lame", rate=24_000, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples[None, :], format="s16p", layout="mono")
        frame.sample_rate = 24_000
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    return target.getvalue()
