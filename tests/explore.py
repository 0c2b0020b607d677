"""schemathesis against a running service: `python -m tests.explore URL KEY [--seconds N]`.

Every route is tried with what its description allows and with what it does not; nothing may answer with a 5xx, or with
a status, a content type, a header or a body that is not described. The key should be an owner's with wide limits: a
429 is a described answer, and says little.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[1]
#: How the run ends when its own key is no longer taken: from then on it would only try doors.
KEY_LOST = 97
#: What a description cannot say: rules between fields, which voices there are, what a name may be.
_NOT_FOR_US = "negative_data_rejection,positive_data_acceptance,object_level_authorization"


def explore(
    url: str, key: str, *, seconds: int, workers: int = 2, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run it for so many seconds in `folder`, where it keeps notes; its exit status is 0 when nothing was found.

    RuntimeError when the key is no longer valid: then nothing but doors was tried.
    """
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("schemathesis")), "run", f"{url}/v1/schema"),
            *("-H", f"Authorization: Bearer {key}", "--max-time", str(seconds), "--workers", str(workers)),
            *("--checks", "all", "--exclude-checks", _NOT_FOR_US, "--continue-on-failure", "--no-shrink"),
            *("--request-timeout", "90", "--warnings", "off", "--no-color"),
        ],
        cwd=folder,
        env=os.environ
        | {
            "SCHEMATHESIS_HOOKS": "tests.schemathesis_hooks",
            "PYTHONPATH": str(ROOT),
            "CHORUS_EXPLORE_URL": url,
            "CHORUS_EXPLORE_KEY": key,
        },
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    answer = httpx.get(f"{url}/v1/quota", headers={"authorization": f"Bearer {key}"}, timeout=60)
    if answer.status_code != 200 or done.returncode == KEY_LOST:
        raise RuntimeError(f"the key did not survive: {answer.status_code}\n{done.stdout}")
    return done


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.explore", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("key")
    parser.add_argument("--seconds", type=int, default=1200)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    done = explore(
        given.url.rstrip("/"), given.key, seconds=given.seconds, workers=given.workers, folder=Path.cwd()
    )
    sys.stdout.write(done.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(_main())
