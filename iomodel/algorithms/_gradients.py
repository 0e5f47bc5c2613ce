"""How the gradients of K and V leave the chip where the query heads of a group share a key/value head.

Each query head's program has gradients of its own. They are summed outside, from copies expanded to the query heads
(as FlashAttention-2's kernels do), or added atomically to fp32 accumulators (as FlashAttention-3's do). Where a head
has its keys for itself, or where the group is packed, they are stored directly.
"""

from collections.abc import Iterator

from sympy import Integer

from iomodel.nest import Accumulate, Fill, Guard, Hold, Kernel, Load, Loop, Statement, Store, Tensor, When
from iomodel.tensors import dK, dK_acc, dK_expanded, dV, dV_acc, dV_expanded, group, grouped, key

ONE = Integer(1)
EXPANDED = {dK: dK_expanded, dV: dV_expanded}
SUMS = {dK: dK_acc, dV: dV_acc}


def stores(*gradients: Tensor, accumulate: bool = False) -> Iterator[Guard]:
    """What every key tile stores."""
    yield When(grouped, [Store(gradient) for gradient in gradients], unless=True)
    if not accumulate:
        yield When(grouped, [Store(EXPANDED[gradient], held=gradient) for gradient in gradients])


def adds(accumulate: bool) -> Iterator[Guard]:
    """What a key tile that somebody sees adds."""
    if accumulate:
        yield When(grouped, [Accumulate(SUMS[gradient], held=gradient) for gradient in (dK, dV)])


def zeros() -> Iterator[Guard]:
    """Initial stores of the gradients."""
    yield When(grouped, [Fill(dK), Fill(dV)], unless=True)
    yield When(grouped, [Fill(dK_expanded), Fill(dV_expanded)])


def zeroed_sums(accumulate: bool) -> Iterator[Kernel]:
    """A kernel that zeroes the accumulators."""
    if accumulate:
        yield Kernel("dK_acc, dV_acc = 0", [When(grouped, [Fill(dK_acc), Fill(dV_acc)])], per="kv_head")


def summed(accumulate: bool = False) -> Iterator[Kernel]:
    """The kernels that bring the gradients into their final place, a row of keys at a time."""
    for gradient in (dK, dV):
        row: list[Statement]
        if accumulate:
            row = [Load(SUMS[gradient]), Store(gradient, held=SUMS[gradient])]
            title = f"{gradient.name} in its own dtype"
        else:
            row = [Hold(gradient, "fp32"), Loop(group, ONE, [Load(EXPANDED[gradient])]), Store(gradient)]
            title = f"{gradient.name} summed over the group"
        yield Kernel(title, [When(grouped, [Loop(key, ONE, row)])], per="kv_head")
