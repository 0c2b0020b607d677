"""A model hub on this machine: as much of the two hubs' HTTP as their own clients use to get files."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class HubServer:
    """`files` by path. `cut_after` breaks the next answer off after so many bytes; `damaged` are served with one byte
    changed, so often as the number says."""

    files: dict[str, bytes]
    cut_after: int | None = None
    damaged: dict[str, int] = field(default_factory=dict)
    #: (path, first byte asked for) of every answer with content.
    served: list[tuple[str, int]] = field(default_factory=list)
    url: str = ""

    def __enter__(self) -> HubServer:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                if re.fullmatch(r"/api/models/[^/]+/[^/]+(/revision/\w+)?", url.path):
                    self._json(server._hugging_face())
                elif found := re.fullmatch(r"/[^/]+/[^/]+/resolve/\w+/(.+)", url.path):
                    self._file(found.group(1))
                elif url.path.endswith("/repo/files"):
                    self._json(server._model_scope())
                elif url.path.endswith("/repo") and "FilePath" in query:
                    self._file(query["FilePath"])
                elif url.path.endswith("/revisions"):
                    self._json(
                        {
                            "Code": 200,
                            "Data": {"RevisionMap": {"Branches": [{"Revision": "master"}], "Tags": []}},
                        }
                    )
                else:
                    self._answer(404, b"{}", {"Content-Type": "application/json"})

            def _json(self, content: dict[str, Any]) -> None:
                self._answer(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

            def _file(self, path: str) -> None:
                content = server.files.get(path)
                if content is None:
                    self._answer(404, b"", {})
                    return
                digest = hashlib.sha256(content).hexdigest()
                headers = {"ETag": f'"{digest}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
                if server.damaged.get(path, 0) and self.command == "GET":
                    server.damaged[path] -= 1
                    content = bytes([content[0] ^ 1]) + content[1:]
                start, status = 0, 200
                if wanted := re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
                    start, status = int(wanted.group(1)), 206
                    last = int(wanted.group(2) or len(content) - 1)
                    headers["Content-Range"] = f"bytes {start}-{min(last, len(content) - 1)}/{len(content)}"
                    content = content[start : last + 1]
                if self.command == "GET":
                    server.served.append((path, start))
                self._answer(status, content, headers)

            def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command == "HEAD":
                    return
                if server.cut_after is not None and len(content) > server.cut_after:
                    content, server.cut_after = content[: server.cut_after], None
                    self.close_connection = True
                self.wfile.write(content)

        self._httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._httpd.daemon_threads = True
        self._thread = threading.Thread(target=self._httpd.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._httpd.server_address[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._httpd.shutdown()
        self._httpd.server_close()
        self._thread.join()

    def _hugging_face(self) -> dict[str, Any]:
        siblings = []
        for path, content in self.files.items():
            entry: dict[str, Any] = {"rfilename": path, "size": len(content), "blobId": "0" * 40}
            if len(content) > 100:
                entry["lfs"] = {
                    "sha256": hashlib.sha256(content).hexdigest(),
                    "size": len(content),
                    "pointerSize": 134,
                }
            siblings.append(entry)
        return {"id": "some/model", "modelId": "some/model", "sha": COMMIT, "siblings": siblings, "tags": []}

    def _model_scope(self) -> dict[str, Any]:
        files = [
            {
                "Path": path,
                "Name": path.rpartition("/")[2],
                "Size": len(content),
                "Sha256": hashlib.sha256(content).hexdigest(),
                "Type": "blob",
                "Revision": COMMIT,
            }
            for path, content in self.files.items()
        ]
        files.append({"Path": "CosyVoice-BlankEN", "Name": "CosyVoice-BlankEN", "Size": 0, "Type": "tree"})
        return {"Code": 200, "Success": True, "Data": {"Files": files, "TotalCount": len(files)}}


def model_files() -> dict[str, bytes]:
    """A CosyVoice3's folder on a hub, small: what is needed, and what is not."""
    return {
        "cosyvoice3.yaml": b"sample_rate: 24000\n",
        "llm.pt": b"llm" * 20_000,
        "llm.rl.pt": b"tuned" * 20_000,
        "flow.pt": b"flow" * 50_000,
        "hift.pt": b"hift" * 500,
        "campplus.onnx": b"campplus" * 100,
        "speech_tokenizer_v3.onnx": b"tokens" * 1_000,
        "CosyVoice-BlankEN/config.json": b"{}",
        "CosyVoice-BlankEN/model.safetensors": b"qwen" * 2_000,
        "flow.decoder.estimator.fp32.onnx": b"trt" * 1_000,
        "README.md": b"# A model",
        "speech_tokenizer_v3.batch.onnx": b"not needed" * 100,
    }
