"""The kernels of `nsa`: how keys are compressed, scored and selected, and what is made of the choice."""

from dataclasses import dataclass

import numpy as np

from iomodel.testing.machine import Machine

from .grid import split
from .masks import BoolArray, finite
from .streaming import Streamed


@dataclass(frozen=True)
class Blocks:
    """How a sequence of n positions is cut; the paper's l, d, l' and its count."""

    n: int
    length: int  # positions that a compressed block covers
    stride: int  # from one compressed block to the next
    size: int  # positions of a block to select
    selected: int

    @property
    def compressed(self) -> int:
        return (self.n - self.length) // self.stride + 1

    @property
    def selectable(self) -> int:
        return self.n // self.size

    def tiles(self, run: int, block: int) -> list[slice]:
        """Tiles of compressed blocks that begin among those which the last position of a run of `stride` sees."""
        seen = max(0, run + 2 - self.length // self.stride)
        return [tile for tile in split(self.compressed, block) if tile.start < seen]

    def hidden(self, run: int, heads: int, tile: slice) -> BoolArray:
        """Compressed blocks that end after the position of a row; rows are (head, position)."""
        position = np.tile(np.arange(run * self.stride, (run + 1) * self.stride), heads)
        ends = np.arange(tile.start, tile.stop) * self.stride + self.length - 1
        return ends[None, :] > position[:, None]

    def share(self, block: int, compressed: int) -> int:
        """How often eq. 9 adds a compressed block to a block; its indices count from 1."""
        pieces, offsets = range(self.size // self.stride), range(self.length // self.stride)
        return sum(len(pieces) * (block + 1) - m - n == compressed + 1 for m in pieces for n in offsets)


def group(machine: Machine, kv_head: int) -> slice:
    """The query heads of a key head."""
    heads = machine.hbm.arrays["Q"].shape[1] // machine.hbm.arrays["K"].shape[1]
    return slice(kv_head * heads, (kv_head + 1) * heads)


def compress(machine: Machine, blocks: Blocks, at: tuple[int, int], block: int) -> None:
    """Eq. 7, for keys and values: a linear map of each offset in a block, added up."""
    hbm, sram = machine.hbm, machine.sram
    b, kv_head = at
    d, d_v = hbm.arrays["K"].shape[3], hbm.arrays["V"].shape[3]
    for tile in split(blocks.compressed, block):
        n = tile.stop - tile.start
        k, v = sram.alloc("K", (block, d))[:n], sram.alloc("V", (block, d_v))[:n]
        w_k, w_v = sram.alloc("W_K", (d, d)), sram.alloc("W_V", (d_v, d_v))
        k_cmp = sram.alloc("K_cmp", (block, d), "fp32")[:n]
        v_cmp = sram.alloc("V_cmp", (block, d_v), "fp32")[:n]
        k_cmp[:], v_cmp[:] = 0.0, 0.0
        for offset in range(blocks.length):
            rows = np.arange(tile.start, tile.stop) * blocks.stride + offset
            k[:], v[:] = hbm.load("K", (b, kv_head, rows)), hbm.load("V", (b, kv_head, rows))
            w_k[:], w_v[:] = hbm.load("W_K", offset), hbm.load("W_V", offset)
            k_cmp += machine.matmul(k, w_k)
            v_cmp += machine.matmul(v, w_v)
        hbm.store("K_cmp", (b, kv_head, tile), k_cmp)
        hbm.store("V_cmp", (b, kv_head, tile), v_cmp)
        sram.free()


def attend_compressed(machine: Machine, blocks: Blocks, at: tuple[int, int], block: int) -> None:
    """The first branch, for a run of `stride` positions of all heads of the group at a time."""
    hbm, sram = machine.hbm, machine.sram
    b, kv_head = at
    d, d_v, here = hbm.arrays["K"].shape[3], hbm.arrays["V"].shape[3], group(machine, kv_head)
    heads = here.stop - here.start
    for run in range(blocks.n // blocks.stride):
        place = b, here, slice(run * blocks.stride, (run + 1) * blocks.stride)
        rows = heads * blocks.stride
        q, k_tile, v_tile = sram.alloc("Q", (rows, d)), sram.alloc("K", (block, d)), sram.alloc("V", (block, d_v))
        streamed = Streamed(machine, rows, d_v, rows, block)
        tiles = blocks.tiles(run, block)
        if tiles:
            q[:] = hbm.load("Q", place).reshape(rows, d)
        for tile in tiles:
            k, v = k_tile[: tile.stop - tile.start], v_tile[: tile.stop - tile.start]
            k[:], v[:] = hbm.load("K_cmp", (b, kv_head, tile)), hbm.load("V_cmp", (b, kv_head, tile))
            streamed.add(streamed.scores(q, k, blocks.hidden(run, heads, tile)), v)
        hbm.store("O_cmp", place, streamed.output().reshape(heads, blocks.stride, d_v))
        hbm.store("LSE", place, streamed.lse().reshape(heads, blocks.stride))
        sram.free()


def importance(machine: Machine, blocks: Blocks, at: tuple[int, int], block: int) -> None:
    """Eqs. 8 to 10: the probabilities again, added up over what blocks share and over the heads of the group."""
    hbm, sram = machine.hbm, machine.sram
    b, kv_head = at
    d, here = hbm.arrays["K"].shape[3], group(machine, kv_head)
    heads = here.stop - here.start
    for run in range(blocks.n // blocks.stride):
        positions = slice(run * blocks.stride, (run + 1) * blocks.stride)
        rows = heads * blocks.stride
        q, lse = sram.alloc("Q", (rows, d)), sram.alloc("LSE", (rows,), "fp32")
        k_tile, s_tile = sram.alloc("K", (block, d)), sram.alloc("S", (rows, block), "fp32")
        p_slc = sram.alloc("P_slc", (blocks.stride, blocks.selectable), "fp32")
        p_slc[:] = 0.0
        tiles = blocks.tiles(run, block)
        if tiles:
            q[:] = hbm.load("Q", (b, here, positions)).reshape(rows, d)
            lse[:] = hbm.load("LSE", (b, here, positions)).reshape(rows)
        for tile in tiles:
            k, s = k_tile[: tile.stop - tile.start], s_tile[:, : tile.stop - tile.start]
            k[:] = hbm.load("K_cmp", (b, kv_head, tile))
            s[:] = machine.matmul(q, k.T) / np.sqrt(d)
            s[blocks.hidden(run, heads, tile)] = -np.inf
            s[:] = machine.exp(s - finite(lse)[:, None])
            of_group = s.reshape(heads, blocks.stride, -1).sum(axis=0)
            for column, to in np.ndindex(len(k), blocks.selectable):
                p_slc[:, to] += blocks.share(to, tile.start + column) * of_group[:, column]
        hbm.store("P_slc", (b, kv_head, positions), p_slc)
        sram.free()


def select(machine: Machine, blocks: Blocks, at: tuple[int, int, int], future_blocks: bool) -> None:
    """Eq. 11 for one position: of the blocks up to its own, that one, the first and the one before come before all."""
    hbm, sram = machine.hbm, machine.sram
    chosen, p = sram.alloc("I", (blocks.selected,), "int32"), sram.alloc("P_slc", (1,))
    own, found = at[2] // blocks.size, []
    for block in range(blocks.selectable if future_blocks else own + 1):
        p[:] = hbm.load("P_slc", (*at, slice(block, block + 1)))
        always = [own, 0, own - 1]
        rank = always.index(block) if block in always else len(always)
        if block <= own:
            found.append((rank, -p[0] if rank == len(always) else 0.0, block))
    best = [block for *_, block in sorted(found)[: blocks.selected]]
    chosen[:] = -1
    chosen[: len(best)] = best
    hbm.store("I", at, chosen)
    sram.free()


def attend_selected(machine: Machine, blocks: Blocks, at: tuple[int, int, int]) -> None:
    """The second branch: the heads of a group at one position, over the blocks they share."""
    hbm, sram = machine.hbm, machine.sram
    b, kv_head, position = at
    d, d_v, here = hbm.arrays["K"].shape[3], hbm.arrays["V"].shape[3], group(machine, kv_head)
    heads = here.stop - here.start
    chosen, q = sram.alloc("I", (blocks.selected,), "int32"), sram.alloc("Q", (heads, d))
    k, v = sram.alloc("K", (blocks.size, d)), sram.alloc("V", (blocks.size, d_v))
    streamed = Streamed(machine, heads, d_v, heads, blocks.size)
    chosen[:] = hbm.load("I", at)
    q[:] = hbm.load("Q", (b, here, position))
    for block in chosen[chosen >= 0].astype(int):
        keys = slice(block * blocks.size, (block + 1) * blocks.size)
        k[:], v[:] = hbm.load("K", (b, kv_head, keys)), hbm.load("V", (b, kv_head, keys))
        later = np.tile(np.arange(keys.start, keys.stop) > position, (heads, 1))
        streamed.add(streamed.scores(q, k, later), v)
    hbm.store("O_slc", (b, here, position), streamed.output())
    sram.free()


def gate(machine: Machine, branches: list[str], at: tuple[int, int, int]) -> None:
    """Eq. 5 for one position of one head: the branches by their gates."""
    hbm, sram = machine.hbm, machine.sram
    d_v = hbm.arrays["O"].shape[3]
    gates, o = sram.alloc("GATE", (len(branches),)), sram.alloc("O", (d_v,), "fp32")
    of_branch = {name: sram.alloc(name, (d_v,)) for name in branches}
    gates[:] = hbm.load("GATE", at)
    for name, buffer in of_branch.items():
        buffer[:] = hbm.load(name, at)
    o[:] = sum(g * buffer for g, buffer in zip(gates, of_branch.values(), strict=True))
    hbm.store("O", at, o)
    sram.free()
