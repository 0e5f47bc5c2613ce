"""Storing of the gradients of K and V when the query heads of a group share a key/value head.

The program of each query head has separate gradients. They are summed later, from copies expanded to the query heads
(as in FlashAttention-2's kernels), or added atomically to fp32 accumulators (as in FlashAttention-3's). They are stored
directly if a head does not share its keys, or if the group is packed.
"""

from collections.abc import Iterator

from iomodel.nests.language import Accumulate, Fill, Guard, Hold, Kernel, Load, Loop, Statement, Store, Tensor, When
from iomodel.nests.symbols import ONE
from iomodel.nests.tensors import dK, dK_acc, dK_expanded, dV, dV_acc, dV_expanded, group, grouped, key

EXPANDED = {dK: dK_expanded, dV: dV_expanded}
SUMS = {dK: dK_acc, dV: dV_acc}


def stores(*gradients: Tensor, accumulate: bool = False) -> Iterator[Guard]:
    """Store the gradients of a key tile."""
    yield When(grouped, [Store(gradient) for gradient in gradients], unless=True)
    if not accumulate:
        yield When(grouped, [Store(EXPANDED[gradient], held=gradient) for gradient in gradients])


def adds(accumulate: bool) -> Iterator[Guard]:
    """Add the contribution of a key tile with visible queries."""
    if accumulate:
        yield When(grouped, [Accumulate(SUMS[gradient], held=gradient) for gradient in (dK, dV)])


def zeros() -> Iterator[Guard]:
    """Initialise the stored gradients."""
    yield When(grouped, [Fill(dK), Fill(dV)], unless=True)
    yield When(grouped, [Fill(dK_expanded), Fill(dV_expanded)])


def zeroed_sums(accumulate: bool) -> Iterator[Kernel]:
    """Declare a kernel that zeroes the accumulators."""
    if accumulate:
        yield Kernel("dK_acc, dV_acc = 0", [When(grouped, [Fill(dK_acc), Fill(dV_acc)])], per="kv_head")


def summed(accumulate: bool = False) -> Iterator[Kernel]:
    """Declare the kernels that move the gradients to their final place, one row of keys at a time."""
    for gradient in (dK, dV):
        row: list[Statement]
        if accumulate:
            row = [Load(SUMS[gradient]), Store(gradient, held=SUMS[gradient])]
            title = f"{gradient.name} in its own dtype"
        else:
            row = [Hold(gradient, "fp32"), Loop(group, ONE, [Load(EXPANDED[gradient])]), Store(gradient)]
            title = f"{gradient.name} summed over the group"
        yield Kernel(title, [When(grouped, [Loop(key, ONE, row)])], per="kv_head")
