"""Chorus's own processes: how each is started, and the environment that tells it where everything is."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from launcher import front
from launcher.files import private_folder
from launcher.folder import DataFolder
from launcher.process import Child

WEB_WORKERS = 2
#: Connections that wait while a process is started again; the kernel's own limit (net.core.somaxconn) is 4096.
BACKLOG = 1024
WEB_THREADS = 8
#: Database connections of the streams process, whose threads come and go.
STREAMS_POOL = 8
#: Seconds that a stop waits for the speech in hand before it is put back into the queue.
FINISH_SECONDS = 60


def environment(
    folder: DataFolder,
    *,
    root: Path,
    venv: Path,
    engine: str,
    host: str,
    port: int,
    services: Mapping[str, str],
) -> dict[str, str]:
    """The variables of house rules for every Django process. What the caller has set wins over what is made up here."""
    secrets = folder.secrets
    defaults = {
        "CHORUS_SECRET_KEY": secrets.get("django_secret_key", bytes_of_entropy=32),
        "CHORUS_PEPPERS": f"1:{secrets.get('api_key_pepper', bytes_of_entropy=32)}",
        "CHORUS_BASE_URL": f"http://{shown_host(host)}:{port}",
        "CHORUS_ALLOWED_HOSTS": ",".join(allowed_hosts(host)),
        "CHORUS_MODELS_DIR": str(venv / "share" / "chorus"),
        "CHORUS_STATIC_ROOT": str(folder.path / "static"),
        "CHORUS_STATIC_MANIFEST": "1",
        "CHORUS_INSTANCE": f"_{port}",
        "PROMETHEUS_MULTIPROC_DIR": str(folder.run / "metrics"),
    }
    made = {
        name: value
        for name, value in defaults.items()
        if not (os.environ.get(name) or os.environ.get(f"{name}_FILE"))
    }
    return {
        **os.environ,
        **made,
        **services,
        "CHORUS_ENGINE": engine,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONUNBUFFERED": "1",
        "PATH": os.pathsep.join((str(venv / "bin"), os.environ.get("PATH", os.defpath))),
        "VIRTUAL_ENV": str(venv),
    }


def shown_host(host: str) -> str:
    """The name under which a browser on this machine reaches a server that listens on `host`."""
    if host in {"0.0.0.0", "127.0.0.1", "localhost"}:  # noqa: S104 (compared, not bound)
        return "127.0.0.1"
    if host in {"::", "::1"}:
        return "[::1]"
    return f"[{host}]" if ":" in host else host


def allowed_hosts(host: str) -> list[str]:
    """Names that requests may carry: this machine's own, when it listens to others at all."""
    names = {"localhost", "127.0.0.1", "[::1]", shown_host(host)}
    if host in {"0.0.0.0", "::"}:  # noqa: S104 (compared, not bound)
        own = {socket.gethostname(), socket.getfqdn()}
        for name in own:
            try:
                own = own | {str(info[4][0]) for info in socket.getaddrinfo(name, None)}
            except OSError:
                continue
        names |= {f"[{name}]" if ":" in name else name for name in own}
    return sorted(names)


def listen(path: Path) -> socket.socket:
    """A Unix socket that listens at `path`, however long that is, and that only its owner may use."""
    path.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_PATH)
    try:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        path.chmod(0o600)
        listener.listen(BACKLOG)
    finally:
        os.close(folder)
    return listener


class Processes:
    """The children that one data folder runs, apart from the embedded servers."""

    def __init__(
        self,
        folder: DataFolder,
        *,
        root: Path,
        venv: Path,
        environment: Mapping[str, str],
        workers: int,
        worker_python: Path | None = None,
    ) -> None:
        """`worker_python` is another environment's interpreter for the workers: torch is never in our own."""
        # The counters of the last run: a process of this one may have the number of one that is gone.
        shutil.rmtree(folder.run / "metrics", ignore_errors=True)
        private_folder(folder.run / "metrics")
        self.folder = folder
        self.root = root
        self.venv = venv
        self.environment = dict(environment)
        # Ours and not the processes': while one of them is started again, connections wait in the socket's queue
        # instead of being refused, or dropped between the last look and the end.
        self._sockets = {name: listen(folder.run / f"{name}.sock") for name in ("web", "streams")}
        self.web = self._web()
        self.streams = self._streams()
        self.sweep = self._manage("sweep", "sweep")
        self.supervisor = self._child(
            "workers",
            [
                worker_python or venv / "bin" / "python",
                *("-m", "gpu_worker", "--count", str(workers)),
            ],
            cwd=root,
            stop_timeout=FINISH_SECONDS,
            pass_fds=(),
            MALLOC_ARENA_MAX="2",
            # Another environment need not have this project installed in it.
            **({"PYTHONPATH": str(root / "platform")} if worker_python else {}),
        )

    def front(self, *, host: str, port: int) -> Child:
        """Caddy on the public address."""
        file = self.folder.run / "Caddyfile"
        trusted = " ".join(os.environ.get("CHORUS_TRUSTED_PROXIES", "").replace(",", " ").split())
        file.write_text(front.configuration(host=host, port=port, trusted_proxies=trusted), encoding="utf-8")
        home = private_folder(self.folder.path / "caddy")
        return Child(
            "front",
            [self.venv / "bin" / "caddy", "run", "--config", file, "--adapter", "caddyfile"],
            log=self.folder.logs / "front.log",
            env=front.environment(home),
            cwd=self.folder.run,
            death_signal=signal.SIGKILL,
            stop_timeout=8,
        )

    def task(self, name: str, *arguments: str) -> Child:
        """A management command that ends by itself."""
        return self._manage(name, *arguments)

    def tool(self, name: str, argv: Sequence[str | Path]) -> Child:
        """Another program that ends by itself."""
        return self._child(name, argv, cwd=self.root)

    def _web(self) -> Child:
        shared_memory = Path("/dev/shm")  # noqa: S108 (gunicorn's own advice: a heartbeat file that is no disk file)
        argv: list[str | Path] = [
            self.venv / "bin" / "gunicorn",
            "config.wsgi:application",
            "--bind",
            f"fd://{self._sockets['web'].fileno()}",
        ]
        argv += ["--worker-class", "gthread", "--workers", str(WEB_WORKERS), "--threads", str(WEB_THREADS)]
        # The front refuses longer addresses, in the API's shape.
        argv += ["--limit-request-line", "8190"]
        argv += ["--config", "python:launcher.gunicorn_hooks"]
        argv += ["--preload", "--no-control-socket", "--forwarded-allow-ips", "*", "--graceful-timeout", "20"]
        if os.access(shared_memory, os.W_OK):
            argv += ["--worker-tmp-dir", shared_memory]
        return self._child("web", argv, stop_timeout=25, pass_fds=[self._sockets["web"].fileno()])

    def _streams(self) -> Child:
        argv: list[str | Path] = [
            self.venv / "bin" / "uvicorn",
            "config.asgi:application",
            "--fd",
            str(self._sockets["streams"].fileno()),
        ]
        argv += ["--lifespan", "off", "--no-access-log", "--no-server-header", "--log-level", "warning"]
        # Which entry of X-Forwarded-For counts is decided by accounts.api.authentication; uvicorn would take the first.
        argv += ["--no-proxy-headers", "--timeout-graceful-shutdown", "3"]
        return self._child(
            "streams",
            argv,
            stop_timeout=8,
            pass_fds=[self._sockets["streams"].fileno()],
            CHORUS_DB_POOL=str(STREAMS_POOL),
        )

    def _manage(self, name: str, *arguments: str, stop_timeout: float = 10, **extra: str) -> Child:
        argv: list[str | Path] = [self.venv / "bin" / "python", self.root / "manage.py", *arguments]
        return self._child(name, argv, stop_timeout=stop_timeout, cwd=self.root, pass_fds=(), **extra)

    def _child(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        stop_timeout: float = 10,
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
        **extra: str,
    ) -> Child:
        return Child(
            name,
            argv,
            log=self.folder.logs / f"{name}.log",
            env=self.environment | extra,
            cwd=cwd or self.folder.run,
            death_signal=signal.SIGKILL,
            stop_timeout=stop_timeout,
            pass_fds=pass_fds,
        )
