"""Order of the layers of a config.json: what mixes tokens in each layer, and which MLP follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown
from iomodel.models.config_fields import Fields
from iomodel.models.families import CSA, HCA, Family
from iomodel.models.spec import MOST_LAYERS

Mixer = Literal["attention", "recurrent", "both", "none"]
Reach = Literal["full", "window", "chunk"]
Width = Literal["dense", "experts", "none"]

_KINDS: tuple[tuple[tuple[Mixer, Reach], tuple[str, ...]], ...] = (
    (("attention", "full"), ("full_attention", "global", "attention", "dense")),
    (("attention", "window"), ("sliding_attention", "sliding_window", "swa")),
    (("attention", "chunk"), ("chunked_attention",)),
    (("attention", "full"), ("deepseek_sparse_attention", "indexed_attention", "minimax_m3_sparse")),
    (("attention", "window"), (CSA, HCA)),
    (("recurrent", "full"), ("linear_attention", "kda", "mamba", "mamba2", "conv", "short_conv")),
    (("none", "full"), ("moe", "mlp")),
)
KINDS = {name: kind for kind, names in _KINDS for name in names}
"""Allowed entries of `layer_types` and `layers_block_type`."""

LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
"""Letters of `hybrid_override_pattern`."""

WIDTHS: dict[str, Width] = {"dense": "dense", "sparse": "experts", "moe": "experts", "hash_moe": "experts"}
"""Allowed entries of `mlp_layer_types`."""


@dataclass(frozen=True)
class Slot:
    """One layer to be built: its mixer, reach and MLP, the name of its kind, and fields that differ in this layer."""

    mixer: Mixer = "attention"
    reach: Reach = "full"
    width: Width = "dense"
    name: str = ""
    changes: FrozenDict[str, Any] = field(default_factory=FrozenDict)
    hashed: bool = False


def number_of(fields: Fields) -> int:
    """Read the number of layers, which a list of them may give."""
    names = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
    number = fields.maybe(*names) if fields.stated(*names) else None
    if number is None:
        listed = fields.listed("layers_block_type") or fields.listed("layer_types") or fields.listed("block_configs")
        if listed:
            number = len(listed)
        elif fields.given("hybrid_override_pattern") is not None:
            number = len(fields.text("hybrid_override_pattern", longest=MOST_LAYERS) or "")
        else:
            number = fields.count(*names)
    if number > MOST_LAYERS:
        raise InputError(f"{fields.path('num_hidden_layers')}: {number} given; allowed: from 1 to {MOST_LAYERS}")
    return number


def blocks(fields: Fields, number: int) -> list[str] | None:
    """List the kinds of layers that are one block each, or None if every layer has an MLP."""
    pattern = fields.text("hybrid_override_pattern", longest=MOST_LAYERS)
    if pattern is not None:
        for place, letter in enumerate(pattern):
            if letter not in LETTERS:
                raise InputError(
                    f"{fields.path('hybrid_override_pattern')}: {shown(letter)} given at place {place}; allowed: "
                    f"{', '.join(LETTERS)}"
                )
        listed = [LETTERS[letter] for letter in pattern]
    else:
        listed = entries(fields, "layers_block_type", number, KINDS) or []
    if listed and len(listed) != number:
        raise InputError(
            f"{fields.path('hybrid_override_pattern')}: {len(listed)} letters given; allowed: "
            f"num_hidden_layers = {number}"
        )
    return listed or None


def check_length(fields: Fields, name: str, fits: bool, number: int) -> None:
    """Raise InputError where a list has another number of entries than there are layers."""
    if not fits:
        given = len(fields.given(name))
        raise InputError(f"{fields.path(name)}: {given} entries given; allowed: num_hidden_layers = {number}")


def entries(fields: Fields, name: str, number: int, allowed: Any) -> list[str] | None:
    """Read a list with one of the allowed names for each layer."""
    listed = fields.listed(name)
    if not listed:
        return None
    check_length(fields, name, len(listed) >= number, number)
    for place, entry in enumerate(listed):
        if not isinstance(entry, str) or entry not in allowed:
            raise InputError(f"{fields.path(f'{name}.{place}')}: {shown(entry)} given; allowed: {', '.join(allowed)}")
    further = name != "layer_types" or fields.given("num_nextn_predict_layers") is not None
    check_length(fields, name, further or len(listed) <= number, number)
    return listed[:number]


def switches(fields: Fields, name: str, number: int) -> list[int] | None:
    """Read a list of zeros and ones, one for each layer."""
    listed = fields.listed(name)
    if not listed:
        return None
    check_length(fields, name, len(listed) >= number, number)
    for place, entry in enumerate(listed):
        if entry not in (0, 1) or isinstance(entry, float):
            raise InputError(f"{fields.path(f'{name}.{place}')}: {shown(entry)} given; allowed: 0 or 1")
    return [int(entry) for entry in listed[:number]]


def mixers(fields: Fields, kind: str, family: Family, number: int, notes: list[str]) -> list[tuple[Mixer, Reach, str]]:
    """List the mixer and the reach of each layer, with the name of its kind."""
    if family.mixer == "both":
        return [("both", "full", "")] * number
    if family.mixer == "recurrent":
        return [("recurrent", "full", "")] * number
    attends = family.recurrent is None
    allowed = [name for name, (mixer, _) in KINDS.items() if mixer == "attention" or not attends]
    listed = entries(fields, "layer_types", number, allowed) or entries(fields, "layers_block_type", number, allowed)
    if listed is not None:
        return [(*KINDS[name], name) for name in listed]
    recurrent = _recurrent(fields, family, number)
    if recurrent is not None:
        return [("recurrent" if state else "attention", "full", "") for state in recurrent]
    first, repeated = family.order
    if repeated and not fields.stated("hybrid_layer_pattern"):
        names = [*first, *repeated * -(-number // len(repeated))][:number]
        return [(*KINDS[name], name) for name in names]
    return [("attention", reach, "") for reach in _reaches(fields, kind, family, number, notes)]


def _recurrent(fields: Fields, family: Family, number: int) -> list[bool] | None:
    """List the layers with a recurrent state, for the fields that say so without `layer_types`; None without any."""
    types = switches(fields, "attn_type_list", number)
    if types is not None:
        return [entry == 0 for entry in types] if not all(types) else None
    linear = fields.inside("linear_attn_config")
    if linear is not None:
        states, attending = linear.positions("kda_layers"), linear.positions("full_attn_layers")
        if states is None or attending is None:
            raise InputError(
                f"{linear.path('kda_layers')}: not given, but required with {linear.path('full_attn_layers')}"
            )
        first = 0 if 0 in states | attending else 1
        if states | attending != set(range(first, number + first)) or states & attending:
            raise InputError(
                f"{linear.path('kda_layers')}: {len(states)} layers given beside {len(attending)} of "
                f"{linear.path('full_attn_layers')}; allowed: every layer once, counted from 0 or from 1"
            )
        return [place + first in states for place in range(number)]
    if family.recurrent is None:
        return None
    for name in ("attn_layer_indices", "full_attn_idxs"):
        listed = fields.positions(name)
        if listed is not None:
            return [place not in listed for place in range(number)]
    for name, last in (("attn_layer_period", False), ("full_attention_interval", True), ("layer_group_size", True)):
        period = fields.maybe(name)
        if period is not None:
            offset = period - 1 if last else fields.maybe("attn_layer_offset", least=0) or 0
            return [place % period != offset for place in range(number)]
    return None if family.order[1] else [True] * number


def _reaches(fields: Fields, kind: str, family: Family, number: int, notes: list[str]) -> list[Reach]:
    """List the reach of each layer from the fields of windows and chunks."""
    hybrid = switches(fields, "hybrid_layer_pattern", number)
    if hybrid is not None:
        return ["window" if entry else "full" for entry in hybrid]
    if family.windows == "chunks":
        if fields.given("attention_chunk_size") is None:
            return ["full"] * number
        return ["chunk" if rope else "full" for rope in rotated(fields, number)]
    if fields.given("sliding_window") is None or not fields.flag("use_sliding_window", True):
        return ["full"] * number
    if family.windows == "none":
        notes.append(f"The sliding_window is not used by the model_type {kind}.")
        return ["full"] * number
    if family.windows == "all":
        return ["window"] * number
    if family.windows == "late":
        first = fields.maybe("max_window_layers", least=0)
        return ["window" if i >= (number if first is None else first) else "full" for i in range(number)]
    letters = fields.given("sliding_window_pattern")
    if isinstance(letters, str) and letters and set(letters) <= {"L", "G"} and len(letters) <= MOST_LAYERS:
        repeated: list[Reach] = ["full" if letters[i % len(letters)] == "G" else "window" for i in range(number)]
        return [*repeated[:-1], "full"]
    every = fields.maybe("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")
    every = every or int(family.windows)
    return ["full" if (i + 1) % every == 0 else "window" for i in range(number)]


def rotated(fields: Fields, number: int) -> list[bool]:
    """List the layers with RoPE, as `no_rope_layers` or `no_rope_layer_interval` says; all without these."""
    listed = switches(fields, "no_rope_layers", number)
    if listed is not None:
        check_length(fields, "no_rope_layers", len(fields.given("no_rope_layers")) == number, number)
        return [bool(entry) for entry in listed]
    interval = fields.maybe("no_rope_layer_interval")
    return [interval is None or (i + 1) % interval != 0 for i in range(number)]


def sparse(fields: Fields, number: int) -> list[bool]:
    """List the layers with experts; fields that are absent impose no restriction."""
    listed = entries(fields, "mlp_layer_types", number, WIDTHS)
    if listed is not None:
        return [WIDTHS[name] == "experts" for name in listed]
    for name in ("moe_layers", "moe_layers_enum"):
        placed = fields.positions(name)
        if placed is not None:
            return [place in placed for place in range(number)]
    placed_by = switches(fields, "moe_layer_freq", number) if isinstance(fields.given("moe_layer_freq"), list) else None
    if placed_by is not None:
        return [bool(entry) for entry in placed_by]
    first = fields.maybe("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index", least=0) or 0
    end = fields.maybe("moe_layer_end_index", least=-1)
    last = number - 1 if end in (None, -1) else end
    every = fields.maybe("moe_layer_freq") or 1
    steps = [
        fields.maybe(name) or 1 for name in ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval")
    ]
    period, offset = fields.maybe("expert_layer_period") or 1, fields.maybe("expert_layer_offset", least=0) or 0
    never = fields.positions("mlp_only_layers") or frozenset()
    return [
        first <= i <= (last or 0)
        and i % every == 0
        and i not in never
        and i % period == offset % period
        and all((i + 1) % step == 0 for step in steps)
        for i in range(number)
    ]
