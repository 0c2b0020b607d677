"""A connection that breaks: between a client and a server, one TCP proxy that cuts where a test says."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit


class Flaky:
    """`cuts` are taken by one connection each whose request contains the word: so many bytes of the answer are let
    through, then both sides are closed. `seen` are the requests as they were sent.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname, parts.port)
        self.cuts: list[tuple[bytes, int]] = []
        self.seen: list[bytes] = []
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                inner, _address = self._listener.accept()
                threading.Thread(target=self._serve, args=(inner,), daemon=True).start()

    def _serve(self, inner: socket.socket) -> None:
        with contextlib.suppress(OSError), inner, socket.create_connection(self._target) as outer:
            self._open += [inner, outer]
            request = inner.recv(65536)
            self.seen.append(request)
            room = self._room(request)
            outer.sendall(request)  # first: what follows of it must not overtake it
            threading.Thread(target=self._forward, args=(inner, outer), daemon=True).start()
            while room and (piece := outer.recv(min(65536, room))):
                inner.sendall(piece)
                room -= len(piece)
            for one in (inner, outer):
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def _room(self, request: bytes) -> int:
        for cut in self.cuts:
            if cut[0] in request:
                self.cuts.remove(cut)
                # Even when nothing is to come through, the server must have done its work.
                return cut[1]
        return 1 << 62

    def _forward(self, inner: socket.socket, outer: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := inner.recv(65536):
                outer.sendall(piece)

    def close(self) -> None:
        self._listener.close()
        for one in self._open:
            one.close()


@contextmanager
def between(url: str) -> Iterator[Flaky]:
    flaky = Flaky(url)
    try:
        yield flaky
    finally:
        flaky.close()
