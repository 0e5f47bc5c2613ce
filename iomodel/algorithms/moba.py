"""Mixture of Block Attention (Lu et al. 2025, arXiv:2502.13189): each query attends to some blocks of keys.

Algorithm 1. A query scores the mean of the keys of every block (line 3 and 4) and attends to k blocks: its own, causal,
and the k - 1 earlier ones with the largest scores (line 5). The queries that choose a block are gathered per block and
head (line 6), so that a tile of them shares each tile of the block's keys; attention to the own block and to the chosen
ones (lines 7 and 8) are two launches, and a last one combines the outputs (line 9). Formulas call the keys of a block
l_slc and its blocks per query n_slc.

How many queries choose a block, and so how many tiles of them are not full, depends on the data. Counted is the choice
of the first blocks, which every later query makes when all scores are equal.
"""

from collections.abc import Iterator

from sympy import Expr, Max, Min, ceiling, floor

from iomodel.algorithms._streaming import streamed
from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.floor_sum_node import FloorSum
from iomodel.nests.language import Axis, Cut, Exp, Hold, Kernel, Load, Loop, MatMul, Piece, Store, Tensor
from iomodel.nests.symbols import ONE, B_c, B_p, B_r, B_s, N_k, N_q, W_l, d, d_v, l_slc, n_slc
from iomodel.nests.tensors import K, O, Q, S, V, depth, key, l, m, query, value

blocks = N_q / l_slc
block = Axis("block", blocks)
choice = Axis("choice", n_slc)
"""The blocks of a query: its own, then the chosen ones."""
place = Axis("place", l_slc)
"""The positions of a block, as queries."""
place_k = Axis("place_k", l_slc)
"""The positions of a block, as keys."""
gathered = Axis("gathered", N_q)
"""The queries of a tile that chose the same block."""

K_mean = Tensor("K_mean", (block, depth), per="kv_head")
S_G = Tensor("S_G", (query, block), "fp32")
I = Tensor("I", (query, choice), "int32")
J = Tensor("J", (query, choice), "int32")
"""Queries with their places among the blocks of the query, listed per block."""
O_blk = Tensor("O_blk", (query, choice, value))
LSE_blk = Tensor("LSE_blk", (query, choice), "fp32")

K_place = Tensor("K", (block, place_k, depth), per="kv_head", inside=True)
Q_place = Tensor("Q", (query, place, depth), inside=True)
K_mean_key = Tensor("K_mean", (key, depth), per="kv_head", inside=True)
S_place = Tensor("S_G", (query, place, key), "fp32", inside=True)
I_place = Tensor("I", (query, place, choice), "int32", inside=True)
O_own = Tensor("O_blk", (query, value), inside=True)
LSE_own = Tensor("LSE_blk", (query,), "fp32", inside=True)
J_tile = Tensor("J", (gathered,), "int32", inside=True)
Q_tile = Tensor("Q", (gathered, depth), inside=True)
O_tile = Tensor("O_blk", (gathered, value), inside=True)
LSE_tile = Tensor("LSE_blk", (gathered,), "fp32", inside=True)
S_tile = Tensor("S", (gathered, key))
l_tile = Tensor("l", (gathered,), "fp32")
m_tile = Tensor("m", (gathered,), "fp32")
O_place = Tensor("O", (query, place, value), inside=True)
O_choice = Tensor("O_blk", (query, place, key, value), inside=True)
LSE_choice = Tensor("LSE_blk", (query, place, key), "fp32", inside=True)
l_place = Tensor("l", (query, place), "fp32")
m_place = Tensor("m", (query, place), "fp32")

UP_TO_OWN = [Piece(ONE, {N_q: blocks, N_k: blocks}, "causal")]
"""Blocks of queries and of keys: a query scores its own block and the earlier ones."""
CHOSEN = [Piece(ONE, {N_q: blocks, N_k: blocks, W_l: n_slc - 1}, "window")]
"""A query attends to as many blocks as the n last ones, whichever they are."""

_past = Min(n_slc, blocks) - 1
"""Blocks that are chosen, all by every later query."""
_later = l_slc * (blocks - _past)
"""Queries of the last of them."""
_pairs = _past * _later + l_slc * _past * (_past - 1) / 2
"""Choices of a block by a query."""
_tiles = FloorSum(_past, B_r, l_slc, _later + B_r - 1)


def tiles_of_choices() -> list[Piece]:
    """Split the choices into the full tiles of the chosen blocks and the others, whose sizes differ by one at most.

    A count depends on the number of tiles and on their sum, not on the size of each that is not full.
    """
    full = FloorSum(_past, B_r, l_slc, _later)
    others = _tiles - full
    rest = _pairs - full * B_r
    least = floor(rest / (others + floor(1 / (1 + others))))  # 0 if there is no other
    larger = rest - others * least
    sizes: list[tuple[Expr, Expr]] = [(full, B_r), (larger, least + 1), (others - larger, least)]
    return [Piece(times, {N_q: size, N_k: l_slc}) for times, size in sizes]


def declare() -> Iterator[Kernel]:
    """Declare means, scores, choice and lists; attention to the own block and to chosen ones; the sum of both."""
    yield Kernel("mean of blocks", [
        Loop(block, ONE, [Hold(K_mean, "fp32"), Loop(place_k, ONE, [Load(K_place)]), Store(K_mean)]),
    ], per="kv_head")  # fmt: skip
    yield Kernel("gate", [
        Cut(UP_TO_OWN, [
            Loop(query, ONE, [
                Loop(place, B_p, [
                    Load(Q_place),
                    Loop(key, B_s, masked=True, body=[
                        Load(K_mean_key), Hold(S_place), MatMul(place, key, depth), Store(S_place),
                    ]),
                ]),
            ]),
        ]),
    ])  # fmt: skip
    yield Kernel("choose", [
        Cut(UP_TO_OWN, [
            Loop(query, ONE, [
                Loop(place, ONE, [Hold(I_place), Loop(key, ONE, masked=True, body=[Load(S_place)]), Store(I_place)]),
            ]),
        ]),
    ], keeps=(S_G,))  # fmt: skip
    yield Kernel("queries of each block", [
        Loop(query, ONE, [Load(I)]),
        Cut(tiles_of_choices(), [Hold(J_tile), Store(J_tile)]),
    ])  # fmt: skip
    yield Kernel("attend to the own block", [
        Cut([Piece(blocks, {N_q: l_slc, N_k: l_slc}, "causal")], [
            Loop(query, B_r, [
                Load(Q), Hold(O_own, "fp32"), Hold(l), Hold(m),
                Loop(key, B_c, masked=True, body=streamed(query, key, S, [Load(K), Load(V)])),
                Store(O_own), Store(LSE_own, held=m),
            ]),
        ]),
    ])  # fmt: skip
    yield Kernel("attend to chosen blocks", [
        Cut(tiles_of_choices(), [
            Load(J_tile), Load(Q_tile), Hold(O_tile, "fp32"), Hold(l_tile), Hold(m_tile),
            Loop(key, B_c, streamed(gathered, key, S_tile, [Load(K), Load(V)])),
            Store(O_tile), Store(LSE_tile, held=m_tile),
        ]),
    ], keeps=(J,))  # fmt: skip
    yield Kernel("combine", [
        Cut(CHOSEN, [
            Loop(query, ONE, [
                Loop(place, ONE, [
                    Hold(O_place, "fp32"), Hold(l_place), Hold(m_place),
                    Loop(key, ONE, masked=True, body=[
                        Load(LSE_choice), Load(O_choice), Exp(place, key), Exp(place),
                    ]),
                    Store(O_place),
                ]),
            ]),
        ]),
    ], keeps=(O, O_blk, LSE_blk))  # fmt: skip


_reaching = Min(ceiling(l_slc / B_r), Max(0, ceiling(((ceiling(l_slc / B_c) - 1) * B_c - B_r + 1) / B_r)))
_own = B_c * FloorSum(_reaching, B_c, B_r, B_c + B_r - 1) + l_slc * (ceiling(l_slc / B_r) - _reaching)
"""Keys in the tiles of a block up to the diagonal."""
_most = _past + 1
_attended = l_slc * (_most * (_most + 1) / 2 + (blocks - _most) * n_slc)
"""Blocks that are attended to, over all positions."""
_whole = Min(blocks, (ceiling(blocks / B_s) - 1) * B_s)
_means = B_s * FloorSum(_whole, B_s, 1, B_s) + blocks * (blocks - _whole)
"""Means in the tiles up to the own block, over all blocks of queries."""

ALGORITHM = Algorithm(
    name="moba",
    title="Mixture of Block Attention",
    cite="Lu et al., MoBA: Mixture of Block Attention for Long-Context LLMs, arXiv:2502.13189 (2025), Algorithm 1",
    declare=declare,
    options={"select_block": 512, "selected": 3},
    requires=(
        Requirement.same("kv_len", N_k, N_q, "q_len = {q_len}, for a position sees positions of its own sequence"),
        Requirement.multiple("q_len", N_q, l_slc, "a multiple of select_block = {select_block}"),
    ),
    approximates="attention to the own block and the blocks with the largest products of a query and their mean key",
    masks=("causal",),
    published=(
        Published(
            (N_q + blocks) * d
            + N_q * d
            + _means * (d * ceiling(l_slc / B_p) + l_slc)
            + N_q * (blocks + 1) / 2
            + 2 * N_q * n_slc
            + _pairs
            + N_q * (d + d_v + 1)
            + blocks * _own * (d + d_v)
            + _pairs * (2 + d + d_v)
            + _tiles * l_slc * (d + d_v)
            + _attended * (d_v + 1)
            + N_q * d_v,
            "by hand: K and the means; Q, the means and the scores; the scores and the choice, out and in, and its "
            "lists; Q, the own block, an output and its LSE; the same of each choice, the keys of a block once a tile "
            "of its queries; all outputs and LSEs, and O",
        ),
    ),
)
