"""Sparse Transformer: factorised self-attention (Child et al. 2019, arXiv:1904.10509, sections 4.2 and 4.3).

A layer uses one of two factors. Strided: the last `stride` positions, or every `stride`-th position before. Fixed: the
own section of `stride` positions, or the last `summary` positions of each section so far. Each is FlashAttention-2 over
the positions concerned, a tile without a visible pair skipped.
"""

from collections.abc import Iterator

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .grid import IntArray, split, visits
from .masks import BoolArray, dense_attention, visible
from .streaming import Visited, attend


def parts(n: int, stride: int, fixed: bool, second: bool) -> Iterator[tuple[IntArray, BoolArray]]:
    """Sets of positions that attend to one another, with who sees whom; not for the second fixed factor."""
    positions = np.arange(n)
    if not (fixed or second):
        yield positions, visible(n, n, stride, 0, "bottom-right")
        return
    for start in range(0, n, stride) if fixed else range(min(stride, n)):
        here = positions[start : start + stride] if fixed else positions[start::stride]
        yield here, visible(len(here), len(here), None, 0, "bottom-right")


def summarised(n: int, stride: int, summary: int, block_q: int) -> Iterator[tuple[IntArray, Visited]]:
    """The tiles of the second fixed factor: each section of rows by the summary of each section so far."""
    for section in split(n, stride):
        for tile in split(stride, block_q):
            rows = np.arange(section.start, section.stop)[tile]
            ends = range(stride, section.stop + 1, stride)
            keys = [np.arange(end - summary, end) for end in ends]
            yield rows, [(k, k[None, :] > rows[:, None]) for k in keys]


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = None,
    capacity: int | None = None,
    block_q: int,
    block_kv: int = 1,
    stride: int = 128,
    summary: int = 8,
    fixed: bool = False,
    second: bool = False,
) -> Run:
    """Run one factor for every head; the second fixed one takes the summary of a section as its tile of keys."""
    n = Q.shape[2]
    if right != 0 or K.shape[2] != n:
        raise ValueError("causal self-attention only")
    if fixed and second:
        if n % stride:
            raise ValueError("whole sections only")
        tiles, block_kv = list(summarised(n, stride, summary, block_q)), summary
    else:
        tiles = [
            (here[rows], [(here[visit.keys], visit.hidden) for visit in visited])
            for here, seen in parts(n, stride, fixed, second)
            for rows, visited in visits(seen, block_q, block_kv)
        ]
    machine = Machine(Q, K, V, capacity)
    machine.hbm.alloc("O", (*Q.shape[:3], V.shape[-1]))
    group = Q.shape[1] // K.shape[1]
    for b, h in np.ndindex(Q.shape[:2]):
        attend(machine, tiles, (b, h), (b, h // group), block_q=block_q, block_kv=block_kv)
    return machine.result(O=machine.hbm.arrays["O"])


def naive(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = 0,
    stride: int = 128,
    summary: int = 8,
    fixed: bool = False,
    second: bool = False,
) -> FloatArray:
    """Dense attention under the index sets A_i of sections 4.2 and 4.3, pair by pair."""
    assert right == 0
    seen = np.zeros((Q.shape[2], Q.shape[2]), dtype=np.bool_)
    for i, j in np.ndindex(seen.shape):
        if fixed:
            allowed = j % stride >= stride - summary if second else i // stride == j // stride
        else:
            allowed = (i - j) % stride == 0 if second else max(0, i - stride) <= j
        seen[i, j] = j <= i and allowed
    return dense_attention(Q, K, V, seen)[0]
