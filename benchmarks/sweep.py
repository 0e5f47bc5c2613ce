"""A sweep of many points: one Dask worker against two, killed half-way and taken up, compared with the direct answer.

Run: python benchmarks/sweep.py [points]
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import xarray
from distributed import Client, LocalCluster

from iomodel.counting.cost_array import cost_array
from iomodel.studies.sweeps.run import each, workers
from iomodel.studies.sweeps.sweep import planned, run

DIMS = 5


def plan_of(points: int) -> dict[str, Any]:
    """Causal FlashAttention-2 over five dimensions, about so many points."""
    lengths = max(1, points // (16 * 16 * 10 * 5))
    return {
        "q_len": np.arange(1, lengths + 1) * 16,
        "block_q": np.arange(1, 17) * 16,
        "block_kv": np.arange(1, 17) * 16,
        "heads": np.array([1, 2, 4, 8, 12, 16, 24, 32, 48, 64]),
        "batch": np.array([1, 2, 4, 8, 16]),
        "mask": "causal",
        "head_dim": 128,
    }


def direct(fields: dict[str, Any], rows: slice) -> np.ndarray:
    """The answer of the array engine alone, for some lengths."""
    names = [name for name, value in fields.items() if isinstance(value, np.ndarray)]
    spread = {
        name: fields[name][rows if name == "q_len" else slice(None)].reshape([-1 if i == k else 1 for k in range(DIMS)])
        for i, name in enumerate(names)
    }
    return cost_array("flash2", **{**fields, **spread}).hbm_bytes


def rows_of(fields: dict[str, Any], step: int = 37) -> Iterator[slice]:
    """Lengths in parts that are no chunks of the sweep."""
    size = len(fields["q_len"])
    return (slice(i, min(size, i + step)) for i in range(0, size, step))


def equal(fields: dict[str, Any], store: Path) -> bool:
    """Whether a store holds the direct answer at every point."""
    swept = xarray.open_zarr(store).hbm_bytes
    return all(np.array_equal(swept.isel(q_len=rows).values, direct(fields, rows)) for rows in rows_of(fields))


def memory() -> float:
    """What this process and its children hold now [MiB]."""
    me = psutil.Process()
    return sum(p.memory_info().rss for p in [me, *me.children(recursive=True)]) / 2**20


def cluster_of(count: int) -> Any:
    return LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None, silence_logs=50)


def timed(fields: dict[str, Any], count: int, store: Path | None) -> float:
    """Seconds with so many workers, which have compiled their formulas before."""
    with cluster_of(count) as cluster, Client(cluster) as client:
        warm(client, count)
        began = time.perf_counter()
        if store is None:
            spin(client, count)
        else:
            run(planned("flash2", **fields), store, client, False)
        return time.perf_counter() - began


def warm(client: Client, count: int) -> None:
    """Have every worker import and compile what it will need."""
    few = planned("flash2", **plan_of(20_000))
    with tempfile.TemporaryDirectory() as folder:
        for number, worker in enumerate(client.scheduler_info(n_workers=count)["workers"]):
            client.submit(run, few, f"{folder}/{number}", "threads", False, workers=[worker], pure=False).result()


def spin(client: Client, count: int) -> None:
    """The same loop of plain Python once a worker: what the machine itself makes of more processes."""
    with workers(client) as (pool, width):
        list(each(spun, range(count), pool, width))


def spun(_item: int) -> int:
    return sum(range(60_000_000))


def killed(points: int, store: Path, total: int) -> int:
    """Start a sweep over two workers, end all its processes half-way; the chunks that are there."""
    child = subprocess.Popen([sys.executable, __file__, str(points), str(store)], start_new_session=True)
    folder = store / "hbm_bytes" / "c"
    while sum(file.is_file() for file in folder.rglob("*")) < total // 2 and child.poll() is None:
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return sum(file.is_file() and not file.suffix for file in folder.rglob("*"))


def main(points: int, folder: Path) -> None:
    fields = plan_of(points)
    plan = planned("flash2", **fields)
    print(
        f"{plan.points:,} points of {plan.shape} in {plan.block_count} chunks of {plan.chunks}; load {os.getloadavg()}"
    )
    direct(fields, slice(0, 2))
    began = time.perf_counter()
    for rows in rows_of(fields):
        direct(fields, rows)
    alone = time.perf_counter() - began
    print(f"the array engine alone, nothing written: {alone:.1f} s, {plan.points / alone / 1e6:.1f} M points/s")
    one, two = timed(fields, 1, None), timed(fields, 2, None)
    print(f"plain Python, one and two processes: {one:.1f} s, {two:.1f} s: the machine gives {2 * one / two:.2f}x")
    taken = {}
    for count in (1, 2):
        taken[count] = timed(fields, count, folder / f"{count}.zarr")
        rate = plan.points / taken[count] / 1e6
        print(f"{count} worker(s): {taken[count]:.1f} s, {rate:.1f} M points/s; load {os.getloadavg()[0]:.1f}")
    print(f"two workers over one: {taken[1] / taken[2]:.2f}x")
    began = time.perf_counter()
    _, computed = run(plan, folder / "2.zarr", "threads", False)
    print(f"a run that finds all there: {time.perf_counter() - began:.1f} s, {computed} chunks computed")
    there = killed(points, folder / "killed.zarr", plan.block_count)
    began = time.perf_counter()
    _, computed = run(plan, folder / "killed.zarr", "threads", False)
    print(f"killed with {there} chunks there; resumed: {computed} computed in {time.perf_counter() - began:.1f} s")
    size = sum(file.stat().st_size for file in (folder / "2.zarr").rglob("*") if file.is_file())
    print(
        f"store: {size / 2**20:.0f} MiB for {plan.points * 8 / 2**20:.0f} MiB of numbers; memory now {memory():.0f} MiB"
    )
    for name in ("1", "2", "killed"):
        print(f"{name}.zarr equals the direct answer at every point: {equal(fields, folder / f'{name}.zarr')}")


if __name__ == "__main__":
    asked = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7
    if len(sys.argv) > 2:  # the run that is killed
        with cluster_of(2) as here, Client(here) as user:
            run(planned("flash2", **plan_of(asked)), Path(sys.argv[2]), user, False)
    else:
        with tempfile.TemporaryDirectory() as made:
            main(asked, Path(made))
