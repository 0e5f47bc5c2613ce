"""Calls and messages of the ranks that divide the sequence of one attention call, as numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Add, Expr, Integer, ceiling

from iomodel.counting.evaluation.evaluate import evaluate
from iomodel.counting.messages import folded
from iomodel.errors import InputError
from iomodel.nests.language import Piece
from iomodel.nests.ranks import RankSchedule, Sharding, rows
from iomodel.nests.symbols import NAME_OF, B, H, H_kv, N_k, N_q, d, d_v
from iomodel.workloads.attention import Attention

MOST_RANKS = 1 << 16
"""Most ranks of a schedule [-]."""
CACHED = ("K", "V")
"""Tensors of the type of the cache."""
ALONE = ("bias", "alibi", "sinks", "dropout", "head_scales", "token_scales")
"""Features whose tensors or positions no schedule divides."""


class RankCalls:
    """One attention call, divided among ranks by a schedule.

    Parameters
    ----------
    schedule : Schedule
        What each rank sends and attends to.
    call : Attention
        The call on all ranks.
    ranks : int
        Number of ranks [-].
    sharding : str, optional
        Rows of each rank; by default the first that the schedule declares for the mask.

    Raises
    ------
    InputError
        A rank would have no token; heads do not divide; the mask, the sharding, the direction or a feature is not
        supported.
    """

    def __init__(self, schedule: RankSchedule, call: Attention, ranks: int, sharding: Sharding | None = None) -> None:
        self.schedule, self.call, self.ranks = schedule, call, ranks
        mask = call.mask if isinstance(call.mask, str) else type(call.mask).__name__
        self.sharding, self.pieces = schedule.pieces_of(mask, sharding)
        self._check()
        self.messages = folded(schedule, mask, self.sharding)
        self.point: Mapping[str, Any] = {**call.numbers, "ranks": ranks}

    def _check(self) -> None:
        call, ranks = self.call, self.ranks
        name = self.schedule.name
        if call.direction != "forward":
            raise InputError(f"direction: {call.direction!r} given; allowed: 'forward', for attention among ranks")
        refused = [feature for feature in call.features if feature in ALONE]
        if refused:
            raise InputError(f"workload: {refused[0]} given; allowed: calls without it, for attention among ranks")
        if any(piece.mask == "causal" for piece in self.pieces) and call.q_len != call.kv_len:
            raise InputError(
                f"q_len: {call.q_len} given with kv_len = {call.kv_len}; allowed: as many as keys, for a causal mask "
                f"with {name}"
            )
        if self.schedule.any_mask:
            call.shard(ranks)
        for field, length in (("q_len", call.q_len), ("kv_len", call.kv_len)):
            most = min(length, MOST_RANKS)
            if ranks > most:
                reason = f"{field} = {length}" if most == length else "those of a schedule"
                raise InputError(f"ranks: {ranks} given; allowed: from 1 to {most}, {reason}")
            chunk = -(-length // ranks)
            if self.sharding == "contiguous" and (ranks - 1) * chunk >= length:
                raise InputError(
                    f"ranks: {ranks} given; allowed: a number that leaves none without a token of {field} = {length}, "
                    f"such as {-(-length // chunk)}"
                )

    def blocks(self, rank: int) -> tuple[tuple[int, Attention], ...]:
        """List the calls of one rank with their number, in the order in which they run."""
        listed = []
        for piece in self.pieces:
            times = evaluate(piece.times, {**self.point, "rank_index": rank})
            if times:
                listed.append((times, self._call(piece, rank)))
        return tuple(listed)

    def _call(self, piece: Piece, rank: int) -> Attention:
        point = {**self.point, "rank_index": rank}
        sizes = {NAME_OF[symbol]: evaluate(size, point) for symbol, size in piece.sizes.items()}
        mask = {} if self.schedule.any_mask else {"mask": piece.mask}
        return self.call.model_copy(update={**sizes, **mask})

    @property
    def busiest(self) -> int:
        """The rank whose calls see most pairs; of several, the last."""
        return self.ranks - 1 - int(np.argmax(self._pairs[::-1]))

    @property
    def share(self) -> float:
        """Pairs that the busiest rank sees, over those of a mean rank [-]."""
        return float(self._pairs.max() * self.ranks / self._pairs.sum())

    @cached_property
    def _pairs(self) -> Any:
        """Pairs that the calls of each rank see; all alike where ranks divide heads."""
        pairs = np.full(self.ranks, int(self.schedule.any_mask), dtype=object)
        for piece in () if self.schedule.any_mask else self.pieces:
            q, k = (self._of_ranks(piece.sizes[axis]) for axis in (N_q, N_k))
            unseen = q * (q - 1) // 2 if piece.mask == "causal" else 0
            pairs = pairs + self._of_ranks(piece.times) * (q * k - unseen)
        return pairs

    def _of_ranks(self, formula: Expr) -> Any:
        """Evaluate a formula at every rank."""
        values = evaluate(formula, {**self.point, "rank_index": np.arange(self.ranks)})
        return np.broadcast_to(values, (self.ranks,)).astype(object)

    @property
    def shards(self) -> Mapping[str, Expr]:
        """Elements of the rank's own rows of Q, K, V and O, of all heads [elements]."""
        queries, keys = B * rows(N_q, self.sharding), B * rows(N_k, self.sharding)
        return {"Q": queries * H * d, "K": keys * H_kv * d, "V": keys * H_kv * d_v, "O": queries * H * d_v}

    @property
    def shards_of_cache(self) -> Mapping[str, Expr]:
        """Elements of the rank's own rows of K and V [elements]."""
        return {name: count for name, count in self.shards.items() if name in CACHED}

    def bytes_of(self, counts: Mapping[str, Expr]) -> Any:
        """Sum the bytes of tensors at every rank [B]."""
        return self._of_ranks(ceiling(Add(*(count * self._quarters(name) for name, count in self._moved(counts))) / 32))

    def tensors(self, counts: Mapping[str, Expr], rank: int) -> Mapping[str, int]:
        """Count the elements of each tensor at one rank [elements]."""
        point = {**self.point, "rank_index": rank}
        return {name: evaluate(count, point) for name, count in self._moved(counts)}

    def _moved(self, counts: Mapping[str, Expr]) -> Iterator[tuple[str, Expr]]:
        """Iterate over the tensors that exist: V is a part of a latent."""
        return ((name, count) for name, count in counts.items() if not (name == "V" and self.call.latent))

    def _quarters(self, name: str) -> Integer:
        """Return the size of an element in quarters of a bit."""
        return Integer(self.call.kv_size if name in CACHED else 32 * self.call.element_size)
