"""The embedded object storage: SeaweedFS in one process (`weed mini`), which speaks S3."""

from __future__ import annotations

import contextlib
import json
import signal
import urllib.error
import urllib.request
from pathlib import Path

from launcher.files import Secrets, private_folder, write_private
from launcher.process import Child, wait_until

PORTS = ("s3", "master", "volume", "filer", "admin")


class SeaweedFS:
    """An S3 server on a loopback port. Its other ports ask for no password: they too are on loopback only."""

    def __init__(
        self,
        *,
        weed: Path,
        folder: Path,
        logs: Path,
        secrets: Secrets,
        ports: dict[str, int],
        durable: bool = True,
    ) -> None:
        """`ports` has a free port for every name in PORTS, each with its partner 10,000 above free as well.
        `durable=False` ends it at once instead of letting it finish (3 s), for tests."""
        self.weed = weed
        self.folder = folder
        self.log = logs / "seaweedfs.log"
        self.secrets = secrets
        self.ports = ports
        self.durable = durable
        argv = [str(self.weed), "-logtostderr", "mini", "-dir=data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
        argv += [f"-{name}.port={self.ports[name]}" for name in PORTS]
        argv += [
            "-webdav=false",
            "-admin.ui=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-s3.iam=false",
        ]
        # With the Raft state of its last run a lone master may wait five seconds for an election; what is stored
        # where it learns from the volumes in any case.
        argv += ["-master.telemetry=false", "-master.resumeState=false", "-s3.config=identities.json"]
        # Relative to the working folder: socket paths may have only about 100 bytes, and /tmp is not ours.
        argv += ["-filer.localSocket=filer.sock", "-s3.localSocket=s3.sock"]
        self.child = Child(
            "SeaweedFS",
            argv,
            log=self.log,
            cwd=self.folder,
            stop_signal=signal.SIGTERM if self.durable else signal.SIGKILL,
            stop_timeout=4,  # it sometimes hangs; see below
            death_signal=signal.SIGKILL,  # it is safe after kill -9, and its orderly end takes three seconds
        )

    @property
    def url(self) -> str:
        """The S3 endpoint."""
        return f"http://127.0.0.1:{self.ports['s3']}"

    @property
    def access_key(self) -> str:
        """S3 access key id."""
        return self.secrets.get("s3_access_key_id", bytes_of_entropy=10)

    @property
    def secret_key(self) -> str:
        """S3 secret access key."""
        return self.secrets.get("s3_secret_access_key")

    def start(self) -> None:
        """Write the identities (mode 0600) and start the server. Does not wait for it."""
        data = self.folder / "data"
        private_folder(self.folder)
        data.mkdir(exist_ok=True)
        identity = {
            "name": "chorus",
            "credentials": [{"accessKey": self.access_key, "secretKey": self.secret_key}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        write_private(self.folder / "identities.json", json.dumps({"identities": [identity]}))
        # It keeps the options of its last start, ports among them, and prefers them to the command line's.
        (data / "mini.options").unlink(missing_ok=True)
        self.child.start()

    def wait(self, timeout: float = 60) -> None:
        """Wait until it stores an object (the filer needs a volume for that) and the S3 side answers."""
        wait_until(lambda: self._stores() and self._s3_answers(), self.child, timeout=timeout)

    def _stores(self) -> bool:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports['filer']}/chorus-ready", data=b"ready", method="PUT"
        )
        return _status(request) == 201

    def _s3_answers(self) -> bool:
        return _status(urllib.request.Request(f"{self.url}/healthz")) == 200  # noqa: S310 (always http)


def _status(request: urllib.request.Request) -> int:
    """The HTTP status, 0 when there is no answer. Never through a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with contextlib.suppress(OSError):
        try:
            with opener.open(request, timeout=2) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code
    return 0
