"""Makes the secrets of compose.yml, once: passwords, keys, a first certificate. What is there is kept.

Each server and the application get a folder (a volume) of their own below /secrets. With DATABASE_URL, REDIS_URL or
S3_* in `.env`, the application is told those instead of the servers of compose.yml.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

ROOT = Path(os.environ.get("SECRETS_ROOT", "/secrets"))
APP, METRICS, POSTGRES, VALKEY, S3, GRAFANA, TLS = (
    ROOT / name for name in ("app", "metrics", "postgres", "valkey", "s3", "grafana", "tls")
)


def keep(path: Path, value: str) -> str:
    """The content of `path`, which is made with `value` unless it is there."""
    if not path.exists():
        write(path, value)
    return path.read_text().strip()


def write(path: Path, value: str) -> None:
    """Appears whole or not at all. Readable for all: each volume is mounted only where its content belongs, and the
    servers' images run under users of their own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}")
    partial.write_text(value + "\n")
    partial.chmod(0o444)
    partial.replace(path)


def certificate(domain: str) -> None:
    """A certificate of our own for the first start: browsers warn until a real one is put in its place."""
    chain, key = TLS / "fullchain.pem", TLS / "privkey.pem"
    try:
        if chain.exists() and key.exists():
            return
        if chain.is_symlink() or key.is_symlink():
            sys.exit(
                "chorus: the certificate's files are links that lead nowhere in a container (certbot's `live` has"
                " such): copy the files themselves into the folder of CHORUS_CERTIFICATES"
            )
        TLS.mkdir(parents=True, exist_ok=True)
    except PermissionError:
        sys.exit(f"chorus: let user {os.getuid()} read the folder of CHORUS_CERTIFICATES")
    done = subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ),
            *("-days", "825", "-subj", f"/CN={domain}", "-addext", f"subjectAltName=DNS:{domain}"),
            *("-keyout", str(key), "-out", str(chain)),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(
            f"chorus: no certificate can be made in the folder of CHORUS_CERTIFICATES (user {os.getuid()}): put"
            f" fullchain.pem and privkey.pem there\n{done.stderr.strip()}"
        )
    key.chmod(0o444)
    print(f"chorus: made a self-signed certificate for {domain}", flush=True)


def main() -> int:
    """Make what is missing."""
    given = os.environ.get
    keep(APP / "secret_key", secrets.token_hex(32))
    # "1:" is the pepper's id: a second one is added with a comma, see the documentation.
    keep(APP / "peppers", f"1:{secrets.token_hex(32)}")
    keep(METRICS / "token", secrets.token_hex(24))
    keep(GRAFANA / "password", secrets.token_hex(12))
    password = keep(POSTGRES / "password", secrets.token_hex(24))
    write(APP / "database_url", given("DATABASE_URL") or f"postgres://chorus:{password}@postgres:5432/chorus")
    password = keep(VALKEY / "password", secrets.token_hex(24))
    write(VALKEY / "valkey.conf", f"requirepass {password}")
    write(APP / "redis_url", given("REDIS_URL") or f"redis://:{password}@valkey:6379/0")
    access = keep(S3 / "access_key_id", secrets.token_hex(10))
    secret = keep(S3 / "secret_access_key", secrets.token_hex(24))
    identity = {
        "name": "chorus",
        "credentials": [{"accessKey": access, "secretKey": secret}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    write(S3 / "identities.json", json.dumps({"identities": [identity]}))
    write(APP / "s3_access_key_id", given("S3_ACCESS_KEY_ID") or access)
    write(APP / "s3_secret_access_key", given("S3_SECRET_ACCESS_KEY") or secret)
    certificate(given("CHORUS_DOMAIN") or "localhost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
