"""Reformer (Kitaev, Kaiser and Levskaya 2020, arXiv:2001.04451, section 2): attention within buckets of a hash.

Queries serve as keys, scaled to unit length ("shared QK"), so K is no input. In each round a random projection R maps
every position to one of n_b buckets, argmax [x R; -x R]; positions are sorted by bucket and split into chunks of
ceil(2 N / n_b), and each chunk attends to equal buckets in itself and in the previous chunk. The rounds are weighted by
their normalisers, and a pair counts once per round that contains it; appendix A corrects for that with N_ij.
"""

from collections.abc import Iterator

from sympy import Integer, ceiling

from iomodel.algorithms._streaming import streamed
from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.language import Axis, Cut, Exp, Hold, Kernel, Load, Loop, MatMul, Piece, Store, Tensor
from iomodel.nests.symbols import ONE, B_c, B_p, B_r, H, H_kv, N_k, N_q, d, d_v, n_b, n_h
from iomodel.nests.tensors import O, Q, S, V, depth, key, l, m, query, value

chunk = ceiling(2 * N_q / n_b)
"""Positions per chunk: two buckets of average size."""
round_ = Axis("round", n_h)
half = Axis("half", n_b / 2)
"""The columns of a projection; a column and its negative are one bucket each."""

R = Tensor("R", (round_, depth, half), per="heads")
BUCKET = Tensor("BUCKET", (round_, query), "int32")
ORDER = Tensor("ORDER", (round_, query), "int32")
BUCKET_of_keys = Tensor("BUCKET", (round_, key), "int32", inside=True)
ORDER_of_keys = Tensor("ORDER", (round_, key), "int32", inside=True)
Q_as_keys = Tensor("Q", (key, depth), inside=True)
products = Tensor("H", (query, half), "fp32")
O_acc = Tensor("O_acc", (round_, query, value), "fp32")
LSE_acc = Tensor("LSE_acc", (round_, query), "fp32")


def declare() -> Iterator[Kernel]:
    """Declare hashing, sorting, attention within chunks, and the combination of rounds; later positions are masked."""
    yield Kernel("hash", [
        Loop(query, B_p, [
            Load(Q),
            Loop(round_, ONE, [Load(R), Hold(products), MatMul(query, half, depth), Store(BUCKET, held=products)]),
        ]),
    ])  # fmt: skip
    yield Kernel("sort by bucket", [
        Loop(round_, ONE, [Loop(query, ONE, [Load(BUCKET), Store(ORDER, held=BUCKET)])]),
    ])  # fmt: skip
    yield Kernel("each chunk to itself and the one before", [
        Loop(round_, ONE, [
            Cut(_chunks(), [
                Loop(query, B_r, [
                    Hold(O, "fp32"), Hold(l), Hold(m), Load(ORDER), Load(BUCKET), Load(Q),
                    Loop(key, B_c, streamed(
                        query, key, S, [Load(ORDER_of_keys), Load(BUCKET_of_keys), Load(Q_as_keys), Load(V)],
                    )),
                    Store(O_acc, held=O), Store(LSE_acc, held=m),
                ]),
            ]),
        ]),
    ])  # fmt: skip
    yield Kernel("combine the rounds", [
        Loop(query, ONE, [
            Load(LSE_acc), Exp(round_, query), Hold(O, "fp32"),
            Loop(round_, ONE, [Load(O_acc)]),
            Store(O),
        ]),
    ])  # fmt: skip


def _chunks() -> list[Piece]:
    """Split into chunks that also see the previous chunk, except the first; the last may be shorter.

    With two buckets there is a single chunk: the first piece, at -1 times, then cancels the last one. This avoids a
    minimum in the counts, and rows sum to N_q.
    """
    count = ceiling(N_q / chunk)
    rest = N_q - (count - 1) * chunk
    return [
        Piece(count - 2, {N_q: chunk, N_k: 2 * chunk}),
        Piece(ONE, {N_q: chunk, N_k: chunk}),
        Piece(ONE, {N_q: rest, N_k: chunk + rest}),
    ]


_T = ceiling(N_q / chunk)
_rest = N_q - (_T - 1) * chunk
_keys = (2 * _T - 3) * chunk * ceiling(chunk / B_r) + (chunk + _rest) * ceiling(_rest / B_r)
"""Keys of a round: two chunks per tile of a chunk's rows, one for the first chunk."""

ALGORITHM = Algorithm(
    name="reformer",
    title="Reformer",
    cite="Kitaev, Kaiser and Levskaya, Reformer: The Efficient Transformer, arXiv:2001.04451 (2020), section 2",
    declare=declare,
    options={"buckets": 64, "rounds": 4},
    requires=(
        Requirement.same("kv_len", N_k, N_q, "q_len = {q_len}, for queries serve as keys"),
        Requirement.same("kv_heads", H_kv, H, "heads = {heads}, for the queries of each head are its keys"),
        Requirement.multiple("buckets", n_b, Integer(2), "an even number, for a direction and its negative are two"),
        Requirement.at_most(n_b, "buckets", N_q, "an even number up to q_len = {q_len}"),
    ),
    approximates="attention to the positions with the same hash, each position's key being its own query",
    masks=("full", "causal"),
    published=(
        Published(
            N_q * d
            + n_h * d * n_b / 2 * ceiling(N_q / B_p)
            + n_h * (N_q * (5 + d) + _keys * (2 + d + d_v))
            + 2 * n_h * N_q * (d_v + 1)
            + N_q * d_v,
            "by hand: Q, and a projection a round and tile; each round's buckets out, in and sorted; the rows of a "
            "chunk once and, a tile of them, keys, values and their places; the partial O and LSE out and in; O",
        ),
    ),
)
