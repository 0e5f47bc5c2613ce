"""File types of llama.cpp, such as Q4_K_M: the type of each matrix of a model in a file that llama-quantize writes.

A file type has a usual type of matrices. Those of V, of the way out of attention and of the way down from an MLP have
wider types in some or all layers, the output layer in nearly all file types (llama_tensor_get_type_impl in
src/llama-quant.cpp of llama.cpp at 007dbbf3). Types of two bits and fewer, and iq3_xxs, are those of files with an
importance matrix, which llama-quantize requires.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from iomodel.models.gguf import with_types_of
from iomodel.models.spec import ModelSpec
from iomodel.workloads.dtypes import GGML_BLOCKS, WIDE

Where = Callable[[int, int], bool]
"""A choice of layers by their place and their number."""
SHARING = 4
"""Fewest heads of a group whose V is small enough for a wider type [-]."""
MIXTRAL = 8
"""Experts of the models whose K and V have the type `q8_0` [-]."""
LARGE = 80
"""Layers of the models of 70 billion weights, whose V is an eighth of Q [-]."""
NARROWER = {
    **dict.fromkeys(("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_xs"), "iq4_nl"),
    **dict.fromkeys(("q2_K", "q3_K", "tq1_0", "tq2_0"), "q4_0"),
    "q4_K": "q5_0", "q5_K": "q5_1", "q6_K": "q8_0",
}  # fmt: skip
"""Types in blocks of 32 weights of the matrices whose rows the blocks of 256 do not divide."""


def everywhere(place: int, layers: int) -> bool:
    """Choose every layer."""
    return 0 <= place < layers


def more(place: int, layers: int) -> bool:
    """Choose the first and the last eighth of the layers, and every third between.

    >>> [place for place in range(32) if more(place, 32)]
    [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]
    """
    return place < layers // 8 or place >= 7 * layers // 8 or (place - layers // 8) % 3 == 2


def middle(place: int, layers: int) -> bool:
    """Choose all layers but the first and the last eighth."""
    return layers // 8 <= place < 7 * layers // 8


def eighth(place: int, layers: int) -> bool:
    """Choose the first eighth of the layers."""
    return place < layers // 8


def sixteenth(place: int, layers: int) -> bool:
    """Choose the first sixteenth of the layers."""
    return place < layers // 16


def _first(number: int) -> Where:
    return lambda place, _: place < number


class Rule(NamedTuple):
    """A wider type of matrices of one name, in some layers.

    A `shared` rule is for groups of `SHARING` heads and more, one `of_mixtral` for `MIXTRAL` experts.
    """

    matrix: str
    dtype: str
    where: Where = everywhere
    shared: bool = False
    of_mixtral: bool = False


class FileType(NamedTuple):
    """The usual type of a file, the rules, the first of which holds, the types of the two tables, and of experts.

    Of `MIXTRAL` experts the output of attention has the type `of_mixtral`, if there is one.
    """

    usual: str
    rules: tuple[Rule, ...] = ()
    head: str = "q6_K"
    table: str | None = None
    of_mixtral: str | None = "q5_K"
    experts: str | None = None


def _narrow(usual: str, value: str, down: str, out: str | None = None) -> FileType:
    """Build a file type of two bits and fewer."""
    rules = Rule("v", "q4_K", shared=True), Rule("v", value), Rule("down", down, eighth)
    return FileType(usual, (*rules, *([Rule("o", out)] if out else [])), "q5_K", down)


FILE_TYPES: dict[str, FileType] = {
    **{name: FileType(name, of_mixtral=None) for name in ("q4_0", "q4_1", "q5_0", "q5_1")},
    "q8_0": FileType("q8_0", head="q8_0", of_mixtral=None),
    "q2_k": FileType("q2_K", (Rule("v", "q4_K", shared=True), Rule("v", "q3_K"), Rule("o", "q3_K"),
                              Rule("down", "q3_K"))),
    "q2_k_s": FileType("q2_K", (Rule("v", "q4_K", shared=True), Rule("down", "q4_K", eighth)), of_mixtral=None),
    "q3_k_s": FileType("q3_K"),
    "q3_k_m": FileType("q3_K", (Rule("v", "q5_K", _first(2)), Rule("v", "q4_K"), Rule("o", "q4_K"),
                                Rule("down", "q5_K", sixteenth), Rule("down", "q4_K"))),
    "q3_k_l": FileType("q3_K", (Rule("v", "q5_K"), Rule("o", "q5_K"), Rule("down", "q5_K")), of_mixtral=None),
    "q4_k_s": FileType("q4_K", (Rule("v", "q5_K", _first(4)), Rule("down", "q5_K", eighth))),
    "q4_k_m": FileType("q4_K", (Rule("v", "q6_K", more), Rule("down", "q6_K", more))),
    "q5_k_s": FileType("q5_K", of_mixtral=None),
    "q5_k_m": FileType("q5_K", (Rule("v", "q6_K", more), Rule("down", "q6_K", more)), of_mixtral=None),
    "q6_k": FileType("q6_K", of_mixtral=None),
    **{name: FileType(name, (Rule("v", "q5_K", shared=True), Rule("down", "q5_K", eighth)))
       for name in ("iq4_nl", "iq4_xs")},
    "iq3_m": FileType("iq3_s", (Rule("v", "q4_K"), Rule("o", "q4_K"), Rule("down", "q4_K", eighth),
                               Rule("down", "q4_K", more, of_mixtral=True))),
    "iq3_s": FileType("iq3_s", (Rule("v", "q4_K", shared=True),)),
    "iq3_xs": FileType("iq3_s", (Rule("v", "q4_K", shared=True), Rule("q", "iq3_xxs"), Rule("k", "iq3_xxs"),
                                 Rule("gate", "iq3_xxs", middle), Rule("up", "iq3_xxs", middle))),
    "iq3_xxs": FileType("iq3_xxs", (Rule("v", "q4_K", shared=True), Rule("q", "iq2_s"), Rule("k", "iq2_s"),
                                    Rule("o", "iq3_s")), "q5_K", "iq3_s"),
    "iq2_m": _narrow("iq2_s", "iq3_s", "iq3_s", "iq3_s"),
    "iq2_s": _narrow("iq2_xs", "iq3_s", "iq3_s", "iq3_s"),
    "iq2_xs": _narrow("iq2_xs", "q2_K", "q2_K"),
    "iq2_xxs": _narrow("iq2_xxs", "q2_K", "q2_K"),
    "iq1_m": _narrow("iq1_m", "q2_K", "q2_K", "iq2_xxs"),
    "iq1_s": _narrow("iq1_s", "q2_K", "q2_K", "iq2_xxs"),
    **{name: FileType(name, table="q4_K", of_mixtral=None) for name in ("tq1_0", "tq2_0")},
    "mxfp4_moe": FileType("q8_0", head="q8_0", of_mixtral=None, experts="mxfp4"),
}  # fmt: skip
"""File types of llama-quantize by name."""
SHORT = {"q3_k": "q3_k_m", "q4_k": "q4_k_m", "q5_k": "q5_k_m"}
"""File types by the short names that llama-quantize takes too."""


ENDING = re.compile(
    rf"[-.:_ ]({'|'.join(sorted((*FILE_TYPES, *SHORT), key=len, reverse=True))})(?:\.gguf)?$", re.IGNORECASE
)
"""The file type at the end of the name of a model or of a file."""


def file_type(name: object) -> str | None:
    """Return the file type that a name means, in any case; None for another name.

    >>> file_type("Q4_K_M"), file_type("q4_K"), file_type("int4")
    ('q4_k_m', 'q4_k_m', None)
    """
    low = name.lower() if isinstance(name, str) else ""
    known = SHORT.get(low, low)
    return known if known in FILE_TYPES else None


def in_blocks(spec: ModelSpec) -> bool:
    """Check that the matrices of a model are in types of llama.cpp, as a GGUF file or a file type has them."""
    return not GGML_BLOCKS.keys().isdisjoint((spec.dtype, spec.head_dtype))


@lru_cache(maxsize=256)
def quantised(spec: ModelSpec, name: str) -> ModelSpec:
    """Return a model with the type of each matrix in a file of a type.

    >>> from iomodel.models.registry import model
    >>> llama = quantised(model("llama-3.1-8b"), "q4_k_m")
    >>> dict(llama.layers[0].dtypes), dict(llama.layers[4].dtypes), llama.head_dtype, llama.embedding_dtype
    ({'v': 'q6_K', 'down': 'q6_K'}, {}, 'q6_K', 'q4_K')
    """
    kind, layers = FILE_TYPES[name], len(spec.layers)
    attending = [place for place, layer in enumerate(spec.layers) if layer.attention is not None]
    types: dict[tuple[int, str], str] = {}
    for place, layer in enumerate(spec.layers):
        group = 1 if layer.attention is None else layer.attention.heads // layer.attention.kv_heads
        experts = 0 if layer.mlp is None else layer.mlp.experts
        for matrix in layer.linears(spec.hidden_size):
            if matrix.expert and kind.experts is not None:
                types[place, matrix.name] = kind.experts
                continue
            own = "v" if matrix.name == "kv_b" else matrix.name.rpartition(" ")[2]
            at = (attending.index(place), len(attending)) if own == "v" and place in attending else (place, layers)
            dtype = _type_of(kind, own, at, group, experts)
            types[place, matrix.name] = _divided(dtype, matrix.in_features)
    head = _divided(kind.head, spec.hidden_size)
    table = head if spec.tied_embeddings else _divided(kind.table or kind.usual, spec.hidden_size)
    return with_types_of(spec, types, {"output": head, "token_embd": table})


def _type_of(kind: FileType, matrix: str, at: tuple[int, int], group: int, experts: int) -> str:
    mixtral, narrow = experts == MIXTRAL, kind.head == "q5_K" and kind.usual != "iq3_xxs"
    if mixtral and matrix in ("k", "v"):
        return "q4_K" if narrow else "q8_0"
    if mixtral and matrix == "o":
        return kind.of_mixtral or kind.usual
    shared = group >= SHARING or (narrow and experts >= SHARING)
    rules = (
        rule for rule in kind.rules
        if rule.matrix == matrix and (shared or not rule.shared) and (mixtral or not rule.of_mixtral)
    )  # fmt: skip
    dtype = next((rule.dtype for rule in rules if rule.where(*at)), kind.usual)
    large = matrix == "v" and at[1] == LARGE and group > 1 and not narrow
    return "q5_K" if large and dtype in ("q3_K", "q4_K") else dtype


def _divided(dtype: str, width: int) -> str:
    """Return a type whose blocks divide the rows of a matrix."""
    for kind in (dtype, NARROWER.get(dtype, WIDE)):
        if kind in GGML_BLOCKS and width % GGML_BLOCKS[kind][0] == 0:
            return kind
    return WIDE
