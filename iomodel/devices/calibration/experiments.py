"""Experiments of a calibration: the work of one call, and the figure that follows from its time.

Nothing runs here; :mod:`iomodel.devices.calibration.experiment_calls` turns an experiment into calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import UnknownNameError

Run = Callable[[int], float]
"""Runs a number of calls back to back and returns the device time of all of them [s]."""


@dataclass(frozen=True)
class Facts:
    """Facts that the driver reports about one device.

    Parameters
    ----------
    name, vendor, architecture, capability : identification: "NVIDIA H200", "NVIDIA", "sm_90", "9.0".
    units : SMs [-].
    memory, memory_free, l2_bytes : total memory, free memory, and the L2 cache, if reported [B].
    sram_per_block, sram_per_block_static, sram_per_sm : shared memory [B]; None if not reported.
    hbm_bandwidth, clock : memory clock times bus width [B/s], and the highest clock of an SM [Hz].
    registers_per_sm, threads_per_sm, threads_per_block, warp_size : limits [-].
    driver, software : versions.
    triton : True if Triton is installed to compile kernels.
    """

    name: str
    units: int
    memory: int
    memory_free: int
    l2_bytes: int | None = None
    vendor: str | None = None
    architecture: str | None = None
    capability: str | None = None
    sram_per_block: int | None = None
    sram_per_block_static: int | None = None
    sram_per_sm: int | None = None
    hbm_bandwidth: int | None = None
    clock: int | None = None
    registers_per_sm: int | None = None
    threads_per_sm: int | None = None
    threads_per_block: int | None = None
    warp_size: int | None = None
    driver: str | None = None
    software: str | None = None
    triton: bool = False


class CalibrationDevice(Protocol):
    """A device that runs experiments; the tests provide a device whose calls take a known time."""

    @property
    def facts(self) -> Facts:
        """Facts reported by the driver."""

    def load(self, experiment: Experiment) -> AbstractContextManager[Run]:
        """Allocate an experiment's buffers; any exception here or in a run marks the experiment as failed."""

    def now(self) -> float:
        """Read a monotonic clock of the host [s]."""


GIB = 2**30
GROUPS = {
    "hbm": ("hbm_copy", "hbm_read"),
    "l2": ("l2_bandwidth",),
    "gemm": ("gemm_bf16", "gemm_fp16", "gemm_tf32", "gemm_fp8", "gemm_qk_bf16", "gemm_pv_bf16"),
    "exp": ("exp",),
    "launch": ("kernel_launch", "graph_node"),
    "attention": ("attention_forward", "attention_backward"),
}
"""Allowed values of `only`: a group, or one of its figures."""


@dataclass(frozen=True)
class ExperimentSizes:
    """Sizes of the experiments; smaller ones are for trials without a GPU.

    Parameters
    ----------
    hbm : size of one buffer of the HBM experiments [B].
    gemm : edge of a square matrix product [elements].
    lengths, tokens, width : attention calls: queries per head, tokens of all sequences, heads times head_dim.
    head_dims : widths of a row of Q [elements].
    steps, passes : rounds of the chain of exponentials; passes of an SM over the L2 buffer [-].
    launches, nodes : kernels queued in one call, and nodes of one graph [-].
    """

    hbm: int = GIB
    gemm: int = 8192
    lengths: tuple[int, ...] = (4096, 1024, 16384)
    tokens: int = 16384
    width: int = 2048
    head_dims: tuple[int, ...] = (128, 64)
    steps: int = 512
    passes: int = 8
    launches: int = 100
    nodes: int = 400


@dataclass(frozen=True)
class Experiment:
    """One measurement: its calls, their work and its figure.

    Parameters
    ----------
    name : name of the figure: its field, and for an attention call also its shape.
    field : field of :class:`iomodel.devices.device_fields.Measured`.
    kind : kind of its calls.
    unit : unit of the figure: B/s, FLOP/s, OP/s, or s.
    work : work of one call [B, FLOP, OP]; for a time, the number of timed events per call [-].
    method : method, in a few words.
    parameters : sizes and types of the buffers, `bytes` per set, and the number of rotating sets, `buffers`.
    kernels : approximate number of kernels per call, which keeps the launch queue from filling up [-].
    flops : useful FLOPs of a call whose figure is a time [FLOP].
    left_out : reason for which it cannot run on this device, or None.
    """

    name: str
    field: str
    kind: str
    unit: str
    work: int
    method: str
    parameters: Mapping[str, Any]
    kernels: int = 1
    flops: int | None = None
    left_out: str | None = None

    def value(self, seconds: float) -> float:
        """Convert the time of one call to the figure, with six digits [unit].

        >>> Experiment("hbm_copy", "hbm_copy", "copy", "B/s", 2 * 10**9, "", {}).value(1e-3)
        2000000000000.0
        """
        figure = seconds / self.work if self.unit == "s" else self.work / seconds
        return float(f"{figure:.6g}")


def chosen(available: Iterable[Experiment], only: Iterable[str]) -> list[Experiment]:
    """Select the experiments named by `only`, or all; raise UnknownNameError for an unknown name."""
    names = {name: {name} for fields in GROUPS.values() for name in fields} | {g: set(f) for g, f in GROUPS.items()}
    wanted = [only] if isinstance(only, str) else list(only)
    for name in wanted:
        if not isinstance(name, str) or name not in names:
            raise UnknownNameError("only", name, [*GROUPS, *(name for fields in GROUPS.values() for name in fields)])
    kept = set[str]().union(*(names[name] for name in wanted or GROUPS))
    return [experiment for experiment in available if experiment.field in kept]


BLOCK = 4096
"""Elements that a program of a Triton kernel processes at once; fp32."""
UNROLL = 8
"""Exponentials in the body of the chain's loop."""
LARGEST_L2 = 2**28
"""Assumed size of an unknown L2 cache, above all known ones [B]."""
FLOPS_OF_BACKWARD = 2.5
"""Ratio of backward to forward FLOPs: five matrix products instead of two."""


def experiments(facts: Facts, sizes: ExperimentSizes | None = None) -> list[Experiment]:
    """List all experiments that a device can run, the most useful first."""
    sizes = sizes or ExperimentSizes()
    return [
        *_memory(facts, sizes),
        *_cache(facts, sizes),
        *_products(facts, sizes),
        *_pipes(facts, sizes),
        *_attention(sizes),
    ]


def _turns(bytes_each: int, facts: Facts) -> int:
    """Count the sets of buffers to rotate: at least four times the L2 cache, within a quarter of the free memory."""
    needed = -(-4 * (facts.l2_bytes or LARGEST_L2) // bytes_each)
    return max(1, min(max(2, needed), 64, facts.memory_free // 4 // bytes_each))


def _memory(facts: Facts, sizes: ExperimentSizes) -> Iterator[Experiment]:
    size = sizes.hbm
    while size > 2**20 and (4 * size > facts.memory_free // 4):
        size //= 2
    for field, moved in (("hbm_copy", 2), ("hbm_read", 1)):
        turns = _turns(moved * size, facts)
        kind = "copy" if field == "hbm_copy" else "read" if facts.triton else "sum"
        tool = {"copy": "torch copy", "read": "Triton kernel that sums", "sum": "torch sum"}[kind]
        method = f"{tool}, {size / 2**20:g} MiB, {turns} buffers in turn"
        parameters = {"elements": size // 4, "bytes": moved * size, "buffers": turns, "programs": 8 * facts.units}
        yield Experiment(field, field, kind, "B/s", moved * size, method, FrozenDict(parameters))


def _cache(facts: Facts, sizes: ExperimentSizes) -> Iterator[Experiment]:
    """Measure an eighth of the L2 cache: well inside it, and far above the L1 caches."""
    buffer = 2 ** max(18, ((facts.l2_bytes or 0) // 8).bit_length() - 1)
    blocks, programs = buffer // 4 // BLOCK, 4 * facts.units
    steps = max(1, sizes.passes * blocks)
    parameters = {"elements": buffer // 4, "blocks": blocks, "steps": steps, "programs": programs, "bytes": buffer}
    method = f"Triton kernel, {programs} programs walk {buffer / 2**20:g} MiB round and round, past the L1"
    reason = _no_triton(facts) or (None if facts.l2_bytes else "the driver does not tell the size of the L2")
    name, moved = "l2_bandwidth", programs * steps * BLOCK * 4
    yield Experiment(name, name, "walk", "B/s", moved, method, FrozenDict(parameters, buffers=1), left_out=reason)


def _no_triton(facts: Facts) -> str | None:
    return None if facts.triton else "left out, Triton is not installed"


def _products(facts: Facts, sizes: ExperimentSizes) -> Iterator[Experiment]:
    n = sizes.gemm
    for dtype, width in (("bf16", 2), ("fp16", 2), ("tf32", 4), ("fp8", 1)):
        yield _gemm(facts, f"gemm_{dtype}", dtype, width, (n, n, n), 1)
    length, d = sizes.lengths[0], sizes.head_dims[0]
    batch = max(1, sizes.tokens // length) * max(1, sizes.width // d)
    yield _gemm(facts, "gemm_qk_bf16", "bf16", 2, (length, length, d), batch)
    yield _gemm(facts, "gemm_pv_bf16", "bf16", 2, (length, d, length), batch)


def _gemm(facts: Facts, name: str, dtype: str, width: int, shape: tuple[int, int, int], batch: int) -> Experiment:
    m, n, k = shape
    moved = batch * (m * k + k * n + m * n) * width
    turns = _turns(moved, facts)
    batches = f"{batch} times " if batch > 1 else ""
    method = f"torch, {batches}{m} x {k} by {k} x {n}, random numbers, {turns} buffers in turn"
    parameters = {"dtype": dtype, "m": m, "n": n, "k": k, "batch": batch, "bytes": moved, "buffers": turns}
    return Experiment(name, name, "gemm", "FLOP/s", 2 * batch * m * n * k, method, FrozenDict(parameters))


def _pipes(facts: Facts, sizes: ExperimentSizes) -> Iterator[Experiment]:
    programs = 8 * facts.units
    work = programs * BLOCK * UNROLL * sizes.steps
    parameters = FrozenDict({"programs": programs, "steps": sizes.steps, "bytes": 4 * programs, "buffers": 1})
    method = f"Triton kernel, {sizes.steps * UNROLL} rounds of x <- 2**-x on fp32 registers"
    yield Experiment("exp", "exp", "chain", "OP/s", work, method, parameters, left_out=_no_triton(facts))
    tiny = FrozenDict({"bytes": 4, "buffers": 1})
    method = "torch, kernels of one element queued ahead, start to start"
    yield Experiment("kernel_launch", "kernel_launch", "launch", "s", sizes.launches, method, tiny, sizes.launches)
    method = f"torch, {sizes.nodes} kernels of one element in a CUDA graph"
    yield Experiment("graph_node", "graph_node", "graph", "s", sizes.nodes, method, tiny)


def _attention(sizes: ExperimentSizes) -> Iterator[Experiment]:
    for length, d, mask, direction in product(
        sizes.lengths, sizes.head_dims, ("full", "causal"), ("forward", "backward")
    ):
        batch, heads = max(1, sizes.tokens // length), max(1, sizes.width // d)
        pairs = length * length if mask == "full" else length * (length + 1) // 2
        flops = 4 * batch * heads * pairs * d
        backward = direction == "backward"
        moved = (8 if backward else 4) * batch * heads * length * d * 2
        call = {"direction": direction, "mask": mask, "batch": batch, "heads": heads, "length": length, "head_dim": d}
        yield Experiment(
            f"attention_{direction} {mask} d={d} n={length}",
            f"attention_{direction}",
            "attention",
            "s",
            1,
            "torch scaled_dot_product_attention, flash backend, bf16",
            FrozenDict({**call, "dtype": "bf16", "bytes": moved, "buffers": 2}),
            kernels=5 if backward else 1,
            flops=int(FLOPS_OF_BACKWARD * flops) if backward else flops,
        )
