"""Tensors and gates of the recurrences of keys and values."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import ceiling

from iomodel.nests.language import Axis, Load, Statement, Store, Tensor
from iomodel.nests.symbols import L, c
from iomodel.nests.tensors import depth, value

position = Axis("position", L)
other = Axis("other", L)
"""The same positions as columns of a matrix; in a piece, those of the chunk."""
chunk = Axis("chunk", ceiling(L / c))
"""The chunks of the sequence; a single chunk in a piece."""

Q = Tensor("Q", (position, depth), per="key_head")
K = Tensor("K", (position, depth), per="key_head")
V = Tensor("V", (position, value))
O = Tensor("O", (position, value))
beta = Tensor("beta", (position,))
STATE = Tensor("STATE", (depth, value), "fp32")
"""The state, carried on chip, and in HBM from call to call."""

DECAYS = ("constant_decay", "head_decay", "channel_decay")
"""The features of a gate; a call has at most one."""
FEATURES = (*DECAYS, "delta", "stateful")
_GATES = {
    "constant_decay": Tensor("g", (), "fp32", per="heads"),
    "head_decay": Tensor("g", (position,), "fp32"),
    "channel_decay": Tensor("g", (position, depth), "fp32"),
}


class Gate:
    """The logarithms of a decay: their loads, and exponentials for a decay per head or per channel."""

    def __init__(self, **decays: bool) -> None:
        self.name = next((name for name, present in decays.items() if present), "")
        self.loads: list[Statement] = [Load(_GATES[self.name])] if self.name else []
        self.last: list[Statement] = []
        """A load of the sum of a chunk, in kernels that take the sums from HBM."""

    def stored(self) -> list[Statement]:
        """Return the sums of a chunk, loaded and stored; from then on the gates are loaded as sums."""
        gates = _GATES[self.name]
        sums = Tensor("g_sums", gates.axes, "fp32")
        self.loads = [Load(sums)]
        self.last = [Load(Tensor("g_sums", (chunk, *gates.axes[1:]), "fp32", inside=True))]
        return [Load(gates), Store(sums, held=gates)]

    def exps(self, per_head: Sequence[Statement], per_channel: Sequence[Statement]) -> Sequence[Statement]:
        """Return the exponentials of a step: none without a gate."""
        return [] if not self.name else per_channel if self.name == "channel_decay" else per_head
