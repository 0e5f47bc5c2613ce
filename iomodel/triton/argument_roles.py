"""Meanings of the arguments of a Triton kernel: the names that kernels use, and those that a caller binds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iomodel.common.validation import as_mapping
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.triton.launch_config import LAUNCH, ROLES

USUAL: Mapping[str, tuple[str, ...]] = {
    "block_q": ("BLOCK_M", "BLOCK_Q", "BLOCK_SIZE_M", "BLOCK_H", "BLOCK_M1"),
    "block_kv": ("BLOCK_N", "BLOCK_KV", "BLOCK_SIZE_N", "BLOCK_N1"),
    "dq_block_q": ("BLOCK_M2",),
    "dq_block_kv": ("BLOCK_N2",),
    "block_m": ("BLOCK_M", "BLOCK_SIZE_M"),
    "block_n": ("BLOCK_N", "BLOCK_SIZE_N"),
    "block_k": ("BLOCK_K", "BLOCK_SIZE_K"),
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
SECOND = ("dq_block_q", "dq_block_kv")
"""Tiles of the programs for dQ of a launch that has two kinds; without names they are those of the other programs."""
PRODUCT = ("block_m", "block_n", "block_k")
SHAPE = tuple(role for role in USUAL if role not in (*TILES, *SECOND, *PRODUCT))
NEEDED = ("q_len", "head_dim")
Tiles = tuple[int, ...]
"""Rows and keys; rows, columns and step of a matrix product; rows and keys of both kinds of programs."""


def bound(names: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """Combine names of a caller with the usual ones; raise UnknownNameError for an unknown role."""
    named = as_mapping("names", names, "{'block_q': 'BM'}")
    for role, name in named.items():
        if role not in USUAL:
            raise UnknownNameError("names", role, USUAL)
        if not isinstance(name, str):
            raise InputError(f"names: {shown(name)} given for {role}; allowed: the name of an argument")
    return {role: (named[role],) if role in named else usual for role, usual in USUAL.items()}


def name_of(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Find the first integer argument of these names, in any case: `block_m` is one of a plain object."""
    by_small = {name.lower(): name for name in reversed([*arguments])}
    for name in (*names, *(by_small[name.lower()] for name in names if name.lower() in by_small)):
        if isinstance(arguments.get(name), int) and not isinstance(arguments[name], bool):
            return name
    return None


def value(arguments: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """Return the first integer argument of these names."""
    name = name_of(arguments, names)
    return None if name is None else int(arguments[name])


def needed(role: str, arguments: Mapping[str, Any], names: Mapping[str, tuple[str, ...]], fix: str) -> int:
    """Find the argument of a role; raise InputError, which says how to bind it, where there is none."""
    size = value(arguments, names[role])
    if size is None:
        raise InputError(
            f"names: no {role} among the arguments {shown(sorted(arguments))}; looked for {', '.join(names[role])}; "
            f"bind it: names={{{role!r}: {fix}"
        )
    return size


def tile_roles(kernel: str) -> tuple[str, ...]:
    """List the roles of the tiles of a kind of kernel."""
    if kernel.startswith("matmul"):
        return PRODUCT
    return (*TILES, *SECOND) if kernel == "backward" else TILES


def tile(arguments: Mapping[str, Any], names: Mapping[str, tuple[str, ...]], kernel: str = "forward") -> Tiles:
    """Find the tiles of a config; raise InputError naming the tile without an argument.

    A backward pass without tiles for dQ takes those of dK and dV with rows and keys exchanged.
    """
    first, second, *others = tile_roles(kernel)
    found = tuple(needed(role, arguments, names, "'BLOCK'}") for role in (first, second))
    if kernel != "backward":
        return (*found, *(needed(role, arguments, names, "'BLOCK'}") for role in others))
    given = [value(arguments, names[role]) for role in SECOND]
    return (*found, *(usual if size is None else size for size, usual in zip(given, reversed(found), strict=True)))


def unread(arguments: Mapping[str, Any], names: Mapping[str, tuple[str, ...]], kernel: str) -> tuple[str, ...]:
    """List the arguments of a config that no rule reads."""
    read = {name_of(arguments, names[role]) for role in (*tile_roles(kernel), *SHAPE)}
    return tuple(sorted(name for name in set(arguments) - read if name.lower() not in LAUNCH | ROLES))


def shape(
    arguments: Mapping[str, Any], names: Mapping[str, tuple[str, ...]], wanted: tuple[str, ...] = NEEDED
) -> dict[str, int]:
    """Collect the sizes of a call from the arguments of a launch; raise InputError for one that is wanted."""
    for role in wanted:
        needed(role, arguments, names, "'NAME'}, or give a workload")
    sizes = {role: value(arguments, names[role]) for role in SHAPE}
    return {role: size for role, size in sizes.items() if size is not None}
