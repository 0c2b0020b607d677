"""`./chorus up`: from whatever there is to a service that speaks, and back again."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from launcher import cosyvoice, processes, ready
from launcher.errors import LauncherError, fail
from launcher.files import read_json, write_private
from launcher.folder import DataFolder
from launcher.install import ENGINE_EXTRAS, install
from launcher.preparation import Preparation
from launcher.process import STOP_SIGNALS, Child
from launcher.processes import FINISH_SECONDS, Processes
from launcher.progress import Progress
from launcher.services import Services
from launcher.watch import Watch

#: Seconds that the first worker may take to load its model before the start counts as failed.
READY_SECONDS = 300
#: `timeout` and some terminals send the same signal twice: within so many seconds it is one.
SAME_SIGNAL_SECONDS = 0.5
#: A part that fails so often before the service is ready will not come right by itself.
GIVE_UP_AFTER = 4


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    data: Path
    host: str
    port: int
    workers: int
    engine: str
    #: Install speech recognition, which suggests transcripts of uploaded clips.
    asr: bool = False


class Stop(BaseException):
    """SIGINT, SIGTERM or SIGHUP arrived while starting."""


class Up:
    """One run of the service, from the first line to the last."""

    def __init__(self, root: Path, options: Options) -> None:
        self.root = root
        self.options = options
        self.say = Progress()
        self.folder = DataFolder(options.data)
        self.watch = Watch(self.say, self.folder.note_children)
        self.services: Services | None = None
        self.processes: Processes | None = None
        self.preparation: Preparation | None = None
        self.front: Child | None = None
        self._stays = False
        self._stopping = False
        self._signals = 0
        self._last_signal = 0.0
        self._enough = 2
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> int:
        """Start, stay until told to stop, stop. The exit status."""
        if sys.platform != "linux":
            raise LauncherError(
                "the embedded servers run on Linux only: use the Docker files on other systems"
            )
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_signal)
        self.folder.open()
        try:
            self._start()
            self._stay()
        except Stop:
            return 130
        except LauncherError as error:
            return fail(error)  # before the lines about stopping, which may take seconds
        finally:
            self._stop()
        return 0

    # --- Starting -----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        options = self.options
        port = self._port()
        url = f"http://{processes.shown_host(options.host)}:{port}"
        self.folder.note_address(url)
        model = cosyvoice.installation(self.root) if options.engine == "cosyvoice3" else None
        extras = ("embedded", *ENGINE_EXTRAS[options.engine], *(["asr"] if options.asr else []))
        venv = install(self.root, extras, self.say)
        self.services = Services(
            self.folder.path,
            venv=venv,
            outside=os.environ,
            secrets=self.folder.secrets,
            logs=self.folder.logs,
        )
        environment = processes.environment(
            self.folder,
            root=self.root,
            venv=venv,
            engine=options.engine,
            host=options.host,
            port=port,
            services=self.services.environment,
        )
        if model:
            environment |= model.environment()
        write_private(self.folder.environment_file, json.dumps(environment))
        self.processes = Processes(
            self.folder,
            root=self.root,
            venv=venv,
            environment=environment,
            workers=options.workers,
            worker_python=model.python if model else None,
        )
        self.preparation = Preparation(
            self.folder, root=self.root, venv=venv, processes=self.processes, say=self.say
        )
        self._bring_up(self.services, self.processes, self.preparation, port)
        self._wait_ready(url, self.processes.supervisor)
        self.watch.add(self.processes.sweep)  # nobody waits for it
        self._announce(url)

    def _bring_up(self, services: Services, running: Processes, preparation: Preparation, port: int) -> None:
        """Servers, files, tables, processes, accounts: each as early as what it needs is there.

        Where all was prepared by an earlier start, everything begins at once: the processes take longer to load
        than the servers, and wait for them.
        """
        environment = running.environment
        prepared = preparation.is_done()
        services.begin()
        settings = preparation.settings()
        names = (self.options.engine, *(["asr"] if self.options.asr else []))
        weights = preparation.weights(names, Path(environment["CHORUS_MODELS_DIR"]))
        messages = preparation.messages()
        static = preparation.static(Path(environment["CHORUS_STATIC_ROOT"]))
        at_once = prepared and not messages and not static
        if at_once:
            self._start_worker(running)
            self._start_rest(running, port)
        preparation.finish(settings)
        services.wait(("PostgreSQL", "Valkey"), self.say)
        for server in services.servers.values():
            self.watch.add(server.child, server.start)
        if not prepared:
            preparation.finish(preparation.migrate(), "The database is up to date")
        preparation.finish(weights, "Speech weights are there and checked")
        if not at_once:
            self._start_worker(running)  # loading a model takes longest
        services.wait(("SeaweedFS",), self.say)
        bootstrap = None if prepared else preparation.bootstrap()
        preparation.finish(messages, "Translations are compiled")
        preparation.finish(static, "Static files are collected")
        if not at_once:
            self._start_rest(running, port)
        preparation.finish(bootstrap, "Bucket, voices and accounts are there")
        self.say(f"The processes are started; a worker is loading {self.options.engine}")

    def _start_worker(self, running: Processes) -> None:
        if self.options.workers:
            self.watch.add(running.supervisor)

    def _start_rest(self, running: Processes, port: int) -> None:
        self.front = running.front(host=self.options.host, port=port)
        for child in (running.web, running.streams, self.front):
            self.watch.add(child)

    def _port(self) -> int:
        """The public port, after a look at whether it can be had."""
        host, port = self.options.host, self.options.port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
                return int(probe.getsockname()[1])
        except PermissionError:
            raise LauncherError(f"port {port} needs root: choose one from 1024 up with --port") from None
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise LauncherError(f"port {port} is in use: choose another with --port") from None
            raise LauncherError(f"cannot listen on {host} ({error.strerror}): see --host") from None

    def _wait_ready(self, url: str, supervisor: Child) -> None:
        """Until every part answers through the public address."""
        deadline = time.monotonic() + READY_SECONDS
        while not (ready.is_ready(url, with_workers=self.options.workers > 0) and ready.streams_answer(url)):
            self.watch.tick()
            worst = self.watch.worst()
            if worst and worst.failures >= GIVE_UP_AFTER:
                child = worst.child
                raise LauncherError(f"{child.name} keeps ending: {child.last_lines(1)} (see {child.log})")
            if why := ready.why_workers_end(supervisor.said(), times=GIVE_UP_AFTER):
                raise LauncherError(f"the workers keep ending: {why} (see {supervisor.log})")
            if time.monotonic() > deadline:
                raise LauncherError(
                    f"not ready after {READY_SECONDS} s ({ready.what_is_missing(url)}): see {self.folder.logs}"
                )
            time.sleep(0.2)

    def _announce(self, url: str) -> None:
        account = read_json(self.folder.bootstrap_file)
        if self.preparation and ready.is_refused(url, account):
            self.preparation.finish(
                self.preparation.bootstrap(), "The first accounts are compared with what is there"
            )
            account = read_json(self.folder.bootstrap_file)
        write_private(
            self.folder.ready_file, json.dumps({"url": url, **ready.account(account)}, indent=2) + "\n"
        )
        self.say("Chorus is ready")
        self.say.plain(ready.text(url, account, self.folder.logs))

    # --- Staying ------------------------------------------------------------------------------------------------

    def _stay(self) -> None:
        self._stays = True
        while not self._signals:
            select.select([self._wake_read], [], [], 0.25)
            self.watch.tick()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._signals and time.monotonic() - self._last_signal < SAME_SIGNAL_SECONDS:
            return
        self._last_signal = time.monotonic()
        self._signals += 1
        os.write(self._wake_write, b"\0")
        if not self._stays and not self._stopping:
            raise Stop

    # --- Stopping -----------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Workers first, while whoever waits for their speech can still be answered; the servers last."""
        self._stopping = True
        self._enough = 2 if self._signals else 1
        self.folder.ready_file.unlink(missing_ok=True)
        if self.preparation:
            self.preparation.end()
        if self.processes:
            working = [self.processes.supervisor, self.processes.sweep]
            if any(child.running() for child in working):
                self.say(
                    f"Stopping: finishing the speech in hand, for {FINISH_SECONDS} s at most; "
                    "a longer one goes on at the next start (Ctrl-C again does not wait)"
                )
            self._stop_children(working, FINISH_SECONDS)
            answering = [self.processes.web, self.processes.streams, *([self.front] if self.front else [])]
            self._stop_children(answering, max(child.stop_timeout for child in answering))
        if self.services:
            self.services.stop()
            self.say("Stopped; the data is kept")
        self.folder.close()

    def _forced(self) -> bool:
        """Whether somebody has lost patience: asked again, or asked at all while a failed start is taken back."""
        return self._signals >= self._enough

    def _stop_children(self, children: list[Child], patience: float) -> None:
        """Ask, wait `patience` seconds or until a second Ctrl-C, end."""
        for child in children:
            child.signal_stop()
        deadline = time.monotonic() + patience
        while (
            any(child.running() for child in children) and time.monotonic() < deadline and not self._forced()
        ):
            time.sleep(0.02)
        for child in children:
            child.kill()
