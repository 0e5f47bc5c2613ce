"""Attention over a sequence that ranks share, simulated: each rank has its own arrays, and messages carry copies.

Ring attention (Liu, Zaharia and Abbeel 2023, arXiv:2310.01889, Algorithm 1) passes K and V round a ring. Causal work is
balanced by stripes (Brandon et al. 2023, arXiv:2311.09431) or by a chunk from either end of the sequence for each rank
(zigzag). DeepSpeed-Ulysses (Jacobs et al. 2023, arXiv:2309.14509, section 3) exchanges rows for heads and back. Llama 3
(arXiv:2407.21783, section 3.3.2) gathers K and V before attention, with the chunks of zigzag.

The attention of a rank is FlashAttention-2 on its part, which counts what it moves; parts are merged by their
log-sum-exps.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iomodel.testing.machine import FloatArray, Run

from . import flash2, pointwise
from .grid import IntArray


@dataclass
class Network:
    """Messages between ranks: the elements of each tensor that each rank sends and receives, and their number."""

    ranks: int
    sent: list[Counter[str]] = field(default_factory=list)
    received: list[Counter[str]] = field(default_factory=list)
    messages: list[Counter[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for counters in (self.sent, self.received, self.messages):
            counters.extend(Counter() for _ in range(self.ranks))

    def send(self, name: str, data: FloatArray, source: int, target: int) -> FloatArray:
        """Copy a tensor from one rank to another, and count it at both."""
        assert source != target, "a rank sends nothing to itself"
        self.sent[source][name] += data.size
        self.received[target][name] += data.size
        self.messages[source][name] += 1
        return data.copy()


@dataclass
class Rank:
    """One rank: its chunks of the sequence, its rows of Q, K and V, and the kernels that it ran."""

    chunks: list[IntArray]
    Q: FloatArray
    K: FloatArray
    V: FloatArray
    O: FloatArray
    LSE: FloatArray
    kernels: list[tuple[str, Run]] = field(default_factory=list)

    @property
    def positions(self) -> IntArray:
        """The positions of its rows in the sequence."""
        return np.concatenate(self.chunks)

    def attend(self, queries: slice, K: FloatArray, V: FloatArray, tiles: dict[str, int], **mask: Any) -> None:
        """Attend from some of the rank's queries to keys, and merge with what these queries have seen before."""
        ran = flash2.run(self.Q[:, :, queries], K, V, **tiles, **mask)
        assert ran.LSE is not None
        self.kernels.append(("attention", ran))
        o, lse = self.O[:, :, queries], self.LSE[:, :, queries]
        if np.isnan(lse).all():
            o[:], lse[:] = ran.O, ran.LSE
            return
        merged = pointwise.merge_states(
            o.reshape(-1, o.shape[-1]), lse.ravel(), ran.O.reshape(-1, o.shape[-1]), ran.LSE.ravel()
        )
        self.kernels.append(("merge", merged))
        o[:], lse[:] = merged.O.reshape(o.shape), merged.outputs["LSE"].reshape(lse.shape)

    def total(self, kind: str) -> tuple[Counter[str], Counter[str], int]:
        """Sum reads, writes and FLOPs over the kernels of a kind."""
        reads: Counter[str] = Counter()
        writes: Counter[str] = Counter()
        flops = 0
        for name, ran in self.kernels:
            if name == kind:
                reads, writes, flops = reads + ran.reads, writes + ran.writes, flops + ran.flops
        return reads, writes, flops


def shards(length: int, ranks: int, sharding: str) -> list[list[IntArray]]:
    """The chunks of positions that each rank owns: none of them empty."""
    at = np.arange(length)
    if sharding == "striped":
        return [[at[rank::ranks]] for rank in range(ranks)]
    pieces = ranks if sharding == "contiguous" else 2 * ranks
    size = int(np.ceil(length / pieces))
    chunks = [at[i * size : (i + 1) * size] for i in range(pieces)]
    own = [[rank] if sharding == "contiguous" else [rank, pieces - 1 - rank] for rank in range(ranks)]
    return [[chunks[i] for i in chosen if len(chunks[i])] for chosen in own]


def owners(Q: FloatArray, K: FloatArray, V: FloatArray, ranks: int, sharding: str) -> list[Rank]:
    """Give every rank its rows."""
    made = []
    chunks_of_keys = shards(K.shape[2], ranks, sharding)
    for own, keys in zip(shards(Q.shape[2], ranks, sharding), map(np.concatenate, chunks_of_keys), strict=True):
        rows = np.concatenate(own)
        shape = (*Q.shape[:2], len(rows))
        O, LSE = np.full((*shape, V.shape[-1]), np.nan), np.full(shape, np.nan)
        made.append(Rank(own, Q[:, :, rows].copy(), K[:, :, keys].copy(), V[:, :, keys].copy(), O, LSE))
    return made


def whole(parts: list[FloatArray], at: list[IntArray]) -> FloatArray:
    """Put rows of all ranks in the order of the sequence."""
    return np.concatenate(parts, axis=2)[:, :, np.argsort(np.concatenate(at))]


def output(ranks: list[Rank]) -> FloatArray:
    """The output of all ranks, in the order of the sequence."""
    return whole([rank.O for rank in ranks], [rank.positions for rank in ranks])


def ring(
    Q: FloatArray, K: FloatArray, V: FloatArray, *, ranks: int, sharding: str, causal: bool, tiles: dict[str, int]
) -> tuple[list[Rank], Network]:
    """Attend to the keys at hand while they go to the next rank; after the last block nothing is sent."""
    everyone, network = owners(Q, K, V, ranks, sharding), Network(ranks)
    at_hand = [(rank.K, rank.V) for rank in everyone]
    for step in range(ranks):
        for me, rank in enumerate(everyone):
            owner = (me - step) % ranks
            if causal:
                block(rank, *at_hand[me], owner - me, everyone[owner].chunks, sharding, tiles)
            else:
                rank.attend(slice(None), *at_hand[me], tiles)
        if step < ranks - 1:
            arrived = []
            for me in range(ranks):
                before = (me - 1) % ranks
                k, v = at_hand[before]
                arrived.append((network.send("K", k, before, me), network.send("V", v, before, me)))
            at_hand = arrived
    return everyone, network


def block(
    rank: Rank,
    k: FloatArray,
    v: FloatArray,
    after: int,
    owned: list[IntArray],
    sharding: str,
    tiles: dict[str, int],
) -> None:
    """Attend to the keys of an owner so many ranks after this one: only to those that some query sees."""
    every, diagonal = slice(None), {"right": 0, "align": "top-left"}
    length = rank.Q.shape[2]
    if sharding == "striped" and after <= 0:
        rank.attend(every, k[:, :, :length], v[:, :, :length], tiles, **diagonal)
    elif sharding == "striped":  # query i sees the keys before key i: the first query sees none
        if length > 1:
            rank.attend(slice(1, None), k[:, :, : length - 1], v[:, :, : length - 1], tiles, **diagonal)
    elif after == 0:
        rank.attend(every, k, v, tiles, **diagonal)
    elif after < 0:  # the owner's first chunk comes before the rank's chunks, its second chunk after both
        rank.attend(every, k[:, :, : len(owned[0])], v[:, :, : len(owned[0])], tiles)
    elif len(rank.chunks) > 1:  # the rank's second chunk comes after the owner's chunks, its first before both
        rank.attend(slice(len(rank.chunks[0]), None), k, v, tiles)


def all_gather(
    Q: FloatArray, K: FloatArray, V: FloatArray, *, ranks: int, sharding: str, causal: bool, tiles: dict[str, int]
) -> tuple[list[Rank], Network]:
    """Send every rank's keys to all others, then attend from each run of neighbouring queries to the keys up to it."""
    everyone, network = owners(Q, K, V, ranks, sharding), Network(ranks)
    at = [np.concatenate(chunks) for chunks in shards(K.shape[2], ranks, sharding)]
    for me, rank in enumerate(everyone):
        gathered = {}
        for name in ("K", "V"):
            parts = [
                getattr(other, name) if you == me else network.send(name, getattr(other, name), you, me)
                for you, other in enumerate(everyone)
            ]
            gathered[name] = whole(parts, at)
        k, v = gathered["K"], gathered["V"]
        if not causal:
            rank.attend(slice(None), k, v, tiles)
            continue
        start = 0
        for chunk in rank.chunks:
            queries, end = slice(start, start + len(chunk)), int(chunk[-1]) + 1
            rank.attend(queries, k[:, :, :end], v[:, :, :end], tiles, right=0)
            start = queries.stop
    return everyone, network


def ulysses(
    Q: FloatArray, K: FloatArray, V: FloatArray, *, ranks: int, causal: bool, tiles: dict[str, int]
) -> tuple[list[Rank], Network]:
    """Exchange rows for heads, attend over the whole sequence, exchange heads for rows.

    A key head goes to every rank that has one of its query heads.
    """
    everyone, network = owners(Q, K, V, ranks, "contiguous"), Network(ranks)
    heads, group = Q.shape[1] // ranks, Q.shape[1] // K.shape[1]
    at = [rank.positions for rank in everyone]
    keys_at = [np.concatenate(chunks) for chunks in shards(K.shape[2], ranks, "contiguous")]
    attended = []
    for me, rank in enumerate(everyone):
        own = slice(me * heads, (me + 1) * heads)
        needed = sorted({head // group for head in range(own.start, own.stop)})
        local = {}
        for name, of_heads, order in (("Q", own, at), ("K", needed, keys_at), ("V", needed, keys_at)):
            parts = []
            for you, other in enumerate(everyone):
                shard = getattr(other, name)[:, of_heads]
                parts.append(shard if you == me else network.send(name, shard, you, me))
            local[name] = whole(parts, order)
        ran = flash2.run(**local, **tiles, **({"right": 0} if causal else {}))
        rank.kernels.append(("attention", ran))
        attended.append(ran.O)
    for me, rank in enumerate(everyone):
        for you in range(ranks):
            part = attended[you][:, :, at[me]]
            rank.O[:, you * heads : (you + 1) * heads] = part if you == me else network.send("O", part, you, me)
    return everyone, network
