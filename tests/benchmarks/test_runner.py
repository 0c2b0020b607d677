"""The runner of `./chorus bench`: what its results look like, not how fast anything is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module

import psutil

from benchmarks import runner
from benchmarks.results import Aim, Line, table
from tests.ops import tools


def _bench(*arguments, folder=None):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        env=os.environ | ({"TMPDIR": str(folder)} if folder else {}),
        cwd=tools.ROOT,
        check=False,
        capture_output=True,
        text=True,
    )


def test_aims_are_on_the_value_the_ratio_or_the_difference():
    assert Line("a", 10, "ms", aim=Aim("value", most=15)).met
    assert not Line("a", 20, "ms", 10, "b", Aim("ratio", most=1.5)).met
    assert Line("a", 20, "/s", 40, "b", Aim("ratio", least=0.3)).met
    assert Line("a", 130, "ms", 100, "b", Aim("difference", most=50)).met
    assert Line("a", 10, "ms").met is None


def test_a_line_survives_json_and_is_a_row_of_the_table():
    line = Line("p99", 12.5, "ms", 10, "of 10 teams", Aim("ratio", most=1.5), note="n")
    assert Line.from_json(json.loads(json.dumps(line.as_json()))) == line
    assert table([("claim", line)]).splitlines()[2].split(" | ")[1:] == [
        "p99     ",
        "12.5 ms",
        "10 ms (of 10 teams)",
        "1.25 ",
        "ratio ≤ 1.5",
        "met |",
    ]


def test_every_name_is_a_bench():
    for name in runner.NAMES:
        assert callable(import_module(f"benchmarks.benches.{name.replace('-', '_')}").run)


def test_an_unknown_name_is_refused_with_those_that_there_are():
    done = _bench("speed")
    assert done.returncode == 2
    assert "single-user" in done.stderr


def test_one_bench_small_and_nothing_is_left(tmp_path):
    target = tmp_path / "result.json"
    done = _bench("hangup", "--quick", "--json", str(target), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(target.read_text())
    assert report["quick"] is True
    assert report["machine"]["cores"] == len(os.sched_getaffinity(0))
    (bench,) = report["benches"].values()
    assert bench["error"] == ""
    (line,) = bench["lines"]
    assert line["reference"] == 4
    assert line["ratio"] == line["value"] / 4
    assert line["aim"]["most"] == 1
    assert done.stdout.startswith("| bench  | measured")
    lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert [line for line in lines if any(str(tmp_path) in word for word in line)] == []
    # onnxruntime notes a number of its own in whatever is the temporary folder.
    assert {entry.name for entry in tmp_path.iterdir()} - {".ses"} == {"result.json"}
