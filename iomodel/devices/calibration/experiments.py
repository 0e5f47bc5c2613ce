"""Experiments of a calibration: the work of one call, and the figure that follows from its time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.errors import UnknownNameError

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
    field : field of :class:`iomodel.devices.fields.Measured`.
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
