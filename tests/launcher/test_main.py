"""The command line: whatever goes wrong is one line that says what to do."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from launcher import main as launcher_main
from launcher import processes
from tests.launcher import support


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("chorus: ")
    return done.stderr


def test_a_port_in_use(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = support.chorus("up", "--data", tmp_path / "data", "--port", str(port))
    assert f"port {port} is in use: choose another with --port" in one_line(done)


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_that_is_not_ours(tmp_path, host):
    done = support.chorus("up", "--data", tmp_path / "data", "--host", host, "--port", "0")
    assert f"cannot listen on {host}" in one_line(done)


def test_a_folder_that_cannot_be_written():
    assert "choose a folder that you may write to" in one_line(
        support.chorus("up", "--data", "/proc/nowhere")
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_of_somebody_else(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    somebody_else = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
    done = subprocess.run(
        [*somebody_else, sys.executable, support.ROOT / "chorus", "up", "--data", folder],
        env=support.clean_environment(HOME="/nonexistent"),
        capture_output=True,
        text=True,
        check=False,
    )
    if "can't open file" in done.stderr or "Permission denied: '/root" in done.stderr:
        pytest.skip("another user cannot read this clone or this interpreter")
    assert "Permission denied" in one_line(done)


def test_a_folder_with_other_files(tmp_path):
    (tmp_path / "thesis.txt").touch()
    assert "holds other files" in one_line(support.chorus("up", "--data", tmp_path))


@pytest.mark.parametrize("command", ["stop", "manage"])
def test_what_needs_a_running_service_says_so(tmp_path, command):
    done = support.chorus(command, "--data", tmp_path / "data")
    assert f"start it with ./chorus up --data {tmp_path / 'data'}" in one_line(done)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dance"],
        ["up", "--port", "99999"],
        ["up", "--port", "x"],
        ["up", "--engine", "abacus"],
        ["up", "--workers", "-1"],
        ["up", "--frobnicate"],
        ["stop", "now"],
    ],
)
def test_wrong_usage(arguments):
    done = support.chorus(*arguments)
    assert done.returncode == 2
    assert "usage: ./chorus" in done.stderr
    assert "Traceback" not in done.stderr


def test_help():
    done = support.chorus("up", "--help")
    assert done.returncode == 0
    for option in ("--data", "--host", "--port", "--workers", "--engine"):
        assert option in done.stdout


def test_it_needs_no_package():
    """A fresh machine has none."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(support.ROOT / "chorus"), "up", "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_an_old_python_reads_the_entry_far_enough_to_say_so():
    source = (support.ROOT / "chorus").read_text()
    script = "import sys; sys.version_info = (3, 8, 1); sys.argv[0] = 'chorus'; sys.path = []\n"
    namespace = repr({"__name__": "__main__", "__file__": str(support.ROOT / "chorus")})
    done = subprocess.run(
        [sys.executable, "-c", f"{script}exec(compile({source!r}, 'chorus', 'exec'), {namespace})"],
        env={"PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "chorus: Python 3.8 cannot run Chorus: install Python 3.11, 3.12 or 3.13\n"


@pytest.mark.parametrize(
    ("host", "shown", "allowed"),
    [
        ("127.0.0.1", "127.0.0.1", {"localhost", "127.0.0.1", "[::1]"}),
        ("::1", "[::1]", {"localhost", "127.0.0.1", "[::1]"}),
        ("192.0.2.7", "192.0.2.7", {"localhost", "127.0.0.1", "[::1]", "192.0.2.7"}),
        ("2001:db8::7", "[2001:db8::7]", {"localhost", "127.0.0.1", "[::1]", "[2001:db8::7]"}),
    ],
)
def test_names_of_the_address(host, shown, allowed):
    assert processes.shown_host(host) == shown
    assert set(processes.allowed_hosts(host)) == allowed


def test_a_server_for_all_answers_to_the_names_of_the_machine():
    assert socket.gethostname() in processes.allowed_hosts("0.0.0.0")  # noqa: S104 (not bound)


@pytest.mark.parametrize(("told", "kept"), [("1", True), ("", False)])
def test_processes_keep_their_bytecode_though_python_is_told_not_to(tmp_path, monkeypatch, told, kept):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", told)
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    launcher_main._keep_bytecode(tmp_path)
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ
    assert (os.environ.get("PYTHONPYCACHEPREFIX") == str(tmp_path / ".venv" / "pycache")) is kept
