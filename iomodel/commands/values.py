"""Text from the command line to the library's values; what a value may be, the library itself says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from iomodel.commands.masks import mask
from iomodel.commands.numbers import duration, integer, integers, pairs, real, size
from iomodel.errors import InputError
from iomodel.expressions import known_options
from iomodel.workload import Attention, Call, VarlenAttention

Given = Mapping[str, Any]
"""What was typed, by the name of the field; None where nothing was."""

LENGTHS = ("batch", "q_len", "kv_len")
"""What a call has where its sequences are all of one length."""
REALS = ("softcap", "dropout")
TEXTS = ("dtype", "direction", "kv_dtype", "kv_scales")


def workload(given: Given) -> Attention | VarlenAttention:
    """The attention call; fields that were not typed are left to the library's defaults."""
    fields = {name: _field(name, given[name]) for name in Call.model_fields if name != "mask" and _typed(given, name)}
    fields["mask"] = mask(given)
    if not _typed(given, "q_lens"):
        if _typed(given, "kv_lens"):
            raise InputError("kv_lens: given without q_lens; allowed: with --q-lens, one for each sequence")
        return Attention(**fields, **{name: integer(name, given[name]) for name in LENGTHS if _typed(given, name)})
    for name in LENGTHS:
        if _typed(given, name):
            raise InputError(f"{name}: given with q_lens; allowed: --q-lens and --kv-lens in place of it")
    queries, keys = pairs("q_lens", given["q_lens"])
    if _typed(given, "kv_lens"):
        if keys is not None:
            raise InputError("kv_lens: given with pairs in q_lens; allowed: one of the two")
        keys = integers("kv_lens", given["kv_lens"])
    return VarlenAttention(**fields, q_lens=queries, **({} if keys is None else {"kv_lens": keys}))


def _typed(given: Given, name: str) -> bool:
    return given.get(name) is not None


def _field(name: str, typed: Any) -> Any:
    """A field of a call: a switch is a bool already, of the others most are integers."""
    if isinstance(typed, bool) or name in TEXTS:
        return typed
    return real(typed) if name in REALS else integer(name, typed)


def budget(given: Given) -> dict[str, Any]:
    """The arguments of `solve` and `compare` that say what must be kept to."""
    readers: dict[str, Callable[[str, str], int]] = {
        "sram_bytes": size,
        "sram_elements": integer,
        "alignment": integer,
        "min_block_kv": integer,
        "min_blocks_per_sm": integer,
    }
    values = {name: read(name, given[name]) for name, read in readers.items() if _typed(given, name)}
    share = {"epsilon": real(given["epsilon"])} if _typed(given, "epsilon") else {}
    lying = {name: given[name] for name in ("residency", "objective") if _typed(given, name)}
    return {"hardware": given["hardware"], **values, **share, **lying}


def options(given: Given, algorithms: list[str]) -> dict[str, Any]:
    """The algorithms' options that were typed."""
    known = known_options(algorithms)
    typed = {name: given[name] for name in known if _typed(given, name)}
    whole = {name for name, default in known.items() if type(default) is int}
    return {name: integer(name, value) if name in whole else value for name, value in typed.items()}


def tiles(given: Given, names: list[str]) -> dict[str, int]:
    """The tiles that were typed."""
    return {name: integer(name, given[name]) for name in names if _typed(given, name)}


def durations(given: Given, names: Iterable[str]) -> dict[str, float]:
    """The times that were typed [s]."""
    return {name: duration(name, given[name]) for name in names if _typed(given, name)}


def features(given: Given, names: Iterable[str]) -> dict[str, bool]:
    """The features that a formula is to have."""
    return {name: True for name in names if given.get(name)}
