"""The alphabet: every letter of the formulas, with its Python name, meaning and unit.

:mod:`iomodel.nests.symbols` defines the letters as sympy symbols; this module does not import sympy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sympy import Symbol


class Entry(NamedTuple):
    """One letter of the alphabet: Python name, letter of the papers, meaning, unit, least value.

    A tile that `follows` another takes its size by default.
    """

    name: str
    letter: str
    meaning: str
    unit: str
    follows: str | None = None
    least: int = 1

    @property
    def symbol(self) -> Symbol:
        """The letter as a sympy symbol."""
        from iomodel.nests.symbols import symbol_of

        return symbol_of(self)


WORKLOAD = (
    Entry("batch", "B", "sequences in the batch", "-"),
    Entry("heads", "H", "query heads; of a recurrence, heads of V and of the state", "-"),
    Entry("kv_heads", "H_kv", "key/value heads", "-"),
    Entry("group", "G", "query heads that share a key/value head, H / H_kv", "-"),
    Entry("q_len", "N_q", "queries per head", "rows"),
    Entry("kv_len", "N_k", "keys and values per head", "rows"),
    Entry("head_dim", "d", "width of a row of Q and K", "elements"),
    Entry("value_dim", "d_v", "width of a row of V and O", "elements"),
    Entry("element_size", "e", "one element of the workload's dtype", "B"),
    Entry("kv_size", "b_kv", "one element of K and V in HBM, if their dtype differs", "bit/4"),
    Entry("page_size", "p", "keys in a page of the K/V cache", "rows"),
    Entry("window_left", "W_l", "keys visible to the left of the diagonal", "keys", least=0),
    Entry("window_right", "W_r", "keys visible to the right of the diagonal", "keys", least=0),
)
"""Symbols fixed by an attention call."""

LINEAR = (
    Entry("groups", "g", "products of one shape, each with its own operands", "-"),
    Entry("rows", "T", "rows of X and Y: tokens", "rows"),
    Entry("in_features", "C_in", "width of a row of X: terms of a sum", "elements"),
    Entry("out_features", "C_out", "width of a row of Y: columns of W", "elements"),
    Entry("scale_block", "n_s", "terms that share a scale of W", "elements"),
    Entry("element_size", "e", "one element of the workload's dtype", "B"),
    Entry("weight_size", "b_w", "one element of W in HBM", "bit/4"),
    Entry("out_element_size", "e_out", "one element of Y, and of a bias, in HBM", "B"),
)
"""Symbols fixed by a linear layer."""

ELEMENTWISE = (
    Entry("rows", "T", "rows of X and Y: tokens", "rows"),
    Entry("channels", "C", "width of a row", "elements"),
    Entry("others", "C_2", "second width of a row", "elements"),
    Entry("angles", "C_3", "width of a row of angles, beside two others", "elements"),
    Entry("element_size", "e", "one element of the workload's dtype", "B"),
    Entry("kv_size", "b_kv", "one element of K and V in HBM, if their dtype differs", "bit/4"),
)
"""Symbols fixed by an elementwise kernel."""

_SHARED = {entry.name: entry for entry in WORKLOAD}
RECURRENCE = (
    _SHARED["batch"],
    _SHARED["heads"],
    Entry("key_heads", "H_k", "heads of Q and K of a recurrence", "-"),
    Entry("tokens", "L", "positions of a sequence of a recurrence", "positions"),
    _SHARED["head_dim"],
    _SHARED["value_dim"],
    _SHARED["element_size"],
)
"""Symbols fixed by a recurrence of keys and values."""

_OF_LINEAR = {entry.name: entry for entry in LINEAR}
MLP = (
    _OF_LINEAR["groups"],
    _OF_LINEAR["rows"],
    _OF_LINEAR["in_features"],
    Entry("hidden_features", "C_h", "width of a hidden row of an MLP", "elements"),
    _OF_LINEAR["element_size"],
    _OF_LINEAR["weight_size"],
)
"""Symbols fixed by a two-layer MLP."""

CROSS_ENTROPY = (
    _OF_LINEAR["rows"],
    _OF_LINEAR["in_features"],
    Entry("vocab_size", "N_v", "words of a vocabulary", "-"),
    _OF_LINEAR["element_size"],
)
"""Symbols fixed by the loss of a language model."""

SHAPES = {
    "attention": WORKLOAD,
    "linear": LINEAR,
    "elementwise": ELEMENTWISE,
    "recurrence": RECURRENCE,
    "mlp": MLP,
    "cross_entropy": CROSS_ENTROPY,
}
"""Letters with values in each kind of workload, in the order of a point."""

_OPTIONS = (
    Entry("splits", "s", "splits of the keys, or of the terms of a sum, one per thread block", "-"),
    Entry("dq_buffers", "n_dQ", "buffers of dQ that a deterministic backward pass adds to", "-"),
    Entry("projected", "k", "rows that the keys are projected to", "rows"),
    Entry("features", "r", "random features", "-"),
    Entry("rank", "r_low", "leading components of approximate scores", "elements"),
    Entry("top_k", "k_top", "keys selected per query", "keys"),
    Entry("index_heads", "H_I", "query heads of an indexer", "-"),
    Entry("index_queries", "B_I", "queries of a tile of an indexer, whose heads are its rows", "-"),
    Entry("index_dim", "d_I", "width of a query and of a key of an indexer", "elements"),
    Entry("stride", "l_s", "positions between two that a strided head sees, or per section", "positions"),
    Entry("summary", "c_s", "positions at the end of a section visible to all later ones", "positions"),
    Entry("buckets", "n_b", "buckets that positions are hashed into", "-"),
    Entry("rounds", "n_h", "rounds of hashing, or draws of a token", "-"),
    Entry("clusters", "n_c", "clusters of queries and keys", "-"),
    Entry("compress_block", "l_cmp", "keys compressed to one", "keys"),
    Entry("compress_stride", "s_cmp", "keys between the starts of two compressed blocks", "keys"),
    Entry("select_block", "l_slc", "keys of a selection block", "keys"),
    Entry("selected", "n_slc", "blocks selected per query", "-"),
    Entry("local", "w_loc", "keys of the sliding window, including the query's own", "keys"),
    Entry("state", "n_st", "elements of the state per channel", "elements"),
    Entry("expand", "x_e", "channels per element of the model width", "-"),
)
"""Integer options of the algorithms."""

ATTENTION_TILES = (
    Entry("block_q", "B_r", "rows of a query tile", "rows"),
    Entry("block_kv", "B_c", "rows of a key/value tile", "rows"),
    Entry("block_value", "B_dv", "columns of a slab of V and O", "elements"),
    Entry("block_proj", "B_p", "rows of a tile of a projection", "rows"),
    Entry("block_sum", "B_s", "rows of a tile summed in a first or last pass", "rows"),
    Entry("block_channels", "B_e", "channels of a tile", "elements"),
    Entry("dq_block_q", "B_r_dQ", "rows of a query tile in a pass for dQ alone", "rows", "block_q"),
    Entry("dq_block_kv", "B_c_dQ", "rows of a key/value tile in a pass for dQ alone", "rows", "block_kv"),
    Entry("bwd_block_q", "B_r_bwd", "rows of a query tile of a backward pass after a forward pass", "rows", "block_q"),
    Entry(
        "bwd_block_kv",
        "B_c_bwd",
        "rows of a key/value tile of a backward pass after a forward pass",
        "rows",
        "block_kv",
    ),
    Entry("gemm1_m", "m_1", "rows of a tile of S in S = Q K^T", "rows"),
    Entry("gemm1_n", "n_1", "columns of a tile of S in S = Q K^T", "columns"),
    Entry("gemm2_m", "m_2", "rows of a tile of O in O = P V", "rows"),
    Entry("gemm2_n", "n_2", "columns of a tile of O in O = P V", "columns"),
    Entry("gemm3_m", "m_3", "rows of a tile of dV in dV = P^T dO", "rows"),
    Entry("gemm3_n", "n_3", "columns of a tile of dV in dV = P^T dO", "columns"),
    Entry("gemm4_m", "m_4", "rows of a tile of dP in dP = dO V^T", "rows"),
    Entry("gemm4_n", "n_4", "columns of a tile of dP in dP = dO V^T", "columns"),
    Entry("gemm5_m", "m_5", "rows of a tile of dQ in dQ = dS K", "rows"),
    Entry("gemm5_n", "n_5", "columns of a tile of dQ in dQ = dS K", "columns"),
    Entry("gemm6_m", "m_6", "rows of a tile of dK in dK = dS^T Q", "rows"),
    Entry("gemm6_n", "n_6", "columns of a tile of dK in dK = dS^T Q", "columns"),
)
"""Tiles of attention kernels."""

GEMM_TILES = (
    Entry("block_m", "B_m", "rows of an output tile of a linear layer", "rows"),
    Entry("block_n", "B_n", "columns of an output tile of a linear layer", "columns"),
    Entry("block_k", "B_k", "terms of a slice of the operands of a linear layer", "elements"),
)
"""Tiles of linear layers."""

SCAN_TILES = (Entry("block_chunk", "c", "positions of a chunk of a recurrence", "positions"),)
"""Tiles of recurrences, besides `block_value`."""

LAUNCH = (
    Entry("warps", "n_warps", "warps of a thread block", "-"),
    Entry("stages", "n_stages", "buffers of a streamed tile, for loads ahead of use; num_stages of Triton", "-"),
)
"""Launch configuration: it affects feasibility, but no count."""

ANALYSIS = (
    Entry("sram_elements", "M", "size of the on-chip memory", "elements"),
    Entry("least_block", "b", "least size of the streamed tile", "rows"),
    Entry("length", "N", "sequence length, where queries and keys are equally many", "rows"),
    Entry("no_tile", "B_1", "the second tile of kernels with only one: 1", "-"),
)
"""Symbols of leading terms and optima only."""

RANKS = (
    Entry("ranks", "R", "ranks that divide a sequence", "-"),
    Entry("rank_index", "i", "one of the ranks, counted from 0", "-", least=0),
)
"""Symbols of messages between ranks."""

LAUNCH_NAMES = frozenset(entry.name for entry in LAUNCH)
_SHAPE = dict.fromkeys(entry for shape in SHAPES.values() for entry in shape)
SHIPPED = (*_SHAPE, *_OPTIONS, *ATTENTION_TILES, *GEMM_TILES, *SCAN_TILES, *LAUNCH, *ANALYSIS, *RANKS)
"""The letters of the package."""
ALPHABET = [*SHIPPED]
"""Every letter; those that declarations outside the package bring (:mod:`iomodel.nests.own_symbols`) come last."""
numbers = {entry.name: entry for entry in _OPTIONS}
tiles = {entry.name: entry for entry in (*ATTENTION_TILES, *GEMM_TILES, *SCAN_TILES)}
OPTIONS, NUMBERS = numbers.values(), numbers.keys()
"""The options that are numbers, and their names: they enter a formula as symbols."""
TILES, TILE_NAMES = tiles.values(), tiles.keys()
"""The tiles, and their names."""
FOLLOWS = {entry.name: entry.follows for entry in TILES if entry.follows}
"""The tile from which each follower takes its default size."""
