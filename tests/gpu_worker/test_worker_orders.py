"""What an operator orders from afar: pause, stop, restart, recycle."""

from __future__ import annotations

import pytest

from tests.gpu_worker.processes import alive, until
from tests.gpu_worker.test_worker import Bench, bench, valkey

__all__ = ["bench", "valkey"]  # pytest finds fixtures by their names here

pytestmark = pytest.mark.usefixtures("valkey")


def order(bench: Bench, word: str) -> None:
    """As `services.workers.order` does: heard with the next report."""
    path = bench.folder / "order"
    if word:
        path.write_text(word)
    else:
        path.unlink()


def state(bench: Bench) -> str:
    return str(bench.events("beat")[-1]["state"])


def test_a_paused_worker_finishes_and_takes_nothing_more(bench: Bench) -> None:
    bench.start()
    bench.ring("slow", 3.0, "in hand")
    bench.wait("started")
    order(bench, "pause")
    bench.wait("job")
    until(lambda: state(bench) == "paused")
    assert bench.events("beat")[-1]["error"] == "", "nothing is wrong with what was stopped"
    bench.ring("quick", "later")
    assert [entry["tag"] for entry in bench.events("job")] == ["in hand"]
    assert bench.queue.count == 1
    order(bench, "")
    assert bench.wait("job", 2)[-1]["tag"] == "later"


def test_a_stopped_worker_gives_back_what_it_has_in_hand(bench: Bench) -> None:
    bench.start()
    bench.ring("slow", 60.0)
    bench.wait("started")
    child = bench.child()
    order(bench, "stop")
    assert [one["stopped"] for one in bench.wait("lost", 2)] == [False, True]  # the first one is the start's
    until(lambda: not alive(child))
    until(lambda: state(bench) == "paused")
    bench.ring("quick", "later")
    order(bench, "")
    assert bench.wait("job")[-1]["tag"] == "later"
    assert bench.child() != child


def test_a_restart_ends_the_process_well_after_the_job(bench: Bench) -> None:
    process = bench.start()
    bench.ring("slow", 2.0, "in hand")
    bench.wait("started")
    order(bench, "restart")
    assert process.wait(20) == 0
    assert [entry["tag"] for entry in bench.events("job")] == ["in hand"]
    assert bench.events("obeyed")[0]["order"] == "restart"


def test_recycling_loads_the_engine_anew_and_keeps_the_process(bench: Bench) -> None:
    process = bench.start()
    child = bench.child()
    order(bench, "recycle")
    bench.wait("loaded", 2)
    assert bench.child() != child
    assert process.poll() is None
    until(lambda: not (bench.folder / "order").exists())
    bench.ring("quick", "after")
    bench.wait("job")


def test_a_new_process_keeps_to_an_order_that_holds(bench: Bench) -> None:
    order(bench, "pause")
    bench.start(wait=False)
    until(lambda: bool(bench.events("beat")) and state(bench) == "paused")
    bench.ring("quick")
    assert bench.queue.count == 1
    assert not bench.events("job")
