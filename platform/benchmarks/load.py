"""Clients: a lean one for counting requests, and many of the usual kind at once."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

import numpy as np

Result = TypeVar("Result")


def percentile(values: Sequence[float], percent: float) -> float:
    """By linear interpolation."""
    return float(np.percentile(values, percent))


def at_once(count: int, work: Callable[[int], Result]) -> list[Result]:
    """`work(index)` in `count` threads that start together; their results by index. The first error is raised."""
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    gate = threading.Barrier(count)

    def run(index: int) -> None:
        gate.wait()
        try:
            results[index] = work(index)
        except BaseException as error:  # noqa: BLE001 (raised again below)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[index] for index in range(count)]


def message(url: str, path: str, *, key: str = "", body: bytes | None = None, **headers: str) -> bytes:
    """An HTTP/1.1 request, ready to be sent: a POST when there is a body."""
    lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", f"host: {urlsplit(url).netloc}"]
    if key:
        lines.append(f"authorization: Bearer {key}")
    if body is not None:
        lines += [f"content-length: {len(body)}", "content-type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


class Client:
    """One kept connection. Some 50 µs of Python a request, so that the server is what is measured."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._address = (address.hostname or "", address.port or 80)
        self._socket = socket.create_connection(self._address, timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, request: bytes) -> None:
        """Send, without waiting for the answer."""
        self._socket.sendall(request)

    def ask(self, request: bytes) -> tuple[int, bytes]:
        """Status and body; the answer must have a Content-Length."""
        self.send(request)
        while b"\r\n\r\n" not in self._rest:
            self._read()
        head, _blank, rest = self._rest.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _colon, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        self._rest = rest
        while len(self._rest) < length:
            self._read()
        body, self._rest = self._rest[:length], self._rest[length:]
        return int(head.split(b" ", 2)[1]), body

    def _read(self) -> None:
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionError("the server has closed the connection")
        self._rest += data


def rate(url: str, request: bytes, *, clients: int, requests: int, expect: int) -> tuple[float, list[float]]:
    """Requests per second, and the seconds of each, by `clients` at once, `requests` in all."""
    each = -(-requests // clients)

    def work(_index: int) -> list[float]:
        taken = []
        with Client(url) as client:
            for _number in range(each):
                started = time.perf_counter()
                status, body = client.ask(request)
                taken.append(time.perf_counter() - started)
                if status != expect:
                    raise RuntimeError(f"HTTP {status}: {body[:300]!r}")
        return taken

    started = time.perf_counter()
    taken = [one for each_client in at_once(clients, work) for one in each_client]
    return len(taken) / (time.perf_counter() - started), taken
