"""The alphabet: every symbol that a formula may hold, with its meaning and unit.

The papers' letters stand in formulas, full words in Python; this table maps one to the other.
"""

from __future__ import annotations

from typing import NamedTuple

from sympy import Symbol


class Entry(NamedTuple):
    """One letter of the alphabet: the Python name, the symbol, what it means, its unit.

    A tile that `follows` another has its size where none is given.
    """

    name: str
    symbol: Symbol
    meaning: str
    unit: str
    follows: str | None = None


def _positive(letter: str) -> Symbol:
    return Symbol(letter, integer=True, positive=True)


def _natural(letter: str) -> Symbol:
    return Symbol(letter, integer=True, nonnegative=True)


B, H, H_kv, G = map(_positive, ("B", "H", "H_kv", "G"))
N_q, N_k, d, d_v = map(_positive, ("N_q", "N_k", "d", "d_v"))
e, e_kv, p = map(_positive, ("e", "e_kv", "p"))
b_w = _positive("b_w")
"""Quarters of a bit of an element of a weight; no attention call has any (:mod:`iomodel.linear.cost`)."""
W_l, W_r = map(_natural, ("W_l", "W_r"))
s, n_dQ = map(_positive, ("s", "n_dQ"))
B_r, B_c = map(_positive, ("B_r", "B_c"))
B_r_dQ, B_c_dQ, B_r_bwd, B_c_bwd = map(_positive, ("B_r_dQ", "B_c_dQ", "B_r_bwd", "B_c_bwd"))
m_1, n_1, m_2, n_2, m_3, n_3 = map(_positive, ("m_1", "n_1", "m_2", "n_2", "m_3", "n_3"))
m_4, n_4, m_5, n_5, m_6, n_6 = map(_positive, ("m_4", "n_4", "m_5", "n_5", "m_6", "n_6"))
warps, stages = map(_positive, ("n_warps", "n_stages"))
B_p, B_s, B_e = map(_positive, ("B_p", "B_s", "B_e"))
k_p, r_phi, r_low, k_top = map(_positive, ("k", "r", "r_low", "k_top"))
l_s, c_s = map(_positive, ("l_s", "c_s"))
n_b, n_h, n_c = map(_positive, ("n_b", "n_h", "n_c"))
l_cmp, s_cmp, l_slc, n_slc, w_loc = map(_positive, ("l_cmp", "s_cmp", "l_slc", "n_slc", "w_loc"))
n_st, x_e = map(_positive, ("n_st", "x_e"))
M, b, N = map(_positive, ("M", "b", "N"))
B_1 = _positive("B_1")

WORKLOAD = (
    Entry("batch", B, "sequences in the batch", "-"),
    Entry("heads", H, "query heads", "-"),
    Entry("kv_heads", H_kv, "key/value heads", "-"),
    Entry("group", G, "query heads that share a key/value head, H / H_kv", "-"),
    Entry("q_len", N_q, "queries a head", "rows"),
    Entry("kv_len", N_k, "keys and values a head", "rows"),
    Entry("head_dim", d, "width of a row of Q and K", "elements"),
    Entry("value_dim", d_v, "width of a row of V and O", "elements"),
    Entry("element_size", e, "one element of the workload's dtype", "B"),
    Entry("kv_element_size", e_kv, "one element of K and V in HBM, where they have a dtype of their own", "B"),
    Entry("page_size", p, "keys in a page of the K/V cache", "rows"),
    Entry("window_left", W_l, "keys visible to the left of the diagonal", "keys"),
    Entry("window_right", W_r, "keys visible to the right of the diagonal", "keys"),
)
"""What an attention call fixes."""

OPTIONS = (
    Entry("splits", s, "parts into which the keys are split, each for a thread block of its own", "-"),
    Entry("dq_buffers", n_dQ, "buffers of dQ that a deterministic backward pass adds to", "-"),
    Entry("projected", k_p, "rows that the keys are projected to", "rows"),
    Entry("features", r_phi, "random features", "-"),
    Entry("rank", r_low, "leading components that approximate scores are made of", "elements"),
    Entry("top_k", k_top, "keys that are selected for a query", "keys"),
    Entry("stride", l_s, "positions between two that a strided head sees, or of a section", "positions"),
    Entry("summary", c_s, "positions at the end of a section that all later ones see", "positions"),
    Entry("buckets", n_b, "buckets that positions are hashed into", "-"),
    Entry("rounds", n_h, "rounds of hashing", "-"),
    Entry("clusters", n_c, "clusters of queries and keys", "-"),
    Entry("compress_block", l_cmp, "keys that are compressed to one", "keys"),
    Entry("compress_stride", s_cmp, "keys between the starts of two compressed blocks", "keys"),
    Entry("select_block", l_slc, "keys of a block that is selected whole", "keys"),
    Entry("selected", n_slc, "blocks that are selected for a query", "-"),
    Entry("local", w_loc, "keys of the sliding window, the query's own included", "keys"),
    Entry("state", n_st, "elements of the state of a channel", "elements"),
    Entry("expand", x_e, "channels for each element of the model width", "-"),
)
"""Options of an algorithm that are numbers."""

TILES = (
    Entry("block_q", B_r, "rows of a query tile", "rows"),
    Entry("block_kv", B_c, "rows of a key/value tile", "rows"),
    Entry("block_proj", B_p, "rows of a tile of a projection", "rows"),
    Entry("block_sum", B_s, "rows of a tile that a first or last pass sums over", "rows"),
    Entry("block_channels", B_e, "channels of a tile", "elements"),
    Entry("dq_block_q", B_r_dQ, "rows of a query tile in a pass that makes dQ alone", "rows", "block_q"),
    Entry("dq_block_kv", B_c_dQ, "rows of a key/value tile in a pass that makes dQ alone", "rows", "block_kv"),
    Entry("bwd_block_q", B_r_bwd, "rows of a query tile of the backward pass, after a forward pass", "rows", "block_q"),
    Entry(
        "bwd_block_kv",
        B_c_bwd,
        "rows of a key/value tile of the backward pass, after a forward one",
        "rows",
        "block_kv",
    ),
    Entry("gemm1_m", m_1, "rows of a tile of S in S = Q K^T", "rows"),
    Entry("gemm1_n", n_1, "columns of a tile of S in S = Q K^T", "columns"),
    Entry("gemm2_m", m_2, "rows of a tile of O in O = P V", "rows"),
    Entry("gemm2_n", n_2, "columns of a tile of O in O = P V", "columns"),
    Entry("gemm3_m", m_3, "rows of a tile of dV in dV = P^T dO", "rows"),
    Entry("gemm3_n", n_3, "columns of a tile of dV in dV = P^T dO", "columns"),
    Entry("gemm4_m", m_4, "rows of a tile of dP in dP = dO V^T", "rows"),
    Entry("gemm4_n", n_4, "columns of a tile of dP in dP = dO V^T", "columns"),
    Entry("gemm5_m", m_5, "rows of a tile of dQ in dQ = dS K", "rows"),
    Entry("gemm5_n", n_5, "columns of a tile of dQ in dQ = dS K", "columns"),
    Entry("gemm6_m", m_6, "rows of a tile of dK in dK = dS^T Q", "rows"),
    Entry("gemm6_n", n_6, "columns of a tile of dK in dK = dS^T Q", "columns"),
)
"""What a kernel chooses."""

LAUNCH = (
    Entry("warps", warps, "warps of a thread block", "-"),
    Entry("stages", stages, "buffers of a streamed tile, so that loads run ahead", "-"),
)
"""How a kernel is launched: no count depends on it, what fits does."""

ANALYSIS = (
    Entry("sram_elements", M, "size of the on-chip memory", "elements"),
    Entry("least_block", b, "least size of the streamed tile", "rows"),
    Entry("length", N, "sequence length where queries and keys are as many", "rows"),
    Entry("no_tile", B_1, "the second tile of kernels that have but one to choose: 1", "-"),
)
"""What only leading terms and optima speak of."""

LAUNCH_NAMES = frozenset(entry.name for entry in LAUNCH)
ALPHABET = WORKLOAD + OPTIONS + TILES + LAUNCH + ANALYSIS
BY_NAME = {entry.name: entry.symbol for entry in ALPHABET}
NAME_OF = {entry.symbol: entry.name for entry in ALPHABET}
FOLLOWS = {entry.name: entry.follows for entry in TILES if entry.follows}
"""The tile that each follower takes its size from where it has none of its own."""
