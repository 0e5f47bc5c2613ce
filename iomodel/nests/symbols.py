"""The letters of the alphabet (:mod:`iomodel.nests.alphabet`) as sympy symbols, under the letters of the papers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sympy import Integer, Symbol

from iomodel.errors import InputError, shown, synonyms
from iomodel.nests.alphabet import ALPHABET, TILES, Entry


def _positive(letter: str) -> Symbol:
    return Symbol(letter, integer=True, positive=True)


def _natural(letter: str) -> Symbol:
    return Symbol(letter, integer=True, nonnegative=True)


ONE = Integer(1)
"""The tile of a loop over single positions."""
B, H, H_kv, G = map(_positive, ("B", "H", "H_kv", "G"))
N_q, N_k, d, d_v = map(_positive, ("N_q", "N_k", "d", "d_v"))
e, p, e_out = map(_positive, ("e", "p", "e_out"))
b_kv, b_w = map(_positive, ("b_kv", "b_w"))
g, T, C_in, C_out, n_s = map(_positive, ("g", "T", "C_in", "C_out", "n_s"))
C, C_2, C_3 = map(_positive, ("C", "C_2", "C_3"))
C_h, N_v = map(_positive, ("C_h", "N_v"))
H_k, L, c = map(_positive, ("H_k", "L", "c"))
W_l, W_r = map(_natural, ("W_l", "W_r"))
s, n_dQ = map(_positive, ("s", "n_dQ"))
B_r, B_c, B_dv = map(_positive, ("B_r", "B_c", "B_dv"))
B_r_dQ, B_c_dQ, B_r_bwd, B_c_bwd = map(_positive, ("B_r_dQ", "B_c_dQ", "B_r_bwd", "B_c_bwd"))
m_1, n_1, m_2, n_2, m_3, n_3 = map(_positive, ("m_1", "n_1", "m_2", "n_2", "m_3", "n_3"))
m_4, n_4, m_5, n_5, m_6, n_6 = map(_positive, ("m_4", "n_4", "m_5", "n_5", "m_6", "n_6"))
warps, stages = map(_positive, ("n_warps", "n_stages"))
B_p, B_s, B_e = map(_positive, ("B_p", "B_s", "B_e"))
B_m, B_n, B_k = map(_positive, ("B_m", "B_n", "B_k"))
k_p, r_phi, r_low, k_top = map(_positive, ("k", "r", "r_low", "k_top"))
H_I, B_I, d_I = map(_positive, ("H_I", "B_I", "d_I"))
l_s, c_s = map(_positive, ("l_s", "c_s"))
n_b, n_h, n_c = map(_positive, ("n_b", "n_h", "n_c"))
l_cmp, s_cmp, l_slc, n_slc, w_loc = map(_positive, ("l_cmp", "s_cmp", "l_slc", "n_slc", "w_loc"))
n_st, x_e = map(_positive, ("n_st", "x_e"))
M, b, N = map(_positive, ("M", "b", "N"))
B_1 = _positive("B_1")
R, i = _positive("R"), _natural("i")


@lru_cache(maxsize=256)
def symbol_of(entry: Entry) -> Symbol:
    """Return the symbol of a letter."""
    return (_positive if entry.least else _natural)(entry.letter)


BY_NAME = {entry.name: symbol_of(entry) for entry in ALPHABET}
LETTERS = {"N": ("length", "q_len", "kv_len")}
"""Letters of the papers that stand for several symbols: their one N is the length of queries and of keys."""
NAME_OF = {symbol: name for name, symbol in BY_NAME.items()}


def by_name(values: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return values under the Python names of symbols, given under these, letters of the papers or names of engines.

    Raise InputError for a symbol under two names.

    >>> by_name({"N_q": 4096, "d": 64, "block_q": 128})
    {'q_len': 4096, 'head_dim': 64, 'block_q': 128}
    """
    names = {entry.letter: (entry.name,) for entry in ALPHABET} | LETTERS
    known: dict[Any, Any] = {}
    for given, value in values.items():
        other = synonyms.same(given, BY_NAME) if isinstance(given, str) else None
        for name in (given,) if given in BY_NAME else names.get(given, (other or given,)):
            if name in known:
                raise InputError(f"{given}: {shown(value)} given for {name}, which has a value; allowed: one of them")
            known[name] = value
    return known


TILE_ORDER = [entry.symbol for entry in TILES]
"""The symbols of the tiles, in the order of the alphabet."""
