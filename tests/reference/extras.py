"""What a call adds to plain attention: terms of the scores, sinks, dropout, and other forms of K and V.

All kernels take them as one object. The terms of a tile of scores and the dropout of a tile of
probabilities are here, forward and backward; how K and V lie in memory is in `cache`.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Width

from .grid import IntArray, Program
from .masks import BoolArray


@dataclass(frozen=True)
class Extras:
    """The features of one call; each is off by default."""

    bias: FloatArray | None = None  # [B, H, N_q, N_k], added to the scores; [B, H, N_k] if all queries share it
    softcap: float | None = None  # c: S becomes c tanh(S / c)
    slopes: FloatArray | None = None  # [H], ALiBi
    sinks: FloatArray | None = None  # [H], one more logit in the denominator
    dropout: float | None = None  # the rate
    seed: int = 0  # of the dropout
    own_kv_dtype: bool = False  # K and V have the width "kv"
    scales: Literal["head", "token"] | None = None  # K and V are stored divided by
    K_scale: FloatArray | None = None  # these, [B, H_kv] or [B, H_kv, N_k]
    V_scale: FloatArray | None = None
    page_size: int | None = None  # K and V lie in pages of so many keys
    page_seed: int = 0  # of the order of the pages
    latent: bool = False  # V is the first columns of K


NONE = Extras()


def place(machine: Machine, extras: Extras, *, sinks: bool = True) -> None:
    """Put the tensors of the scores in HBM; a backward kernel needs no sinks."""
    inputs: list[tuple[str, FloatArray | None, Width]] = [
        ("bias", extras.bias, "io"), ("slopes", extras.slopes, "fp32"), ("sinks", extras.sinks if sinks else None, "io")
    ]  # fmt: skip
    for name, data, width in inputs:
        if data is not None:
            machine.hbm.alloc(name, data.shape, data, width)


def write_rng_state(machine: Machine, extras: Extras) -> None:
    """A forward kernel leaves the state of its generator for the backward pass."""
    if extras.dropout is not None:
        machine.hbm.alloc("R", (2,), width="int64")
        machine.hbm.store("R", slice(None), float(extras.seed))


def offset(q_len: int, kv_len: int, align: str) -> int:
    """The key that query 0 is aligned with."""
    return {"bottom-right": kv_len - q_len, "top-left": 0}[align]


class PerHead:
    """A program's elements of a tensor [H] on chip: of all its query heads, or of those of a tile of rows."""

    def __init__(self, machine: Machine, name: str, program: Program, width: Width, rows: int | None) -> None:
        self.machine, self.name, self.program = machine, name, program
        heads = program.heads_here.stop - program.heads_here.start
        self.buffer = machine.sram.alloc(name, (heads if rows is None else min(heads, rows),), width)
        self.values = np.full(heads, np.nan)  # the buffer by the head's place in the group

    def load(self, rows: slice | None) -> None:
        """Load one element for each head of these rows, or of the program."""
        program, here = self.program, self.program.heads_here
        heads = np.arange(here.start, here.stop) if rows is None else program.heads_of(rows)
        self.buffer[: len(heads)] = self.machine.hbm.load(self.name, heads)
        self.values[heads - here.start] = self.buffer[: len(heads)]

    def __getitem__(self, members: IntArray) -> FloatArray:
        return self.values[members]


def alloc_per_head(
    machine: Machine, name: str, program: Program, width: Width, rows: int | None = None
) -> PerHead | None:
    """A buffer for a program's elements of a tensor [H], or a tile's, if the call has that tensor."""
    return PerHead(machine, name, program, width, rows) if name in machine.hbm.arrays else None


def load_per_head(
    machine: Machine, name: str, program: Program, buffer: PerHead | None, rows: slice | None = None
) -> None:
    """Load those elements."""
    if buffer is not None:
        buffer.load(rows)


def alloc_bias(machine: Machine, block_q: int, block_kv: int, program: Program) -> FloatArray | None:
    """A buffer for a tile of the bias, if the call has one; of a bias that queries share, a row for each head."""
    if "bias" not in machine.hbm.arrays:
        return None
    heads = program.heads_here.stop - program.heads_here.start
    shared = machine.hbm.arrays["bias"].ndim == 3
    return machine.sram.alloc("bias", (min(heads, block_q) if shared else block_q, block_kv), "io")


def transform(
    machine: Machine,
    extras: Extras,
    s: FloatArray,
    program: Program,
    *,
    rows: slice,
    keys: slice,
    offset: int,
    bias: FloatArray | None = None,
    slope: PerHead | None = None,
) -> FloatArray:
    """Cap a tile of scaled scores, then add the bias and ALiBi, in place; the masking comes after.

    `bias` and `slope` are the buffers on chip: the bias is loaded into its own here, the slopes are there.
    Returns the derivative of the result by the scaled score, which the backward pass multiplies dS by.
    """
    derivative = np.ones_like(s)
    if extras.softcap is not None:
        t = machine.tanh(s / extras.softcap)
        s[:] = extras.softcap * t
        derivative -= t**2
    if bias is not None:
        if machine.hbm.arrays["bias"].ndim == 3:
            heads = program.heads_of(rows)
            b = bias[: len(heads), : s.shape[1]]
            b[:] = machine.hbm.load("bias", (program.batch, heads, keys))
            s += b[np.searchsorted(heads, program.positions(rows)[0])]
        else:
            b = bias[: s.shape[0], : s.shape[1]]
            b[:] = machine.hbm.load("bias", (*program.rows(rows), keys))
            s += b
    if slope is not None:
        _, queries = program.positions(rows)
        distance = np.arange(keys.start, keys.stop)[None, :] - (queries[:, None] + offset)
        s += slope[program.member(rows)][:, None] * distance
    return derivative


def keep_mask(extras: Extras, batch: int, heads: IntArray, queries: IntArray, keys: IntArray) -> BoolArray:
    """Which probabilities dropout keeps: a hash of the position alone, so that any tiling sees the same."""
    assert extras.dropout is not None
    x = np.full(np.broadcast_shapes(heads.shape, queries.shape, keys.shape), extras.seed, dtype=np.uint64)
    for value in (np.array(batch), heads, queries, keys):
        x = x + value.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)  # one round of SplitMix64 each
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    kept: BoolArray = x / 2.0**64 >= extras.dropout
    return kept


def kept(machine: Machine, extras: Extras, program: Program, rows: slice, keys: slice) -> FloatArray:
    """Z / (1 - p) of a tile, one random number an element; ones, and none drawn, without dropout."""
    heads, queries = program.positions(rows)
    shape = len(queries), keys.stop - keys.start
    if extras.dropout is None:
        return np.ones(shape)
    machine.randoms += shape[0] * shape[1]
    z = keep_mask(extras, program.batch, heads[:, None], queries[:, None], np.arange(keys.start, keys.stop)[None, :])
    return z / (1 - extras.dropout)
