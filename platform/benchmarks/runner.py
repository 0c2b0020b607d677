"""Runs benches, each in a process of its own, so that one that fails leaves the others alone."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.results import Line, table
from launcher.process import die_with_parent

#: In the order in which they run: the quick ones first.
NAMES = (
    "claim",
    "history",
    "submit",
    "health",
    "page",
    "hangup",
    "burst",
    "light",
    "stream",
    "overhead",
    "fair",
    "scale",
    "memory",
    "single-user",
)
#: Seconds after which a bench is ended.
MOST_SECONDS = 3600
#: Seconds that it then has to stop its servers.
STOP_SECONDS = 90


def main(arguments: Sequence[str]) -> int:
    """The exit status: 1 when a bench failed, 0 otherwise, whether its aims were met or not."""
    options = _options(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    if options.child:
        return _child(options.names[0], options.quick, Path(options.child))
    found: dict[str, dict[str, Any]] = {}
    for name in options.names or NAMES:
        print(f"bench {name} …", file=sys.stderr, flush=True)
        found[name] = _run(name, options.quick)
        if options.json:
            options.json.write_text(json.dumps(_report(found, options.quick), indent=2) + "\n")
    rows = [(name, Line.from_json(line)) for name, result in found.items() for line in result["lines"]]
    print(table(rows))
    for name, line in rows:
        if line.note:
            print(f"{name}, {line.name}: {line.note}")
    failed = [name for name, result in found.items() if result["error"]]
    for name in failed:
        print(f"bench {name} failed: {found[name]['error']}", file=sys.stderr)
    return 1 if failed else 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./chorus bench",
        description="Measure the service. It starts servers of its own on loopback and ends them again.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(NAMES)} (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there as well")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes and the fast engine, to try it: no result to quote"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}. There are: {', '.join(NAMES)}")
    return options


def _leave(number: int, frame: object) -> NoReturn:
    """Asked to end: through every `finally`."""
    raise SystemExit(128 + number)


def _run(name: str, quick: bool) -> dict[str, Any]:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chorus-bench-") as folder:
        result = Path(folder) / "result.json"
        argv = [sys.executable, "-m", "benchmarks", name, "--child", str(result)]
        process = subprocess.Popen(
            [*argv, "--quick"] if quick else argv, preexec_fn=die_with_parent(signal.SIGTERM)
        )
        error = ""
        try:
            status = process.wait(MOST_SECONDS)
            error = f"exit status {status}" if status else ""
        except subprocess.TimeoutExpired:
            error = f"not done after {MOST_SECONDS} s"
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        lines = json.loads(result.read_text()) if result.exists() else []
    return {"lines": lines, "error": error, "seconds": round(time.monotonic() - started, 1)}


def _child(name: str, quick: bool, target: Path) -> int:
    bench = importlib.import_module(f"benchmarks.benches.{name.replace('-', '_')}")
    lines: list[Line] = bench.run(quick)
    target.write_text(json.dumps([line.as_json() for line in lines]))
    return 0


def _report(found: dict[str, dict[str, Any]], quick: bool) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": {
            "cores": len(os.sched_getaffinity(0)),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "processor": platform.machine(),
            "python": platform.python_version(),
            "load": os.getloadavg()[0],
        },
        "benches": found,
    }
