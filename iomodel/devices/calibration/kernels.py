"""Triton kernels of a calibration, compiled only where Triton is installed.

They stay plain functions until `kernel` compiles one, so that this module can be imported without Triton. Triton
reads their source, including annotations, and accepts only its own types.
"""

from __future__ import annotations

from functools import cache
from typing import Any

try:
    import triton.language as tl
except ImportError:  # no kernel is compiled then
    tl = None


def read(X, SUMS, blocks, BLOCK: tl.constexpr):
    """Read all of X once: program p sums the blocks p, p + programs, ..."""
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        total += tl.load(X + tl.cast(block, tl.int64) * BLOCK + lanes)
    tl.store(SUMS + tl.program_id(0), tl.sum(total, 0))


def walk(X, SUMS, blocks, steps, BLOCK: tl.constexpr):
    """Read `steps` blocks of X cyclically, each program from its own start; .cg bypasses the L1 cache."""
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    start = tl.program_id(0) * blocks // tl.num_programs(0)
    for step in range(steps):
        total += tl.load(X + (start + step) % blocks * BLOCK + lanes, cache_modifier=".cg")
    tl.store(SUMS + tl.program_id(0), tl.sum(total, 0))


def chain(SUMS, steps, BLOCK: tl.constexpr, UNROLL: tl.constexpr):
    """Replace x by 2**-x repeatedly in registers; negation is an operand modifier and costs nothing."""
    x = tl.arange(0, BLOCK).to(tl.float32) / BLOCK
    for _ in range(steps):
        for _ in tl.static_range(UNROLL):
            x = tl.exp2(-x)
    tl.store(SUMS + tl.program_id(0), tl.sum(x, 0))


@cache
def kernel(function: Any) -> Any:
    """Compile one of the functions above to a Triton kernel at its first launch."""
    import triton

    return triton.jit(function)
