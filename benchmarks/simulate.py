"""Time of a simulated engine: `iomodel.simulate` against the same engine written by hand in SimPy.

    python benchmarks/simulate.py [--requests 20000]

Needs ``pip install simpy``. Both serve Poisson arrivals of equal lengths with the step times of one table: a process
for the arrivals, and one for the engine, which prefills waiting prompts one at a time and before decode steps. The
means of both are printed, so that the same work is timed. Times are the best of three runs; that of the table is
listed apart. A million requests follow, with the loop as Python and as machine code (compiled before the clock runs).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import simpy
from rich.console import Console
from rich.table import Table

import iomodel
from iomodel.planning.service import OVERHEAD, as_service
from iomodel.planning.simulation import engine_run as engine
from iomodel.planning.simulation.step_table import StepTable, step_table
from iomodel.planning.steps import ReplicaSteps

MODEL, GPU = "llama-3-8b", "h100-sxm5"
PROMPT, OUTPUT, LOAD = 1024, 128, 12.0
MOST = 256
RUNS = 3


def by_hand(table: StepTable, requests: int) -> tuple[float, float]:
    """Serve the requests in SimPy: mean TTFT and TPOT [s]."""
    world, waiting, running = simpy.Environment(), [], []
    first: list[float] = []
    per_token: list[float] = []
    woken = [world.event()]
    gaps = np.random.default_rng([0, 0]).exponential(1 / LOAD, requests).tolist()
    prefill = float(np.interp(PROMPT, table.lengths, table.other + table.attention) + table.rows[1])
    contexts, decode = table.contexts.tolist(), table.decode.tolist()

    def arrive() -> Any:
        for gap in gaps:
            yield world.timeout(gap)
            waiting.append(world.now)
            if not woken[0].triggered:
                woken[0].succeed()

    def serve() -> Any:
        while len(per_token) < requests:
            if waiting and len(running) < MOST:
                arrived = waiting.pop(0)
                yield world.timeout(prefill)
                first.append(world.now - arrived)
                running.append([1, world.now])
            elif running:
                context = PROMPT + sum(made for made, _ in running) / len(running)
                yield world.timeout(np.interp(context, contexts, decode[len(running)]))
                for request in running:
                    request[0] += 1
                per_token.extend((world.now - begun) / (OUTPUT - 1) for made, begun in running if made == OUTPUT)
                running[:] = [request for request in running if request[0] < OUTPUT]
            else:
                woken[0] = world.event()
                yield woken[0]

    world.process(arrive())
    world.run(world.process(serve()))
    return sum(first) / requests, sum(per_token) / requests


def best(call: Callable[[], Any], runs: int = RUNS) -> tuple[float, Any]:
    """The least time of some runs [s], and a result."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return min(times), result


def library(requests: int, machine: bool) -> iomodel.results.Simulation:
    """Serve the requests by the library."""
    engine.WORTH = 0 if machine else 10**18
    setting: dict[str, Any] = {"prompt": PROMPT, "output": OUTPUT, "token_budget": PROMPT, "batch": MOST}
    return iomodel.simulate(MODEL, GPU, load=LOAD, requests=requests, **setting)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000, help="requests of the comparison (default 20,000)")
    requests = parser.parse_args().requests
    first = best(lambda: library(MOST, machine=True), 1)[0]
    service = as_service(MODEL, PROMPT, OUTPUT, iomodel.Layout(), memory_utilization=0.9, overhead_bytes=OVERHEAD)
    steps = ReplicaSteps(service, iomodel.hardware(GPU))
    table = step_table(steps, np.array([PROMPT]), PROMPT, MOST, PROMPT, False)
    hand, means = best(lambda: by_hand(table, requests), 1)
    python, result = best(lambda: library(requests, machine=False))
    machine, same = best(lambda: library(requests, machine=True))
    assert result == same
    million = [best(lambda kind=kind: library(10**6, kind), 1)[0] for kind in (False, True)]  # type: ignore[misc]
    shown = Table(title=f"{MODEL} on {GPU}, {LOAD:g}/s of {PROMPT} + {OUTPUT} tokens", title_justify="left")
    for column in ("engine", "requests", "time [s]", "ratio", "mean TTFT [ms]", "mean TPOT [ms]"):
        shown.add_column(column, justify="left" if column == "engine" else "right")
    both = [result.ttft.mean, result.tpot.mean]
    rows = [
        ("SimPy, by hand", requests, hand, hand, means),
        ("iomodel, Python", requests, python, hand, both),
        ("iomodel, machine code", requests, machine, hand, both),
        ("iomodel, Python", 10**6, million[0], None, None),
        ("iomodel, machine code", 10**6, million[1], None, None),
    ]
    for name, number, took, base, times in rows:
        ratio = "" if base is None else f"{base / took:,.1f}"
        shown.add_row(name, f"{number:,}", f"{took:.3g}", ratio, *(f"{1e3 * t:.4g}" for t in times or ()))
    Console(width=120).print(shown)
    print(f"first call, with the table of steps and the compilation: {first:.3g} s")


if __name__ == "__main__":
    main()
