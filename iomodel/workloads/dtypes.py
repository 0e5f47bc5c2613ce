"""Types of released weights, with their sizes."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator

from iomodel.common.spellings import dtype_name
from iomodel.errors import UnknownNameError
from iomodel.workloads.call import KV_QUARTERS

GROUPS = (16, 32, 64, 128, 256)
"""Weights that share a scale, in files of GPTQ, AWQ, compressed-tensors and AutoRound."""
GGML_BLOCKS: dict[str, tuple[int, int]] = {
    "q4_0": (32, 18),
    "q4_1": (32, 20),
    "q5_0": (32, 22),
    "q5_1": (32, 24),
    "q8_0": (32, 34),
    "q2_K": (256, 84),
    "q3_K": (256, 110),
    "q4_K": (256, 144),
    "q5_K": (256, 176),
    "q6_K": (256, 210),
    "iq1_s": (256, 50),
    "iq1_m": (256, 56),
    "iq2_xxs": (256, 66),
    "iq2_xs": (256, 74),
    "iq2_s": (256, 82),
    "iq3_xxs": (256, 98),
    "iq3_s": (256, 110),
    "iq4_nl": (32, 18),
    "iq4_xs": (256, 136),
    "tq1_0": (256, 54),
    "tq2_0": (256, 66),
}
"""Weights and bytes of a block of each type of GGUF files, scales and minima included (ggml/src/ggml-common.h of
llama.cpp)."""
GGML_HEAD = "q6_K"
"""Type of the output layer in files of narrower types (llama_tensor_get_type in src/llama-quant.cpp of llama.cpp)."""


def _grouped(bits: int, group: int, zeros: bool) -> Fraction:
    """Compute the size of an integer whose group has a scale of two bytes and, with zeros, a zero point [B]."""
    return Fraction(bits, 8) + Fraction(16 + bits * zeros, 8 * group)


WEIGHT_SIZE: dict[str, Fraction] = {
    "fp32": Fraction(4),
    "fp16": Fraction(2),
    "bf16": Fraction(2),
    "fp8": Fraction(1),
    "int8": Fraction(1),
    "int4": Fraction(1, 2),
    "mxfp4": Fraction(17, 32),
    "nvfp4": Fraction(9, 16),
    "mxfp8": Fraction(33, 32),
    "nf4": Fraction(9, 16),
    "nf4-double": Fraction(2113, 4096),
    **{f"int{bits}": Fraction(bits, 8) for bits in (2, 3, 5, 6)},
    **{f"int{bits}-g{group}": _grouped(bits, group, False) for bits in (2, 3, 4, 8) for group in GROUPS},
    **{f"uint{bits}-g{group}": _grouped(bits, group, True) for bits in (2, 3, 4, 8) for group in GROUPS},
    **{name: Fraction(size, weights) for name, (weights, size) in GGML_BLOCKS.items()},
}
"""Size of a weight [B]. The small scales are counted: of mxfp4 and mxfp8 (a byte for 32 weights), nvfp4 (a byte for
16), intB-gN (two bytes for N), uintB-gN (two bytes and a zero point of B bits for N, as in files of GPTQ and AWQ), nf4
(four bytes for 64, or with double quantisation a byte for 64 and four for 16,384), and those of GGUF files. Those of
fp8, int8 and int4 are not: their blocks differ, and are large."""

QUANTISED = frozenset(set(WEIGHT_SIZE) - {"fp32", "fp16", "bf16"})
"""Types of matrices only; embeddings, norms, biases, routers and the cache keep a wide type."""

ROW_SCALE = 4
"""Size of the scale and the zero point of a row of an int4 cache, fp16 each [B]."""

WIDE = "bf16"
"""Type of the unquantised parts of a quantised model."""


def known_dtype(name: object, field: str = "dtype") -> str:
    """Validate a type of weights.

    >>> known_dtype("fp4")
    Traceback (most recent call last):
    ...
    iomodel.errors.UnknownNameError: dtype: 'fp4' is unknown; did you mean 'nvfp4' or 'mxfp4'? allowed: fp32, ...
    """
    if isinstance(own := dtype_name(name), str) and own in WEIGHT_SIZE:
        return own
    raise UnknownNameError(field, name, WEIGHT_SIZE)


def ggml_tables(dtype: str) -> tuple[str, str] | tuple[None, None]:
    """Return the types of embedding and output layer in a GGUF file of matrices of this type; None for other types.

    >>> ggml_tables("q4_K"), ggml_tables("q8_0"), ggml_tables("int4")
    (('q4_K', 'q6_K'), ('q8_0', 'q8_0'), (None, None))
    """
    if dtype not in GGML_BLOCKS:
        return None, None
    return dtype, max(dtype, GGML_HEAD, key=WEIGHT_SIZE.__getitem__)


def known_kv_dtype(name: object, field: str = "kv_dtype") -> str:
    """Validate a type of the KV cache, or of another cache."""
    if isinstance(own := dtype_name(name), str) and own in KV_QUARTERS:
        return own
    raise UnknownNameError(field, name, KV_QUARTERS)


def cache_bytes(elements: int, kv_dtype: str, rows: int = 0) -> int:
    """Compute the size of a cache, rounded up to a byte [B].

    Rows of int4 have a scale and a zero point of two bytes each (LMDeploy, docs/en/quantization/kv_quant.md: one of
    each for every head and token of K and of V).

    >>> cache_bytes(256, "nvfp4"), cache_bytes(256, "int4", rows=2), cache_bytes(256, "fp8", rows=2)
    (144, 136, 256)
    """
    return -(-elements * KV_QUARTERS[kv_dtype] // 32) + (ROW_SCALE * rows if kv_dtype == "int4" else 0)


def index_dtype(kv_dtype: str) -> str:
    """Return the type of the indexers' keys beside a cache: fp8 where the cache is narrower."""
    return "fp8" if KV_QUARTERS[kv_dtype] < KV_QUARTERS["fp8"] else kv_dtype


def wide(dtype: str) -> str:
    """Return the type of the unquantised parts of a model released in this type."""
    return WIDE if dtype in QUANTISED else dtype


def served(dtype: str) -> str:
    """Return the compute type of a model released in this type; fp32 becomes bf16, for tensor cores."""
    return WIDE if dtype == "fp32" else wide(dtype)


def in_bytes(weights: int, dtype: str) -> int:
    """Compute the size of weights, rounded up to a byte [B].

    >>> in_bytes(32, "mxfp4"), in_bytes(3, "int4")
    (17, 2)
    """
    size = WEIGHT_SIZE[dtype]
    return -(-weights * size.numerator // size.denominator)


def _known(value: Any) -> Any:
    return known_dtype(value)


WeightType = Annotated[str, BeforeValidator(_known)]
"""A field with the name of a type of weights."""
