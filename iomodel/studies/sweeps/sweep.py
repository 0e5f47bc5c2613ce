"""Exact costs over named dimensions, as an xarray Dataset: in memory, out of core, or over a cluster."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iomodel.algorithms import AlgorithmLike
from iomodel.common.progress import watched
from iomodel.errors import InputError, shown
from iomodel.studies.sweeps.block import compute
from iomodel.studies.sweeps.check import checked
from iomodel.studies.sweeps.dataset import dataset, import_xarray
from iomodel.studies.sweeps.plan import SweepPlan, read_plan
from iomodel.studies.sweeps.run import each, workers
from iomodel.studies.sweeps.store import clear, finish, opened, prepare

if TYPE_CHECKING:
    from xarray import Dataset

IN_MEMORY = 2**27
"""The most numbers that a sweep without a store holds: 1 GiB of them."""


def sweep(
    algorithm: AlgorithmLike | Sequence[AlgorithmLike],
    *,
    quantities: str | Sequence[str] = ("hbm_bytes",),
    zipped: Sequence[Sequence[str]] | Mapping[str, Sequence[str]] = (),
    solve: bool = False,
    store: str | os.PathLike[str] | None = None,
    chunk: int | Mapping[str, int] | None = None,
    scheduler: Any = "threads",
    progress: bool = True,
    **fields: Any,
) -> Dataset:
    """Count the traffic and the operations of an algorithm exactly at every point of a grid.

    Parameters
    ----------
    algorithm : str, Algorithm or sequence of them
        One or more of :func:`iomodel.list_algorithms`.
    quantities : sequence of str
        Fields of :class:`iomodel.Cost`, ``hbm_reads``, ``hbm_writes``, ``hbm_elements``; ``reads_K``, ``writes_O`` and
        the like for a tensor, ``reads`` and ``writes`` for all. A tensor that an algorithm lacks counts 0.
    zipped : sequence of groups of fields, or mapping of name to group
        Fields that go along one dimension side by side, as ``[("q_len", "kv_len")]``; it has the name of the first,
        or its own. Any other field with a sequence of values is a dimension of its own.
    solve : bool
        Find the best tiles at each point, within ``hardware``, ``sram_bytes`` or ``sram_elements``.
    store : str or os.PathLike, optional
        A folder for the result, a Zarr store that need not fit in memory: written chunk by chunk, and taken up where
        an earlier run of the same plan was stopped. Without it the result is held in memory.
    chunk : int or mapping of dimension to int, optional
        Points of a chunk (2^20), or places along each dimension.
    scheduler : "threads", dask.distributed.Client or str
        Where chunks are computed: in this process, on a cluster, or on the one at an address.
    progress : bool
        Show a bar on stderr where that is a terminal and the work is long.
    **fields
        Fields of :class:`iomodel.Attention`, or of :class:`iomodel.Linear` for an algorithm of linear layers; tiles and
        options of the algorithm: each a value, or a sequence of values, which makes it a dimension. Where algorithms
        are several, each takes the tiles and options it knows.

    Returns
    -------
    xarray.Dataset
        One int64 variable a quantity, with `units` and `long_name`; what is the same everywhere in `attrs`.

    Raises
    ------
    UnknownNameError, InputError
        An unknown name; a value out of range, or one that does not go with another; a number beyond 64 bits; a store
        of another plan; a library that is missing.

    Examples
    --------
    >>> traffic = sweep("flash2", q_len=[4096, 8192], block_q=[64, 128], block_kv=64, head_dim=64)
    >>> traffic.hbm_bytes.sel(q_len=4096, block_q=128).item()
    34619392
    """
    import_xarray()
    if not isinstance(progress, bool):
        raise InputError(f"progress: {shown(progress)} given; allowed: True or False")
    plan = planned(algorithm, quantities=quantities, zipped=zipped, solve=solve, chunk=chunk, **fields)
    return run(plan, store, scheduler, progress)[0]


def planned(
    algorithm: Any, *, quantities: Any = ("hbm_bytes",), zipped: Any = (), solve: bool = False, chunk: Any = None,
    **fields: Any,
) -> SweepPlan:  # fmt: skip
    """Build the plan of a sweep and check it; the arguments are those of :func:`sweep`."""
    if not isinstance(solve, bool):
        raise InputError(f"solve: {shown(solve)} given; allowed: True or False")
    return checked(read_plan(algorithm, quantities, zipped, chunk, solve, fields))


def run(plan: SweepPlan, store: Any, scheduler: Any, progress: bool) -> tuple[Dataset, int]:
    """Compute a plan; return its result, and the number of chunks that were computed."""
    if store is None:
        return _held(plan, scheduler, progress)
    if not isinstance(store, str | os.PathLike):
        raise InputError(f"store: {shown(store)} given; allowed: the path of a folder")
    path = Path(os.fsdecode(store)).absolute()
    new, began = False, time.time()
    try:
        with workers(scheduler) as (pool, width):
            new = prepare(plan, path)
            results = each(partial(finish, plan, path), plan.blocks(), pool, width)
            computed = sum(was for _, was in watched(results, plan.block_count, progress))
        clear(path, began)
    except InputError:  # no later run could end this store; nobody writes to it any more
        if new:
            shutil.rmtree(path, ignore_errors=True)
        raise
    return opened(plan, path, {}), computed


def _held(plan: SweepPlan, scheduler: Any, progress: bool) -> tuple[Dataset, int]:
    numbers = plan.points * len(plan.variables)
    if numbers > IN_MEMORY:
        raise InputError(
            f"store: none given for {plan.points:,} points of {len(plan.variables)} quantities; allowed: a folder "
            f"for the result, as store='sweep.zarr'; up to {IN_MEMORY:,} numbers are held in memory"
        )
    data = {name: np.empty(plan.shape, np.int64) for name in plan.variables}
    with workers(scheduler) as (pool, width):
        results = each(partial(compute, plan), plan.blocks(), pool, width)
        for block, values in watched(results, plan.block_count, progress):
            for name, part in values.items():
                data[name][plan.slices(block)] = part
    return dataset(plan, data), plan.block_count
