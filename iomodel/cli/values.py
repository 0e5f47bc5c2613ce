"""Conversion of command-line text to library values, which the library validates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from inspect import Parameter
from typing import Any

import typer

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.cli.algorithm_names import list_algorithms
from iomodel.cli.documented import given
from iomodel.cli.masks import BELONGS, mask
from iomodel.cli.numbers import integer, integers, pairs, real
from iomodel.cli.shared_options import LAUNCHED, OF_LAYER, OF_RECURRENCE, SECOND_WIDTHS, TILE
from iomodel.counting.options import known_options
from iomodel.errors import InputError, hinted
from iomodel.errors.synonyms import same
from iomodel.nests.feature_names import FEATURE_NAMES
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import Call
from iomodel.workloads.elementwise import Elementwise
from iomodel.workloads.mlp import MLP, Experts
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.workload import Shape, Workload
from iomodel.workloads.workload_kinds import NOUNS, UNMASKED

Arguments = Mapping[str, Any]
"""Command-line text by field name; None for omitted options."""

LENGTHS = ("batch", "q_len", "kv_len")
"""Fields of a call with sequences of one length."""
REALS = ("softcap", "dropout")
TEXTS = ("dtype", "direction", "kv_dtype", "kv_scales", "weight_dtype", "out_dtype", "gate")
BELONGS_TO_CALLS = tuple(dict.fromkeys(["mask", "align", *(name for names in BELONGS.values() for name in names)]))
"""Options of the masks."""
LAYER_FEATURES = [parameter.name for parameter in (*OF_LAYER, *OF_RECURRENCE)]


def workload(arguments: Arguments, algorithm: str | None = None) -> Workload:
    """Build the call of an algorithm; omitted fields take the library's defaults.

    The algorithm, or fields that only one kind of workload has, select a linear layer, an MLP or a recurrence.
    """
    if _typed(arguments, "loads"):
        return _experts(arguments)
    answers = None if algorithm is None else find_algorithm(algorithm).answers
    if answers in UNMASKED:
        return _unmasked(UNMASKED[answers], arguments)
    if answers == Elementwise.operation:
        return _of_rows(str(algorithm), arguments)
    if answers == "attention" and any(_typed(arguments, name) for name in ("q_len", "q_lens", "head_dim")):
        _own_fields(str(algorithm), arguments)
        return _call(arguments, algorithm)
    own = {
        kind: sum(name not in Attention.model_fields and _typed(arguments, name) for name in kind.model_fields)
        for kind in UNMASKED.values()
    }
    nearest = max(own, key=own.__getitem__)
    return _unmasked(nearest, arguments) if own[nearest] else _call(arguments)


def _of_rows(algorithm: str, arguments: Arguments) -> Workload:
    """Build the rows of a kernel; raise InputError for a width that is not given and that its traffic depends on."""
    from iomodel.counting.cost import cost

    rows = _unmasked(Elementwise, arguments)
    for name in SECOND_WIDTHS:
        wider = rows.model_copy(update={name: 2})
        if not _typed(arguments, name) and cost(algorithm, wider).hbm_bytes != cost(algorithm, rows).hbm_bytes:
            raise InputError(f"{name}: not given, but {algorithm} has it; allowed: {SECOND_WIDTHS[name]}")
    return rows


def _own_fields(algorithm: str, arguments: Arguments) -> None:
    """Raise InputError for a field of another workload, given with an algorithm of attention."""
    own = {*Attention.model_fields, *VarlenAttention.model_fields}
    for name in (name for kind in UNMASKED.values() for name in kind.model_fields):
        if name not in own and _typed(arguments, name):
            near, fields = hinted(name, [*Attention.model_fields]), ", ".join(Attention.model_fields)
            raise InputError(f"{name}: given for {algorithm}, an algorithm of attention; {near}allowed: {fields}")


def _experts(arguments: Arguments) -> Experts:
    """Build experts of different loads: an MLP without rows and groups."""
    for name in ("rows", "groups"):
        if _typed(arguments, name):
            raise InputError(f"{name}: given with loads; allowed: --loads alone, the rows of each expert")
    mlp = _unmasked(MLP, {**arguments, "rows": "1"})
    fields = {name: getattr(mlp, name) for name in Experts.model_fields if name != "loads"}
    return Experts(**fields, loads=integers("loads", arguments["loads"]))


def _unmasked(kind: type[Shape], arguments: Arguments) -> Shape:
    """Build a workload without a mask, such as a linear layer."""
    arguments = _renamed(arguments, kind.model_fields)
    others = dict.fromkeys(name for other in UNMASKED.values() for name in other.model_fields)
    for name in (*BELONGS_TO_CALLS, *Attention.model_fields, *VarlenAttention.model_fields, *others):
        if name not in kind.model_fields and _typed(arguments, name):
            noun, allowed = NOUNS.get(kind.operation, "a kernel of rows"), ", ".join(kind.model_fields)
            raise InputError(f"{name}: given for {noun}; {hinted(name, [*kind.model_fields])}allowed: {allowed}")
    fields = {name: arguments[name] for name in kind.model_fields if _typed(arguments, name)}
    return kind(
        **{
            name: value if isinstance(value, bool) or name in TEXTS else integer(name, value)
            for name, value in fields.items()
        }
    )


def _renamed(arguments: Arguments, fields: Collection[str]) -> Arguments:
    """Give the fields of other workloads to those of this one that they mean, as tokens to rows."""
    meant = {name: same(name, fields) for name in arguments if name not in fields and _typed(arguments, name)}
    moved = {other: name for name, other in meant.items() if other is not None and not _typed(arguments, other)}
    return {**arguments, **dict.fromkeys(moved.values()), **{other: arguments[name] for other, name in moved.items()}}


def _call(arguments: Arguments, algorithm: str | None = None) -> Attention | VarlenAttention:
    fields = {
        name: _field(name, arguments[name]) for name in Call.model_fields if name != "mask" and _typed(arguments, name)
    }
    fields["mask"] = mask(arguments, algorithm)
    if not _typed(arguments, "q_lens"):
        if _typed(arguments, "kv_lens"):
            raise InputError("kv_lens: given without q_lens; allowed: only with --q-lens, one length per sequence")
        return Attention(
            **fields, **{name: integer(name, arguments[name]) for name in LENGTHS if _typed(arguments, name)}
        )
    for name in LENGTHS:
        if _typed(arguments, name):
            raise InputError(f"{name}: given with q_lens; allowed: --q-lens and --kv-lens instead")
    queries, keys = pairs("q_lens", arguments["q_lens"])
    if _typed(arguments, "kv_lens"):
        if keys is not None:
            raise InputError("kv_lens: given with pairs in q_lens; allowed: one of the two")
        keys = integers("kv_lens", arguments["kv_lens"])
    asking = [place for place, length in enumerate(queries) if length]
    if 0 < len(asking) < len(queries) and (keys is None or len(keys) == len(queries)):  # as VarlenAttention.of_offsets
        none = len(queries) - len(asking)
        typer.echo(f"note: q_lens: {none:,} of {len(queries):,} sequences without a query left out", err=True)
        queries, keys = [queries[place] for place in asking], keys and [keys[place] for place in asking]
    return VarlenAttention(**fields, q_lens=queries, **({} if keys is None else {"kv_lens": keys}))


def _typed(arguments: Arguments, name: str) -> bool:
    return arguments.get(name) is not None


def _field(name: str, typed: Any) -> Any:
    """Convert a field of a call: switches are booleans already, most others are integers."""
    if isinstance(typed, bool) or name in TEXTS:
        return typed
    return real(typed) if name in REALS else integer(name, typed)


def budget(arguments: Arguments) -> dict[str, Any]:
    """Collect the arguments of `solve` and `compare` that set limits."""
    limits = "sram_bytes sram_elements alignment min_block_kv min_blocks_per_sm top epsilon implementation objective"
    return {"hardware": arguments["hardware"], **given(arguments, "solving.solve:solve", limits)}


def options(arguments: Arguments) -> dict[str, Any]:
    """Collect the given options of the algorithms."""
    known = known_options(list_algorithms())
    typed = {name: arguments[name] for name in known if _typed(arguments, name)}
    integral = {name for name, default in known.items() if type(default) is int}
    return {name: integer(name, value) if name in integral else value for name, value in typed.items()}


def options_by_name(arguments: Arguments) -> dict[str, Any]:
    """Collect the options of an algorithm and the features of a call that a formula depends on."""
    named = {name: True for name in (*FEATURE_NAMES, *LAYER_FEATURES) if arguments.get(name)}
    return {**options(arguments), **named}


def tiles(arguments: Arguments, taken: Iterable[Parameter] = (*LAUNCHED, *TILE)) -> dict[str, int]:
    """Collect the given tiles, with their launch configuration."""
    names = [entry.name for entry in taken]
    return {name: integer(name, arguments[name]) for name in names if _typed(arguments, name)}
