"""The kinds of workload that are built from named fields, in arrays, sweeps and on the command line."""

from __future__ import annotations

from iomodel.workloads.attention import Attention
from iomodel.workloads.cross_entropy import CrossEntropy
from iomodel.workloads.linear import Linear
from iomodel.workloads.mlp import MLP
from iomodel.workloads.recurrence import Recurrence
from iomodel.workloads.workload import Shape

KINDS: dict[str, type[Shape]] = {kind.operation: kind for kind in (Attention, Linear, MLP, CrossEntropy, Recurrence)}
"""Each kind by its operation."""
UNMASKED: dict[str, type[Shape]] = {name: kind for name, kind in KINDS.items() if kind is not Attention}
"""The kinds without a mask, whose calls in arrays have nothing but fields."""
NOUNS = {
    "attention": "an attention call",
    "linear": "a linear layer",
    "mlp": "an MLP",
    "cross_entropy": "a cross-entropy",
    "recurrence": "a recurrence",
}
"""The kinds in messages."""
