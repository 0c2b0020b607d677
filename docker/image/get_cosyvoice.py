"""Fetches the official code and the weights of CosyVoice3 into the volume of the GPU workers; goes on where it was
interrupted. What `./chorus cosyvoice install` does, for a container that has the packages already."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from launcher import cosyvoice
from launcher.errors import LauncherError, fail
from launcher.hub import HUBS
from launcher.progress import Progress


def main() -> int:
    """The exit status: not 0 when something is missing at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path("/opt/cosyvoice"))
    parser.add_argument("--source", choices=sorted(HUBS), default="modelscope")
    parser.add_argument("--model", default=cosyvoice.MODEL)
    parser.add_argument("--repository", default=cosyvoice.REPOSITORY)
    parser.add_argument("--rl", action="store_true", help="the reinforcement-tuned language model")
    parser.add_argument("--trt", action="store_true", help="also what TensorRT needs")
    options = parser.parse_args()
    say = Progress()
    root = Path(__file__).resolve().parents[2]
    try:
        cosyvoice._checkout(options.dir / "CosyVoice", options.repository, say)
        cosyvoice._weights(root, Path(sys.executable), options.dir, options, say)
    except LauncherError as error:
        return fail(error)
    say("CosyVoice3 is there")
    return 0


if __name__ == "__main__":
    sys.exit(main())
