"""Spellings of values and of fields that other libraries use, beside those of this one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from iomodel.errors import InputError, shown, synonyms

DTYPES: Mapping[str, str] = {
    "float32": "fp32", "float": "fp32", "single": "fp32", "tfloat32": "tf32",
    "float16": "fp16", "half": "fp16", "bfloat16": "bf16",
    "float8": "fp8", "float8_e4m3": "fp8", "float8_e4m3fn": "fp8", "float8_e4m3fnuz": "fp8", "float8_e5m2": "fp8",
    "float8_e5m2fnuz": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8",
}  # fmt: skip
"""Types of elements as NumPy, PyTorch, ml_dtypes and the engines name them, with the name of this library."""
BLOCKS = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl")
"""Types of caches of llama.cpp, whose names it writes in large letters too."""


def dtype_name(value: Any) -> Any:
    """Return the name of a type of elements, given as a name or as a dtype of another library; else the value.

    >>> import numpy
    >>> dtype_name("float16"), dtype_name("torch.bfloat16"), dtype_name(numpy.dtype("float32")), dtype_name(numpy.int8)
    ('fp16', 'bf16', 'fp32', 'int8')
    >>> dtype_name("Q8_0")
    'q8_0'
    """
    text = value if isinstance(value, str) else _foreign(value)
    name = text.removeprefix("torch.") if isinstance(text, str) else None
    return value if name is None else DTYPES.get(name, name.lower() if name.lower() in BLOCKS else name)


def _foreign(value: Any) -> str | None:
    """Return the name of a dtype of NumPy, ml_dtypes, JAX or PyTorch, none of which is imported here; else None."""
    if isinstance(value, type):
        own = getattr(value, "dtype", None)
        if not hasattr(own, "kind"):  # no scalar of JAX
            return value.__name__ if own is not None else None  # a scalar of NumPy or ml_dtypes, or no dtype
        value = own
    if hasattr(value, "kind") and hasattr(value, "itemsize"):  # a dtype of NumPy
        return str(value.name)
    return str(value) if type(value).__name__ == "dtype" and type(value).__module__ == "torch" else None


def renamed(fields: Mapping[str, Any], known: Collection[str]) -> Mapping[str, Any]:
    """Return fields under the names of this library; raise InputError for a field under two names.

    >>> renamed({"seq_len": 4096, "head_dim": 64}, ["q_len", "head_dim"])
    {'q_len': 4096, 'head_dim': 64}
    """
    others = [name for name in fields if name not in known]
    if not others:
        return fields
    own = {name: synonyms.same(name, known) or name for name in others}
    for name, meant in own.items():
        if name != meant and (meant in fields or [*own.values()].count(meant) > 1):
            raise InputError(f"{name}: {shown(fields[name])} given beside {meant}; allowed: one of the two")
    return {own.get(name, name): value for name, value in fields.items()}
