"""Meanings of the arguments of a Triton kernel: the names that kernels use, and those that a caller binds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iomodel.common.validation import as_mapping
from iomodel.errors import InputError, UnknownNameError, shown

USUAL: Mapping[str, tuple[str, ...]] = {
    "block_q": ("BLOCK_M", "BLOCK_Q", "BLOCK_SIZE_M", "BLOCK_H"),
    "block_kv": ("BLOCK_N", "BLOCK_KV", "BLOCK_SIZE_N"),
    "q_len": ("q_len", "seqlen_q", "SEQLEN_Q", "N_CTX", "N_CTX_Q", "Q_LEN", "max_seqlen_q"),
    "kv_len": ("kv_len", "seqlen_k", "SEQLEN_K", "N_CTX", "N_CTX_K", "KV_LEN", "max_seqlen_k"),
    "head_dim": ("head_dim", "HEAD_DIM", "BLOCK_DMODEL", "QK_HEAD_DIM", "D_HEAD", "HEAD_SIZE", "BLOCK_HEADDIM"),
    "value_dim": ("value_dim", "V_HEAD_DIM", "BLOCK_DV"),
    "batch": ("batch", "BATCH", "Z", "B"),
    "heads": ("heads", "nheads", "H", "HQ", "num_heads"),
    "kv_heads": ("kv_heads", "nheads_k", "HK", "num_kv_heads"),
}
"""Usual names of each role, the likeliest first."""
TILES = ("block_q", "block_kv")
SHAPE = tuple(role for role in USUAL if role not in TILES)
NEEDED = ("q_len", "head_dim")


def bound(names: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """Combine names of a caller with the usual ones; raise UnknownNameError for an unknown role."""
    named = as_mapping("names", names, "{'block_q': 'BM'}")
    for role, name in named.items():
        if role not in USUAL:
            raise UnknownNameError("names", role, USUAL)
        if not isinstance(name, str):
            raise InputError(f"names: {shown(name)} given for {role}; allowed: the name of an argument")
    return {role: (named[role],) if role in named else usual for role, usual in USUAL.items()}


def value(arguments: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """Find the first integer argument of these names."""
    for name in names:
        if isinstance(arguments.get(name), int) and not isinstance(arguments[name], bool):
            return int(arguments[name])
    return None


def needed(role: str, arguments: Mapping[str, Any], names: Mapping[str, tuple[str, ...]], fix: str) -> int:
    """Find the argument of a role; raise InputError, which says how to bind it, where there is none."""
    size = value(arguments, names[role])
    if size is None:
        raise InputError(
            f"names: no {role} among the arguments {shown(sorted(arguments))}; looked for {', '.join(names[role])}; "
            f"bind it: names={{{role!r}: {fix}"
        )
    return size


def tile(arguments: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> tuple[int, int]:
    """Find the query and key tiles of a config; raise InputError naming the tile without an argument."""
    query, key = (needed(role, arguments, names, "'BLOCK'}") for role in TILES)
    return query, key


def shape(arguments: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Collect the sizes of a call from the arguments of a launch; raise InputError for one that is needed."""
    for role in NEEDED:
        needed(role, arguments, names, "'NAME'}, or give a workload")
    sizes = {role: value(arguments, names[role]) for role in SHAPE}
    return {role: size for role, size in sizes.items() if size is not None}
