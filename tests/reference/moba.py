"""Mixture of Block Attention: own block and chosen blocks (Lu et al. 2025, arXiv:2502.13189, Algorithm 1).

The queries that chose a block are gathered from the whole sequence, head by head, and attend to it in tiles. Each query
keeps a place for the output of every block it attends to; the place of its own block is the first.
"""

import numpy as np

from iomodel.testing.machine import FloatArray, Machine, Run

from .grid import IntArray, split
from .masks import dense_attention
from .streaming import Streamed


def average(machine: Machine, at: tuple[int, int], size: int) -> None:
    """Line 3: the mean of the keys of each block, one position at a time."""
    hbm, sram = machine.hbm, machine.sram
    n, d = hbm.arrays["K_mean"].shape[2:]
    for block in range(n):
        k, mean = sram.alloc("K", (d,)), sram.alloc("K_mean", (d,), "fp32")
        mean[:] = 0.0
        for offset in range(size):
            k[:] = hbm.load("K", (*at, block * size + offset))
            mean += k / size
        hbm.store("K_mean", (*at, block), mean)
        sram.free()


def score(machine: Machine, at: tuple[int, int], kv_head: int, own: int, size: int, rows: int, block: int) -> None:
    """Line 4 for the queries of one block: products with the means of the blocks so far, in whole tiles."""
    hbm, sram = machine.hbm, machine.sram
    n, d = hbm.arrays["K_mean"].shape[2:]
    for tile in split(size, rows):
        here = slice(own * size + tile.start, own * size + tile.stop)
        q, mean = sram.alloc("Q", (rows, d))[: tile.stop - tile.start], sram.alloc("K_mean", (block, d))
        s = sram.alloc("S_G", (rows, block), "fp32")[: len(q)]
        q[:] = hbm.load("Q", (*at, here))
        for blocks in split(n, block):
            if blocks.start <= own:
                m = blocks.stop - blocks.start
                mean[:m] = hbm.load("K_mean", (at[0], kv_head, blocks))
                s[:, :m] = machine.matmul(q, mean[:m].T)
                hbm.store("S_G", (*at, here, blocks), s[:, :m])
        sram.free()


def choose(machine: Machine, at: tuple[int, int, int], size: int) -> None:
    """Line 5 for one query: its own block, then the past ones of the largest scores; the first of equal ones."""
    hbm, sram = machine.hbm, machine.sram
    chosen, s = sram.alloc("I", (hbm.arrays["I"].shape[3],), "int32"), sram.alloc("S_G", (1,), "fp32")
    own, scores = at[2] // size, []
    for block in range(own + 1):
        s[:] = hbm.load("S_G", (*at, slice(block, block + 1)))
        scores.append(np.inf if block == own else s[0])
    best = np.argsort(-np.array(scores), kind="stable")[: len(chosen)]
    chosen[:] = -1
    chosen[: len(best)] = best
    hbm.store("I", at, chosen)
    sram.free()


def lists(machine: Machine, at: tuple[int, int], rows: int) -> list[slice]:
    """Line 6: the queries of each past block with their places, block by block; return the tiles of every list."""
    hbm, sram = machine.hbm, machine.sram
    n, selected = hbm.arrays["I"].shape[2:]
    chosen: list[list[int]] = [[] for _ in range(n)]
    row = sram.alloc("I", (selected,), "int32")
    for query in range(n):
        row[:] = hbm.load("I", (*at, query))
        for place in range(1, selected):
            if row[place] >= 0:
                chosen[int(row[place])].append(query * selected + place)
    sram.free()
    buffer = sram.alloc("J", (rows,), "int32")
    tiles, start = [], 0
    for entries in chosen:
        for tile in split(len(entries), rows):
            here = buffer[: tile.stop - tile.start]
            here[:] = entries[tile]
            tiles.append(slice(start + tile.start, start + tile.stop))
            hbm.store("J", (*at, tiles[-1]), here)
        start += len(entries)
    sram.free()
    return tiles


class Tile:
    """The buffers of one tile of queries and one of keys."""

    def __init__(self, machine: Machine, n: int, rows: int, block: int) -> None:
        d, d_v = machine.hbm.arrays["K"].shape[3], machine.hbm.arrays["V"].shape[3]
        self.q = machine.sram.alloc("Q", (rows, d))[:n]
        self.k, self.v = machine.sram.alloc("K", (block, d)), machine.sram.alloc("V", (block, d_v))
        self.streamed = Streamed(machine, n, d_v, rows, block)


def attend(
    machine: Machine,
    at: tuple[int, int],
    kv_head: int,
    keys: slice,
    queries: slice | IntArray,
    places: int | IntArray,
    *,
    causal: bool,
    rows: int,
    block: int,
) -> None:
    """Lines 7 and 8 for a tile of queries and one block of keys: FlashAttention-2, with the LSE."""
    hbm = machine.hbm
    position = np.arange(hbm.arrays["Q"].shape[2])[queries]
    on_chip = Tile(machine, len(position), rows, block)
    q, k, v, streamed = on_chip.q, on_chip.k, on_chip.v, on_chip.streamed
    q[:] = hbm.load("Q", (*at, queries))
    for tile in split(keys.stop - keys.start, block):
        here = slice(keys.start + tile.start, keys.start + tile.stop)
        if causal and here.start > position[-1]:
            break
        m = here.stop - here.start
        k[:m], v[:m] = hbm.load("K", (at[0], kv_head, here)), hbm.load("V", (at[0], kv_head, here))
        later = np.arange(here.start, here.stop)[None, :] > position[:, None] if causal else None
        streamed.add(streamed.scores(q, k[:m], later), v[:m])
    hbm.store("O_blk", (*at, queries, places), streamed.output())
    hbm.store("LSE_blk", (*at, queries, places), streamed.lse())


def combine(machine: Machine, at: tuple[int, int, int], filled: int) -> None:
    """Line 9 for one query: the outputs of its blocks by a running softmax of their LSEs."""
    hbm, sram = machine.hbm, machine.sram
    d_v = hbm.arrays["O"].shape[3]
    o, part = sram.alloc("O", (d_v,), "fp32"), sram.alloc("O_blk", (d_v,))
    l, m, lse = (sram.alloc(name, (1,), "fp32") for name in ("l", "m", "LSE_blk"))
    o[:], l[:], m[:] = 0.0, 0.0, -np.inf
    for place in range(filled):
        lse[:], part[:] = hbm.load("LSE_blk", (*at, slice(place, place + 1))), hbm.load("O_blk", (*at, place))
        largest = np.maximum(m, lse)
        before, weight = machine.exp(m - largest), machine.exp(lse - largest)
        o[:], l[:], m[:] = before * o + weight * part, before * l + weight, largest
    hbm.store("O", at, o / l)
    sram.free()


def run(
    Q: FloatArray,
    K: FloatArray,
    V: FloatArray,
    *,
    right: int | None = None,
    capacity: int | None = None,
    block_proj: int,
    block_sum: int,
    block_q: int,
    block_kv: int,
    select_block: int = 512,
    selected: int = 3,
) -> Run:
    """Average, score, choose and list; attend to the own block and, gathered, to the chosen ones; combine."""
    (batch, heads, n, _), (_, kv_heads, kv_len, d_v) = Q.shape, V.shape
    if right != 0 or kv_len != n or n % select_block:
        raise ValueError("causal self-attention of whole blocks only")
    machine, group, blocks = Machine(Q, K, V, capacity), heads // kv_heads, n // select_block
    hbm = machine.hbm
    hbm.alloc("K_mean", (batch, kv_heads, blocks, K.shape[3]))
    for head in np.ndindex(batch, kv_heads):
        average(machine, head, select_block)
    hbm.alloc("S_G", (batch, heads, n, blocks), width="fp32")
    for b, h, own in np.ndindex(batch, heads, blocks):
        score(machine, (b, h), h // group, own, select_block, block_proj, block_sum)
    hbm.free("K_mean")
    hbm.alloc("I", (batch, heads, n, selected), width="int32")
    for row in np.ndindex(batch, heads, n):
        choose(machine, row, select_block)
    hbm.free("S_G")
    hbm.alloc("J", (batch, heads, n * selected), width="int32")
    tiles = {head: lists(machine, head, block_q) for head in np.ndindex(batch, heads)}
    chosen = hbm.arrays["I"]
    hbm.free("I")
    hbm.alloc("O_blk", (batch, heads, n, selected, d_v))
    hbm.alloc("LSE_blk", (batch, heads, n, selected), width="fp32")
    size = {"rows": block_q, "block": block_kv}
    for b, h, own in np.ndindex(batch, heads, blocks):
        keys = slice(own * select_block, (own + 1) * select_block)
        for rows in split(select_block, block_q):
            queries = slice(keys.start + rows.start, keys.start + rows.stop)
            attend(machine, (b, h), h // group, keys, queries, 0, causal=True, **size)
            machine.sram.free()
    for (b, h), of_head in tiles.items():
        if not of_head:  # a launch has its buffers even where no block is chosen
            machine.sram.alloc("J", (block_q,), "int32")
            Tile(machine, 0, block_q, block_kv)
            machine.sram.free()
        for tile in of_head:
            entries = machine.sram.alloc("J", (block_q,), "int32")[: tile.stop - tile.start]
            entries[:] = hbm.load("J", (b, h, tile))
            queries, places = np.divmod(entries.astype(int), selected)
            block = int(chosen[b, h, queries[0], places[0]])
            keys = slice(block * select_block, (block + 1) * select_block)
            attend(machine, (b, h), h // group, keys, queries, places, causal=False, **size)
            machine.sram.free()
    hbm.free("J")
    hbm.alloc("O", (batch, heads, n, d_v))
    for row in np.ndindex(batch, heads, n):
        combine(machine, row, min(row[2] // select_block + 1, selected))
    hbm.free("O_blk")
    hbm.free("LSE_blk")
    return machine.result(O=hbm.arrays["O"], I=chosen)


def naive(
    Q: FloatArray, K: FloatArray, V: FloatArray, *, right: int | None = 0, select_block: int = 512, selected: int = 3
) -> FloatArray:
    """Dense attention under the mask of equations 2 to 6: causal, and the keys of a query's blocks alone."""
    assert right == 0
    (batch, heads, n, d), group = Q.shape, Q.shape[1] // K.shape[1]
    means = K.reshape(batch, K.shape[1], n // select_block, select_block, d).mean(axis=3).repeat(group, axis=1)
    gates = np.einsum("bhnd,bhid->bhni", Q, means)
    seen = np.zeros((batch, heads, n, n), dtype=np.bool_)
    for b, h, i in np.ndindex(batch, heads, n):
        past = sorted(range(i // select_block), key=lambda block: (-gates[b, h, i, block], block))
        for block in [i // select_block, *past][:selected]:
            seen[b, h, i, block * select_block : (block + 1) * select_block] = True
    return dense_attention(Q, K, V, seen & np.tri(n, dtype=np.bool_))[0]
