"""The alphabet: every symbol that a formula may hold, with its meaning and unit.

The papers' letters stand in formulas, full words in Python; this table maps one to the other.
"""

from __future__ import annotations

from typing import NamedTuple

from sympy import Symbol


class Entry(NamedTuple):
    """One letter of the alphabet: the Python name, the symbol, what it means, its unit."""

    name: str
    symbol: Symbol
    meaning: str
    unit: str


def _positive(letter: str) -> Symbol:
    return Symbol(letter, integer=True, positive=True)


def _natural(letter: str) -> Symbol:
    return Symbol(letter, integer=True, nonnegative=True)


B, H, H_kv, G = map(_positive, ("B", "H", "H_kv", "G"))
N_q, N_k, d, d_v = map(_positive, ("N_q", "N_k", "d", "d_v"))
e = _positive("e")
W_l, W_r = map(_natural, ("W_l", "W_r"))
B_r, B_c = map(_positive, ("B_r", "B_c"))
m_1, n_1, m_2, n_2 = map(_positive, ("m_1", "n_1", "m_2", "n_2"))
M, b, N = map(_positive, ("M", "b", "N"))

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
    Entry("window_left", W_l, "keys visible to the left of the diagonal", "keys"),
    Entry("window_right", W_r, "keys visible to the right of the diagonal", "keys"),
)
"""What an attention call fixes."""

TILES = (
    Entry("block_q", B_r, "rows of a query tile", "rows"),
    Entry("block_kv", B_c, "rows of a key/value tile", "rows"),
    Entry("gemm1_m", m_1, "rows of a tile of S in S = Q K^T", "rows"),
    Entry("gemm1_n", n_1, "columns of a tile of S in S = Q K^T", "columns"),
    Entry("gemm2_m", m_2, "rows of a tile of O in O = P V", "rows"),
    Entry("gemm2_n", n_2, "columns of a tile of O in O = P V", "columns"),
)
"""What a kernel chooses."""

ANALYSIS = (
    Entry("sram_elements", M, "size of the on-chip memory", "elements"),
    Entry("least_block", b, "least size of the streamed tile", "rows"),
    Entry("length", N, "sequence length where queries and keys are as many", "rows"),
)
"""What only leading terms and optima speak of."""

ALPHABET = WORKLOAD + TILES + ANALYSIS
BY_NAME = {entry.name: entry.symbol for entry in ALPHABET}
NAME_OF = {entry.symbol: entry.name for entry in ALPHABET}
