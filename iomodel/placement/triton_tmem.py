"""Tensor memory of a Triton kernel on sm_100: accumulators, and the results that become left operands."""

from __future__ import annotations

from iomodel.placement.triton_kernel import TritonKernel
from iomodel.placement.triton_memory import instruction
from iomodel.placement.triton_target import TMEM_LIMIT


def tmem_columns(kernel: TritonKernel, arch: int, warps: int, stages: int) -> int:
    """Compute the columns of tensor memory of a launch [-]; more than 512 make it impossible.

    A column has 128 lanes of 4 B. A tile of 64 rows leaves half of them to other tiles, but an operand has the lanes of
    its accumulator.
    """
    if instruction(kernel, arch, warps) != "tcgen05":
        return 0
    products = kernel.products
    results = {product.name: product for product in products}
    rows = max(product.rows for product in products)
    carried = sum(product.columns for product in products if product.carried)
    scores = sum(product.columns for product in products if not product.carried and not product.into)
    fed = [product for product in products if product.left in results]
    operands = sum(max(product.depth * results[product.left].element // 4, 16) for product in fed)
    if rows < 128:
        total = _halves(kernel)
    elif stages < 2:
        total = carried + _in_turn(kernel)
    else:
        total = carried + scores + operands
    total *= max(1, rows // 128)
    return max(32, 1 << (total - 1).bit_length()) if total <= TMEM_LIMIT else total


def _in_turn(kernel: TritonKernel) -> int:
    """Compute the columns of the scores of one iteration: as an operand they take their own place, then free it."""
    live: dict[str, int] = {}
    most = 0
    for product in kernel.products:
        if not product.carried and not product.into:
            live[product.name] = product.columns
        most = max(most, sum(live.values()))
        live.pop(product.left, None)
    return most


def _halves(kernel: TritonKernel) -> int:
    """Compute the columns of tiles of 64 rows: each accumulator with its operand in the half that has more room."""
    results = {product.name: product for product in kernel.products}
    widths = []
    for product in kernel.products:
        operand = results.get(product.left)
        fed = max(product.depth * operand.element // 4, 16) if operand else 0
        widths.append(0 if product.into else product.columns + fed)
    halves = [0, 0]
    for width in sorted(widths, reverse=True):
        halves[halves.index(min(halves))] += width
    return max(halves)
