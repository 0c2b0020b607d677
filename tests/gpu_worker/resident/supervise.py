"""A supervisor in a process of its own, over stubs: one argument per slot, `steady:1.5` or `broken`."""

from __future__ import annotations

import os
import sys

from gpu_worker.supervisor import Slot, Supervisor

if __name__ == "__main__":
    Supervisor(
        [
            Slot(
                f"slot {index}",
                [sys.executable, "-m", "tests.gpu_worker.resident.stub", *words.split(":")],
                {**os.environ, "SLOT": str(index)},
            )
            for index, words in enumerate(sys.argv[1:])
        ]
    ).run()
