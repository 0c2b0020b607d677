"""Weights from a hub: what is needed is got, resumed, checked; what goes wrong is one line.

With a client of our own everywhere; with the hubs' real clients where they are installed.
"""

from __future__ import annotations

import importlib.util
import urllib.request
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher import hub
from launcher.hub import HubError, RemoteFile, digest, download, explain, wanted, with_rl
from tests.launcher.hub_server import HubServer, model_files


@pytest.fixture
def server() -> Iterator[HubServer]:
    with HubServer(model_files()) as made:
        yield made


class Client:
    """The least that a hub's client does: parts stay beside the file, and the next call asks for the rest."""

    name = "the hub"

    def __init__(self, server: HubServer) -> None:
        self.server = server

    def files(self) -> list[RemoteFile]:
        from hashlib import sha256

        return [
            RemoteFile(path, len(content), sha256(content).hexdigest() if len(content) > 100 else "")
            for path, content in self.server.files.items()
        ]

    def fetch(self, path: str, folder: Path) -> None:
        target = folder / path
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        have = part.stat().st_size if part.exists() else 0
        url = f"{self.server.url}/some/model/resolve/main/{path}"
        request = urllib.request.Request(url)  # noqa: S310
        request.add_header("Range", f"bytes={have}-")
        with urllib.request.urlopen(request, timeout=5) as answer, part.open("ab") as out:  # noqa: S310
            expected = have + int(answer.headers["Content-Length"])
            while block := answer.read(4096):
                out.write(block)
        if part.stat().st_size < expected:
            raise ConnectionError("the connection broke off")
        part.rename(target)


def _get(server: HubServer, folder: Path, *, rl: bool = False, trt: bool = False) -> list[str]:
    said: list[str] = []
    client = Client(server)
    download(client, wanted(client.files(), rl=rl, trt=trt), folder, said.append)
    return said


def test_gets_what_is_needed_and_no_more(server: HubServer, tmp_path: Path) -> None:
    said = _get(server, tmp_path)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    unneeded = {
        "README.md",
        "speech_tokenizer_v3.batch.onnx",
        "llm.rl.pt",
        "flow.decoder.estimator.fp32.onnx",
    }
    assert found == set(server.files) - unneeded | {hub.MANIFEST}
    assert (tmp_path / "flow.pt").read_bytes() == server.files["flow.pt"]
    assert said[0].startswith("Getting 8 of 8 files from the hub: 277 kB (")


def test_options_add_and_replace(server: HubServer, tmp_path: Path) -> None:
    _get(server, tmp_path, rl=True, trt=True)
    assert (tmp_path / "llm.rl.pt").exists()
    assert not (tmp_path / "llm.pt").exists()
    assert (tmp_path / "flow.decoder.estimator.fp32.onnx").exists()


def test_a_second_call_gets_nothing(server: HubServer, tmp_path: Path) -> None:
    _get(server, tmp_path)
    server.served.clear()
    assert _get(server, tmp_path) == [f"All 8 files are in {tmp_path} and whole"]
    assert server.served == []


def test_goes_on_where_it_was_interrupted(server: HubServer, tmp_path: Path) -> None:
    server.cut_after = 150_000
    said = _get(server, tmp_path)
    assert any("broke off" in line and "trying again" in line for line in said)
    assert [start for path, start in server.served if path == "flow.pt"] == [0, 150_000]
    assert digest(tmp_path / "flow.pt") == digest_of(server.files["flow.pt"])


def digest_of(content: bytes) -> str:
    from hashlib import sha256

    return sha256(content).hexdigest()


def test_a_damaged_file_is_got_again(server: HubServer, tmp_path: Path) -> None:
    server.damaged["flow.pt"] = 1
    said = _get(server, tmp_path)
    assert any("flow.pt arrived damaged" in line for line in said)
    assert (tmp_path / "flow.pt").read_bytes() == server.files["flow.pt"]


def test_one_that_stays_damaged_is_not_kept(server: HubServer, tmp_path: Path) -> None:
    server.damaged["flow.pt"] = 99
    with pytest.raises(HubError, match="arrives damaged every time"):
        _get(server, tmp_path)
    assert not (tmp_path / "flow.pt").exists()


@pytest.mark.parametrize("name", ["flow.pt", "CosyVoice-BlankEN/config.json"])
def test_what_was_changed_on_the_disk_is_got_again(server: HubServer, tmp_path: Path, name: str) -> None:
    _get(server, tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(bytes([content[0] ^ 1]) + content[1:])
    server.served.clear()
    with_client = Client(server)
    files = wanted(with_client.files(), rl=False, trt=False)
    damaged = [
        file.path for file in files if not hub.is_whole(tmp_path / file.path, file, hub._manifest(tmp_path))
    ]
    assert damaged == [name]


def test_a_full_disk_is_said_before_anything_is_fetched(
    server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage(10**9, 9 * 10**8, 10**8))
    with pytest.raises(HubError, match=r"has 100 MB free and the weights need 269 MB: .*--dir"):
        _get(server, tmp_path)
    assert server.served == []


def test_a_model_of_another_kind_is_said(server: HubServer) -> None:
    del server.files["cosyvoice3.yaml"]
    with pytest.raises(HubError, match=r"no cosyvoice3\.yaml.*--model"):
        wanted(Client(server).files(), rl=False, trt=False)


def test_no_connection_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = HubServer(model_files())
    client = Client(server)
    server.url = "http://127.0.0.1:9"
    with pytest.raises(HubError, match=r"config\.json: URLError.*it goes on"):
        download(client, wanted(client.files(), rl=False, trt=False), tmp_path, lambda line: None)


def test_errors_in_words() -> None:
    class Answer:
        def __init__(self, status_code: int) -> None:
            self.status_code = status_code

    def failed(status: int) -> Exception:
        error = RuntimeError("…")
        error.response = Answer(status)  # type: ignore[attr-defined]
        return error

    assert "account" in explain(failed(403), "the hub")
    assert "--model" in explain(failed(404), "the hub")
    assert "at the moment" in explain(failed(503), "the hub")
    assert "HTTPS_PROXY" in explain(ConnectionError("refused"), "the hub")
    assert explain(ValueError("odd"), "the hub") == "ValueError: odd"


def test_the_tuned_model_is_a_folder_of_links(server: HubServer, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    _get(server, folder, rl=True)
    for _ in range(2):
        tuned = with_rl(folder)
    assert tuned == tmp_path / "model-RL"
    assert (tuned / "llm.pt").read_bytes() == server.files["llm.rl.pt"]
    assert (tuned / "CosyVoice-BlankEN" / "config.json").exists()
    assert not (tuned / "llm.rl.pt").exists()
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    folder.rename(moved / "model")
    tuned.rename(moved / "model-RL")
    assert (moved / "model-RL" / "llm.pt").read_bytes() == server.files["llm.rl.pt"], "the links are relative"


# -- The hubs' own clients


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("source", "variable"),
    [
        pytest.param(
            "huggingface",
            "HF_ENDPOINT",
            marks=pytest.mark.skipif(not _has("huggingface_hub"), reason="huggingface_hub is not installed"),
        ),
        pytest.param(
            "modelscope",
            "MODELSCOPE_ENDPOINT",
            marks=pytest.mark.skipif(not _has("modelscope_hub"), reason="modelscope is not installed"),
        ),
    ],
)
def test_with_the_hubs_own_client(
    server: HubServer,
    tmp_path: Path,
    source: str,
    variable: str,
) -> None:
    """In a process of its own, as the installer runs it: the clients read their settings when they are imported."""
    import os
    import subprocess
    import sys

    environment = {
        **os.environ,
        variable: server.url,
        "HOME": str(tmp_path / "home"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "PYTHONPATH": str(Path(hub.__file__).parents[1]),
        "no_proxy": "127.0.0.1",
    }
    command = [sys.executable, "-m", "launcher.hub", "--source", source, "--model", "some/model"]
    command += ["--into", str(tmp_path / "model"), "--rl"]
    server.cut_after = 150_000
    server.damaged["hift.pt"] = 1
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == str(tmp_path / "model-RL")
    for path in ("flow.pt", "hift.pt", "llm.rl.pt", "CosyVoice-BlankEN/config.json"):
        assert (tmp_path / "model" / path).read_bytes() == server.files[path], path
    server.served.clear()
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert "All 8 files are in" in again.stdout, again.stdout + again.stderr
    assert server.served == []
