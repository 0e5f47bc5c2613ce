"""What an experiment of a calibration is: data that say what one call does, and what follows from its time."""

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
"""What `only` may name: a group, or one of its figures."""


@dataclass(frozen=True)
class Sizes:
    """How large the experiments are; smaller ones are for trials away from a GPU.

    Parameters
    ----------
    hbm : bytes of one buffer that HBM is measured with [B].
    gemm : edge of a square matrix product [elements].
    lengths, tokens, width : attention calls: queries a head, tokens of all sequences, heads times head_dim [elements].
    head_dims : widths of a row of Q [elements].
    steps, passes : rounds of the chain of exponentials; how often an SM walks the L2's buffer [-].
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
    """One thing to measure.

    Parameters
    ----------
    name : the figure: a field of :class:`iomodel.hardware_fields.Measured`, and for an attention call what it is.
    field : that field.
    kind : which calls it is made of.
    unit : of the figure: B/s, FLOP/s, OP/s, or s.
    work : what one call moves or computes [B, FLOP, OP]; for a time, how many of the things timed it holds [-].
    method : how it is done, in a few words.
    parameters : sizes and types of the buffers; `bytes` of one set of them, and how many `buffers` take turns.
    kernels : about how many kernels one call launches, so that the queue of launches does not run full [-].
    flops : useful FLOPs of a call whose figure is a time [FLOP].
    left_out : why it cannot be tried on this device, if so.
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
        """The figure, to six digits, if one call takes so long [unit].

        >>> Experiment("hbm_copy", "hbm_copy", "copy", "B/s", 2 * 10**9, "", {}).value(1e-3)
        2000000000000.0
        """
        figure = seconds / self.work if self.unit == "s" else self.work / seconds
        return float(f"{figure:.6g}")


def chosen(found: Iterable[Experiment], only: Iterable[str]) -> list[Experiment]:
    """Those that `only` names, or all; UnknownNameError with the names there are."""
    names = {name: {name} for fields in GROUPS.values() for name in fields} | {g: set(f) for g, f in GROUPS.items()}
    wanted = [only] if isinstance(only, str) else list(only)
    for name in wanted:
        if not isinstance(name, str) or name not in names:
            raise UnknownNameError("only", name, [*GROUPS, *(name for fields in GROUPS.values() for name in fields)])
    kept = set[str]().union(*(names[name] for name in wanted or GROUPS))
    return [experiment for experiment in found if experiment.field in kept]
