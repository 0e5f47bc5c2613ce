"""What the backward kernels share: the call, its tiles in the order of the keys, and P made again of a tile."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Width

from ..extras import Extras, alloc_bias, alloc_per_head, kept, load_per_head, offset, place, transform
from ..grid import Program, Sight, Visit, programs, split, visits
from ..masks import BoolArray, finite, logsumexp
from ..written import PLAIN, Statistics, Written, masks_of

SAVED: dict[str, Width] = {
    "O": "io",
    "P": "io",
    "P_drop": "io",
    "dropout_mask": "bool",
    "LSE": "fp32",
    "l": "fp32",
    "m": "fp32",
}


@dataclass(frozen=True)
class Call:
    """The machine with the inputs in HBM, and how the heads and rows are cut."""

    machine: Machine
    extras: Extras
    packed: bool
    seen: BoolArray  # by the rows of a program
    sight: Sight
    offset: int
    programs: list[Program]
    written: Written
    statistics: Statistics

    def by_queries(self, block_q: int, block_kv: int) -> list[tuple[slice, list[Visit]]]:
        """The row tiles, each with the key tiles that it sees."""
        return visits(self.seen, block_q, block_kv, self.sight)

    def by_keys(self, block_q: int, block_kv: int) -> list[tuple[slice, list[Visit]]]:
        """The key tiles, each with the row tiles that see it."""
        found: list[tuple[slice, list[Visit]]] = [(keys, []) for keys in split(self.seen.shape[1], block_kv)]
        for _, visited in self.by_queries(block_q, block_kv):
            for visit in visited:
                found[visit.keys.start // block_kv][1].append(visit)
        return found


def prepare(
    tensors: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    saved: Mapping[str, FloatArray],
    needs: tuple[str, ...],
    *,
    left: int | None,
    right: int | None,
    align: str,
    seen: BoolArray | None,
    packed: bool,
    capacity: int | None,
    extras: Extras,
    written: Written = PLAIN,
    rows: tuple[int, ...] = (1,),
) -> Call:
    """Put Q, K, V and dO in HBM, and of what the forward pass left that which the kernels need, in tiles of `rows`."""
    Q, K, V, dO = tensors
    if extras.own_kv_dtype or extras.scales or extras.page_size or extras.latent:
        raise ValueError("the backward kernels read K and V as they are")
    machine = Machine(Q, K, V, capacity, dO=dO)
    statistics = Statistics(machine, Q, K, packed, written)
    if "LSE" in needs and written.two_statistics:
        needs = (*(name for name in needs if name != "LSE"), "m", "l")
    for name in needs:
        if name in ("LSE", "m", "l"):
            statistics.alloc(name, *rows, data=saved[name])
        else:
            machine.hbm.alloc(name, saved[name].shape, saved[name], SAVED[name])
    if "P" not in needs:  # P contains all terms of the scores
        place(machine, extras, sinks=False)
    if extras.dropout is not None:
        machine.hbm.alloc("R", (2,), np.array([extras.seed, 0.0]), "int64")
    mask, sight = masks_of(
        Q, K, left=left, right=right, align=align, packed=packed, seen=seen, written=written, block_q=max(rows)
    )
    shift = offset(Q.shape[2], K.shape[2], align)
    return Call(machine, extras, packed, mask, sight, shift, programs(Q, K, packed), written, statistics)


def load_lse(call: Call, program: Program, rows: slice, block_q: int) -> FloatArray:
    """The log-sum-exp of a tile of rows, as it was saved or of m and l."""
    if not call.written.two_statistics:
        return call.statistics.load("LSE", program, rows, block_q)
    m, l = (call.statistics.load(name, program, rows, block_q) for name in ("m", "l"))
    return logsumexp(m, l)


class Remade(NamedTuple):
    """P of a tile, in the buffer of S; the rest of what its gradient takes."""

    p: FloatArray
    dp: FloatArray  # the buffer of dP, until then with the derivative of the softcap
    z: FloatArray  # what dropout keeps, the sign of P in a real kernel and no buffer


class Scores:
    """The scores of one tile at a time, on chip: S becomes P, and dP becomes dS, each in place."""

    def __init__(self, call: Call, program: Program, block_q: int, block_kv: int, by_rows: bool = False) -> None:
        self.call, self.machine, self.program = call, call.machine, program
        sram = self.machine.sram
        self.s_tile = sram.alloc("S", (block_q, block_kv), "fp32")
        self.dp_tile = sram.alloc("dP", (block_q, block_kv), "fp32")
        self.bias = alloc_bias(self.machine, block_q, block_kv, program)
        self.slopes = alloc_per_head(self.machine, "slopes", program, "fp32", block_q if by_rows else None)
        self.rng = sram.alloc("R", (2,), "int64") if call.extras.dropout is not None else None

    def begin(self, rows: slice | None = None) -> None:
        """Load what comes with a stationary tile, of these rows or of keys: the slopes, the generator's state."""
        load_per_head(self.machine, "slopes", self.program, self.slopes, rows)
        if self.rng is not None:
            self.rng[:] = self.machine.hbm.load("R", ...)

    def remake(self, visit: Visit, q: FloatArray, k: FloatArray, base: FloatArray) -> Remade:
        """Make exp(S - base) again, one exponential an element."""
        shape = len(q), len(k)
        s, dp = self.s_tile[: shape[0], : shape[1]], self.dp_tile[: shape[0], : shape[1]]
        s[:] = self.machine.matmul(q, k.T) / np.sqrt(q.shape[1])
        dp[:] = transform(
            self.machine, self.call.extras, s, self.program, rows=visit.rows, keys=visit.keys,
            offset=self.call.offset, bias=self.bias, slope=self.slopes,
        )  # fmt: skip
        s[visit.hidden] = -np.inf
        s[:] = self.machine.exp(s - finite(base)[:, None])
        return Remade(s, dp, kept(self.machine, self.call.extras, self.program, visit.rows, visit.keys))

    def back(self, tile: Remade, do: FloatArray, v: FloatArray, D: FloatArray) -> FloatArray:
        """Make dP and turn it into dS, with the factor 1 / sqrt(d) of dQ and dK; dV has been made and P is used up."""
        p, dp, z = tile
        p *= dp
        dp[:] = self.machine.matmul(do, v.T) * z
        dp -= D[:, None]
        dp *= p / np.sqrt(self.machine.hbm.arrays["Q"].shape[-1])
        return dp
