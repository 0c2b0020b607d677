"""Stands behind the nginx of the tests: an ASGI application that says what reached it, holds, and streams.

`python -m uvicorn tests.ops.upstream:application`; NAME in the environment is which of the two processes it plays.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from typing import Any
from urllib.parse import parse_qsl

NAME = os.environ.get("NAME", "")


async def application(scope: Any, receive: Any, send: Any) -> None:
    """`?hold=S` answers after S seconds; `?stream=N&every=S` sends N pieces; `?bytes=N` so many bytes, by range."""
    if scope["type"] != "http":
        return
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    query = dict(parse_qsl(scope["query_string"].decode()))
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    if "hold" in query:
        await asyncio.sleep(float(query["hold"]))
    if "stream" in query:
        await _start(send, 200, {"content-type": query.get("type", "text/event-stream"), "x-backend": NAME})
        for number in range(int(query["stream"])):
            await asyncio.sleep(float(query["every"]) if number else 0)
            await send(
                {"type": "http.response.body", "body": f"data: {number}\n\n".encode(), "more_body": True}
            )
        await send({"type": "http.response.body", "body": b""})
        return
    if "bytes" in query:
        whole = bytes(int(query["bytes"]))
        if "range" in headers:
            first, last = (int(part) for part in headers["range"].removeprefix("bytes=").split("-"))
            part = whole[first : last + 1]
            extra = {"content-range": f"bytes {first}-{last}/{len(whole)}", "content-type": "audio/mpeg"}
            await _start(send, 206, extra | {"content-length": str(len(part))})
            await send({"type": "http.response.body", "body": part})
            return
        await _start(send, 200, {"content-type": "audio/mpeg", "content-length": str(len(whole))})
        await send({"type": "http.response.body", "body": whole})
        return
    seen = {
        "backend": NAME,
        "method": scope["method"],
        "path": scope["path"],
        "headers": headers,
        "size": size,
    }
    body = json.dumps(seen | {"padding": "x" * 2000 if "pad" in query else ""}).encode()
    await _start(send, 200, {"content-type": "application/json", "content-length": str(len(body))})
    await send({"type": "http.response.body", "body": body})


async def _start(send: Any, status: int, headers: dict[str, str]) -> None:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


def unpacked(body: bytes) -> bytes:
    """What gzip packed."""
    return gzip.decompress(body)
