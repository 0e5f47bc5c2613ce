"""Native Sparse Attention (Yuan et al. 2025, arXiv:2502.11089, section 3): compressed, selected and local keys.

Equation 5 adds three attention branches by gates. The first attends to blocks of l keys compressed to one each, with a
block every s keys (equation 7; the compression is linear here, with one matrix per position in a block). Its
probabilities select n blocks of l' keys for the second branch (equations 8 to 12), shared by the query heads of a
key/value head. The third is a sliding window of w keys. Formulas call these numbers l_cmp, s_cmp, l_slc, n_slc, w_loc.
"""

from collections.abc import Iterator

from sympy import Max, Min, ceiling, floor

from iomodel.algorithms._nsa_branches import (
    RUNS,
    O_win,
    add_up,
    attend_compressed,
    attend_selected,
    compress,
    importance,
    select,
)
from iomodel.algorithms._streaming import flash
from iomodel.nests.algorithm import Algorithm, Published, Requirement
from iomodel.nests.floor_sum_node import FloorSum
from iomodel.nests.language import Cut, Kernel, Piece
from iomodel.nests.symbols import ONE, B_c, B_p, B_r, B_s, N_k, N_q, W_l, d, d_v, l_cmp, l_slc, n_slc, s_cmp, w_loc


def declare(future_blocks: bool) -> Iterator[Kernel]:
    """Declare compression and attention to its blocks, selection and attention to it, local attention, and the sum."""
    yield compress()
    yield attend_compressed()
    yield importance()
    yield select(future_blocks)
    yield attend_selected()
    yield Kernel("attend to the window", [Cut([Piece(ONE, {N_k: N_q, W_l: w_loc - 1}, "window")], [flash(O_win)])])
    yield add_up()


_early = Max(0, N_q - N_k)
_whole = Min(N_q, Max(0, (ceiling(N_k / B_s) - 1) * B_s - N_k + N_q))
_stairs = B_s * FloorSum(_whole - _early, B_s, 1, _early + B_s + N_k - N_q)
_seen = (_stairs + N_k * (N_q - _whole)).xreplace(RUNS[0].sizes)
"""Compressed blocks in the tiles visible to the runs: a staircase from the first run that sees a block."""
_live = N_q - s_cmp * Max(0, l_cmp / s_cmp - 1)
"""Positions of the runs that see a compressed block."""
_most = Min(n_slc, N_q / l_slc)
_chosen = l_slc * (_most * (_most + 1) / 2 + (N_q / l_slc - _most) * n_slc)
"""Selected blocks, over all positions."""
_last = Min(ceiling(N_q / B_r), ceiling((N_q + w_loc - 1) / B_r))
_reaching = Min(_last, Max(0, ceiling(((ceiling(N_q / B_c) - 1) * B_c - B_r + 1) / B_r)))
_leaving = Min(_last, Max(0, ceiling((B_c + w_loc - 1) / B_r)))
_up_to = B_c * FloorSum(_reaching, B_c, B_r, B_c + B_r - 1) + N_q * (_last - _reaching)
_before = B_c * FloorSum(_last - _leaving, B_c, B_r, B_r * _leaving - w_loc + 1)
_near = _up_to - _before
"""Keys in the tiles of the window: those up to the diagonal minus those before the window."""
_n_cmp = N_q / s_cmp - l_cmp / s_cmp + 1

ALGORITHM = Algorithm(
    name="nsa",
    title="Native Sparse Attention",
    cite="Yuan et al., Native Sparse Attention: Hardware-Aligned and Natively Trainable Sparse Attention, "
    "arXiv:2502.11089 (2025), equations 5 and 7 to 12",
    declare=declare,
    options={"compress_block": 32, "compress_stride": 16, "select_block": 64, "selected": 16, "local": 512},
    as_written=("future_blocks",),
    requires=(
        Requirement.same("kv_len", N_k, N_q, "q_len = {q_len}, for a position sees positions of its own sequence"),
        Requirement.multiple("compress_block", l_cmp, s_cmp, "a multiple of compress_stride = {compress_stride}"),
        Requirement.multiple("select_block", l_slc, s_cmp, "a multiple of compress_stride = {compress_stride}"),
        Requirement.multiple("q_len", N_q, l_slc, "a multiple of select_block = {select_block}"),
        Requirement.at_most(l_cmp, "compress_block", N_q, "up to q_len = {q_len}"),
        Requirement.at_most(w_loc, "local", N_q, "up to q_len = {q_len}"),
    ),
    approximates="attention to compressed, selected and local keys, added up by gates",
    masks=("causal",),
    published=(
        Published(
            l_cmp * (_n_cmp * (d + d_v) + (d**2 + d_v**2) * ceiling(_n_cmp / B_p))
            + _n_cmp * (d + d_v)
            + 2 * _live * d
            + _seen * (2 * d + d_v)
            + N_q
            + _live
            + N_q * floor(N_q / l_slc)
            + N_q * (N_q / l_slc + 1) / 2
            + 2 * N_q * n_slc
            + N_q * d
            + _chosen * l_slc * (d + d_v)
            + N_q * d
            + _near * (d + d_v)
            + N_q * (3 + 7 * d_v),
            "by hand: the compression; Q and the compressed keys twice, their values once, LSE out and in; importance "
            "and choice out and in; Q and the selected blocks; Q and the window; the gates, three outputs, O",
        ),
    ),
)
