"""The virtual environment: made once, again when the pins change, and one line when it cannot be made."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from launcher import install as module
from launcher.errors import LauncherError
from launcher.install import install
from launcher.progress import Progress
from tests.launcher import support

_PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "nothing"
version = "1"
dependencies = [{dependencies}]
"""

_INSTALL = """
import sys
from pathlib import Path
from launcher.errors import LauncherError, fail
from launcher.install import install
from launcher.progress import Progress
try:
    install(Path(sys.argv[1]), ("embedded",), Progress())
except LauncherError as error:
    sys.exit(fail(error))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project whose environment looks installed, with the extra `cpu`."""
    (tmp_path / "pyproject.toml").write_text(_PYPROJECT.format(dependencies='"django==1"'))
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    stamp(tmp_path, root=str(tmp_path), fingerprint=module._fingerprint(tmp_path), extras=["cpu"])
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What would be made and installed."""
    calls: list[object] = []
    monkeypatch.setattr(module, "_make", lambda venv: calls.append("make"))
    monkeypatch.setattr(module, "_install_packages", lambda root, venv, extras, say: calls.append(extras))
    return calls


def stamp(folder: Path, **content: object) -> None:
    (folder / ".venv" / "chorus.json").write_text(json.dumps(content))


def test_nothing_is_done_twice(root, asked):
    assert install(root, ("cpu",), Progress()) == root / ".venv"
    assert asked == []


def test_a_link_to_another_clones_environment_is_not_emptied(tmp_path):
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    link = tmp_path / ".venv"
    link.symlink_to(other)
    with pytest.raises(LauncherError, match="is a link: remove it"):
        module._make(link)
    assert (other / "bin").is_dir()


def test_another_extra_is_added_to_those_that_are_there(root, asked):
    install(root, ("embedded",), Progress())
    assert asked == [["cpu", "embedded"]]
    install(root, ("cpu", "embedded"), Progress())
    assert asked == [["cpu", "embedded"]]


def test_changed_pins_are_installed(root, asked):
    (root / "pyproject.toml").write_text(_PYPROJECT.format(dependencies='"django==2"'))
    install(root, ("cpu",), Progress())
    assert asked == [["cpu"]]


def test_changed_tool_settings_are_not(root, asked):
    with (root / "pyproject.toml").open("a") as file:
        file.write("[tool.ruff]\nline-length = 79\n")
    install(root, ("cpu",), Progress())
    assert asked == []


def test_a_moved_clone_gets_a_new_environment(root, asked):
    stamp(root, root="/somewhere/else", fingerprint=module._fingerprint(root), extras=["cpu"])
    install(root, ("cpu",), Progress())
    assert asked == ["make", ["cpu"]]


def test_an_interpreter_that_is_gone_is_replaced(root, asked):
    (root / ".venv" / "bin" / "python").unlink()
    install(root, ("cpu",), Progress())
    assert asked == ["make", ["cpu"]]


def test_a_failed_install_is_tried_again(root, monkeypatch):
    def fail(*arguments: object) -> None:
        raise LauncherError("no network")

    monkeypatch.setattr(module, "_install_packages", fail)
    with pytest.raises(LauncherError):
        install(root, ("embedded",), Progress())
    assert not (root / ".venv" / "chorus.json").exists()


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            "error: Failed to fetch: `x`\n  Caused by: dns error: no such host",
            "no package index can be reached",
        ),
        ("ERROR: No matching distribution found for uv==0.13.9", "no package index can be reached"),
        ("error: failed to write\nOSError: [Errno 28] No space left on device", "the disk is full"),
        ("note\nerror: the wheel is broken\nhint", "it: error: the wheel is broken"),
        ("", "it: no message"),
    ],
)
def test_what_tools_say_becomes_one_line(output, expected):
    line = module._explain(output, "it")
    assert expected in line
    assert "\n" not in line


def test_pip_settings_reach_uv(monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels /more")
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "not" / "yet"))
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    assert module._uv_options("/scratch") == [
        *("--find-links", "/wheels", "--find-links", "/more"),
        *("--default-index", "https://mirror.example/simple", "--no-index"),
    ]
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert module._uv_options("/scratch")[-2:] == ["--cache-dir", "/scratch"]


def test_no_network_is_one_line(tmp_path):
    (tmp_path / "pyproject.toml").write_text(_PYPROJECT.format(dependencies=""))
    done = subprocess.run(
        [sys.executable, "-c", _INSTALL, str(tmp_path)],
        env=support.clean_environment(
            PYTHONPATH=str(support.ROOT / "platform"),
            PIP_INDEX_URL="http://127.0.0.1:9/simple",
            PIP_CONFIG_FILE="/dev/null",
            PIP_FIND_LINKS=str(tmp_path),
            PIP_DEFAULT_TIMEOUT="2",
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 1
    assert "no package index can be reached" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    shutil.rmtree(tmp_path / ".venv")
