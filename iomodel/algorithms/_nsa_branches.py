"""The three attention branches of Native Sparse Attention (Yuan et al. 2025, arXiv:2502.11089), kernel by kernel."""

from dataclasses import replace

from sympy import Integer, floor

from iomodel.algorithms._streaming import streamed
from iomodel.nests.language import Axis, Cut, Exp, Hold, Kernel, Live, Load, Loop, MatMul, Piece, Store, Tensor
from iomodel.nests.symbols import ONE, B_p, B_s, G, N_k, N_q, W_l, d, d_v, l_cmp, l_slc, n_slc, s_cmp
from iomodel.nests.tensors import LSE, O, depth, group, key, query, value

compressed = Axis("compressed", N_q / s_cmp - l_cmp / s_cmp + 1)
offset = Axis("offset", l_cmp)
"""The positions of a compressed block."""
depth_cmp = Axis("depth_cmp", d)
value_cmp = Axis("value_cmp", d_v)
rows = Axis("rows", s_cmp * G)
"""The query rows of a run of s positions, over all heads of the group."""
run = Axis("run", s_cmp)
selectable = Axis("selectable", floor(N_q / l_slc))
selectable_of_runs = Axis("selectable", floor(N_q * s_cmp / l_slc))
"""The same blocks, with queries counted in runs of s."""
choice = Axis("choice", n_slc)
place = Axis("place", l_slc)
"""The positions of a selectable block, as queries."""
place_k = Axis("place_k", l_slc)
"""The positions of a selectable block, as keys."""
branch = Axis("branch", Integer(3))

W_K = Tensor("W_K", (offset, depth, depth_cmp), per="call")
W_V = Tensor("W_V", (offset, value, value_cmp), per="call")
GATE = Tensor("GATE", (query, branch))
K_offset = Tensor("K", (compressed, offset, depth), per="kv_head", inside=True)
V_offset = Tensor("V", (compressed, offset, value), per="kv_head", inside=True)
K_cmp = Tensor("K_cmp", (compressed, depth), per="kv_head")
V_cmp = Tensor("V_cmp", (compressed, value), per="kv_head")
K_block = Tensor("K_cmp", (key, depth), per="kv_head", inside=True)
V_block = Tensor("V_cmp", (key, value), per="kv_head", inside=True)
P_slc = Tensor("P_slc", (query, selectable), per="kv_head")
P_run = Tensor("P_slc", (query, run, selectable_of_runs), per="kv_head", inside=True)
P_place = Tensor("P_slc", (query, place, key), per="kv_head", inside=True)
I = Tensor("I", (query, choice), "int32", per="kv_head")
O_cmp = Tensor("O_cmp", (query, value))
O_slc = Tensor("O_slc", (query, value))
O_win = Tensor("O_win", (query, value))

Q_run = Tensor("Q", (query, rows, depth), per="kv_head", inside=True)
O_run = Tensor("O_cmp", (query, rows, value), per="kv_head", inside=True)
LSE_run = Tensor("LSE", (query, rows), "fp32", per="kv_head", inside=True)
S_run = Tensor("S", (rows, key))
l_run = Tensor("l", (rows,), "fp32")
m_run = Tensor("m", (rows,), "fp32")

I_place = Tensor("I", (query, place, choice), "int32", per="kv_head", inside=True)
Q_place = Tensor("Q", (query, place, group, depth), per="kv_head", inside=True)
O_place = Tensor("O_slc", (query, place, group, value), per="kv_head", inside=True)
K_selected = Tensor("K", (key, place_k, depth), per="kv_head", inside=True)
V_selected = Tensor("V", (key, place_k, value), per="kv_head", inside=True)
S_selected = Tensor("S", (group, place_k))
l_group = Tensor("l", (group,), "fp32")
m_group = Tensor("m", (group,), "fp32")

RUNS = [Piece(ONE, {N_q: N_q / s_cmp, N_k: N_q / s_cmp - l_cmp / s_cmp + 1}, "causal")]
"""Runs of s positions and compressed blocks: run t sees the first t + 2 - l / s blocks."""
BLOCKS = [Piece(ONE, {N_q: N_q / l_slc, N_k: N_q / l_slc, W_l: n_slc - 1}, "window")]
"""Blocks of l' positions: a position attends to as many as the n last ones, whichever they are."""


def compress() -> Kernel:
    """Declare equation 7 with a linear map, one position of the blocks at a time."""
    return Kernel("compress", [
        Loop(compressed, B_p, [
            Hold(K_cmp, "fp32"), Hold(V_cmp, "fp32"),
            Loop(offset, ONE, [
                Load(K_offset), Load(V_offset), Load(W_K), Load(W_V),
                MatMul(compressed, depth_cmp, depth), MatMul(compressed, value_cmp, value),
            ]),
            Store(K_cmp), Store(V_cmp),
        ]),
    ], per="kv_head")  # fmt: skip


def attend_compressed() -> Kernel:
    """Attend in runs of s positions, with all heads of the group: they see the same blocks except the last one."""
    return Kernel("attend to compressed keys", [
        Cut(RUNS, [
            Loop(query, ONE, [
                Hold(O_run, "fp32"), Hold(l_run), Hold(m_run),
                Live(key, [
                    Load(Q_run),
                    Loop(key, B_s, masked=True, body=streamed(rows, key, S_run, [Load(K_block), Load(V_block)])),
                ]),
                Store(O_run), Store(LSE_run, held=m_run),
            ]),
        ]),
    ], per="kv_head", keeps=(LSE,))  # fmt: skip


def importance() -> Kernel:
    """Declare equations 8 to 10: recompute the probabilities from the LSE, and sum them per block on chip."""
    return Kernel("importance of blocks", [
        Cut(RUNS, [
            Loop(query, ONE, [
                Hold(P_run, "fp32"),
                Live(key, [
                    Load(Q_run), Load(LSE_run),
                    Loop(key, B_s, masked=True, body=[
                        Load(K_block), Hold(S_run, "fp32"), MatMul(rows, key, depth), Exp(rows, key),
                    ]),
                ]),
                Store(P_run),
            ]),
        ]),
    ], per="kv_head")  # fmt: skip


def attend_selected() -> Kernel:
    """Attend one position at a time, with all heads of the group, because each position has separate blocks."""
    return Kernel("attend to selected blocks", [
        Cut(BLOCKS, [
            Loop(query, ONE, [
                Loop(place, ONE, [
                    Load(I_place), Load(Q_place), Hold(O_place, "fp32"), Hold(l_group), Hold(m_group),
                    Loop(key, ONE, masked=True, body=streamed(
                        group, place_k, S_selected, [Load(K_selected), Load(V_selected)],
                    )),
                    Store(O_place),
                ]),
            ]),
        ]),
    ], per="kv_head")  # fmt: skip


def select(future_blocks: bool) -> Kernel:
    """Select the n blocks of the largest importance, in one ideal pass over the blocks up to that of the position."""
    if future_blocks:  # of which none is selected
        every = Loop(query, ONE, [Hold(I), Loop(selectable, ONE, [Load(P_slc)]), Store(I)])
        return Kernel("select", [every], per="kv_head")
    return Kernel("select", [
        Cut([replace(BLOCKS[0], mask="causal")], [
            Loop(query, ONE, [
                Loop(place, ONE, [Hold(I_place), Loop(key, ONE, masked=True, body=[Load(P_place)]), Store(I_place)]),
            ]),
        ]),
    ], per="kv_head", keeps=(P_slc, I))  # fmt: skip


def add_up() -> Kernel:
    """Add the three outputs, weighted by their gates."""
    return Kernel("add up", [
        Loop(query, ONE, [Load(GATE), Load(O_cmp), Load(O_slc), Load(O_win), Hold(O, "fp32"), Store(O)]),
    ])  # fmt: skip
