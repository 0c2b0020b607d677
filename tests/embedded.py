"""A pytest plugin (`-p tests.embedded`): real servers for tests, started before Django reads its settings.

Where DATABASE_URL, REDIS_URL or S3_* are set, those are used instead: pytest-django still makes its own test
database, but the tests empty the Redis database and write to the bucket, so never name ones that matter.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "platform")) if path not in sys.path]

from launcher.files import Secrets  # noqa: E402 (after the path is set)
from launcher.services import Services  # noqa: E402

#: What lets the settings be read where no test runs.
NOWHERE = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none", "REDIS_URL": "redis://127.0.0.1:1/0"}

_running: list[tuple[Services, Path]] = []


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """Around pytest-django's own hook, which reads the settings."""
    only_tells = {"-h", "--help", "--version", "-V"} & set(sys.argv)
    # Without pytest-xdist (CosyVoice3's own environment) there is no such option.
    processes = getattr(early_config.known_args_namespace, "numprocesses", None)
    hands_out = processes and "PYTEST_XDIST_WORKER" not in os.environ
    os.environ.setdefault("CHORUS_SECRET_KEY", secrets.token_hex(32))
    os.environ.setdefault("CHORUS_PEPPERS", f"1:{secrets.token_hex(32)}")
    os.environ.setdefault("CHORUS_ENGINE", "hibari")
    if only_tells or hands_out:
        for name, value in NOWHERE.items():
            os.environ.setdefault(name, value)
    else:
        _start()
    try:
        yield
    except BaseException:
        pytest_unconfigure()  # which pytest does not call when it has not come that far
        raise


def pytest_unconfigure() -> None:
    """Stop what was started and remove its folder."""
    while _running:
        services, folder = _running.pop()
        services.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _start() -> None:
    """Servers of this process's own, so that two processes of pytest-xdist never meet."""
    for name, value in NOWHERE.items():
        if os.environ.get(name) == value:
            del os.environ[name]
    _share_outside_servers()
    folder = Path(tempfile.mkdtemp(prefix="chorus-tests-"))
    folder.chmod(0o711)  # PostgreSQL, started by root, runs as another user
    services = Services(
        folder,
        venv=Path(sys.prefix),
        outside=os.environ,
        secrets=Secrets(folder / "secrets.json"),
        logs=folder / "logs",
        durable=False,
    )
    _running.append((services, folder))
    services.start()
    os.environ.update(services.environment)
    _create_bucket(os.environ.setdefault("S3_BUCKET", "chorus"))


def _share_outside_servers() -> None:
    """Another Redis database and bucket for each process of pytest-xdist; pytest-django does so in PostgreSQL."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        return
    if "REDIS_URL" in os.environ:
        number = int(worker.removeprefix("gw")) + 1
        os.environ["REDIS_URL"] = f"{os.environ['REDIS_URL'].rsplit('/', 1)[0]}/{number}"
    if "S3_ENDPOINT_URL" in os.environ:
        os.environ["S3_BUCKET"] = f"{os.environ.get('S3_BUCKET', 'chorus')}-{worker}"


def _create_bucket(name: str) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=os.environ.get("S3_ENDPOINT_URL") or None,
        aws_access_key_id=os.environ["S3_ACCESS_KEY_ID"],
        aws_secret_access_key=os.environ["S3_SECRET_ACCESS_KEY"],
        region_name=os.environ.get("S3_REGION", "us-east-1"),
    )
    try:
        client.create_bucket(Bucket=name)
    except ClientError as error:
        if error.response["Error"]["Code"] not in {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}:
            raise
    finally:
        client.close()
