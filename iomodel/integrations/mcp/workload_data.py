"""Workloads from the plain data of a tool's argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown
from iomodel.workloads.attention import Attention
from iomodel.workloads.cross_entropy import CrossEntropy
from iomodel.workloads.linear import Linear
from iomodel.workloads.mlp import MLP, Experts
from iomodel.workloads.recurrence import Recurrence
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.workload import Workload

KINDS: Mapping[str, type[Workload]] = FrozenDict(
    q_len=Attention,
    q_lens=VarlenAttention,
    out_features=Linear,
    loads=Experts,
    hidden_features=MLP,
    vocab_size=CrossEntropy,
    tokens=Recurrence,
)
"""The kind of workload that each of these fields belongs to; the first one given decides."""


def workload_from(data: Any) -> Workload:
    """Build the workload that plain data describe, a kind by its own field.

    >>> workload_from({"rows": 8, "in_features": 4, "out_features": 2}).flops
    128
    """
    if not isinstance(data, Mapping):
        raise InputError(
            f"workload: {shown(data)} given; allowed: an object such as {{'q_len': 4096, 'head_dim': 128}}"
        )
    kind = next((kind for field, kind in KINDS.items() if field in data), None)
    if kind is None:
        raise InputError(
            f"workload: {shown(dict(data))} given; allowed: the fields of a workload, one of {', '.join(KINDS)} "
            "among them"
        )
    return kind(**{str(name): value for name, value in data.items()})
