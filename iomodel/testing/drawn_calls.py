"""Attention calls as a Hypothesis strategy, with compatible fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from iomodel.errors import UnknownNameError
from iomodel.nests.features import FEATURES
from iomodel.testing.drawing import st
from iomodel.testing.drawn_masks import BY_FORMULA, Kind, of_kind
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import CACHE_ONLY, KV_MULTIPLE, KV_QUARTERS

SCALES = ("head_scales", "token_scales")
FIELDS: Mapping[str, st.SearchStrategy[dict[str, Any]]] = {
    "head_scales": st.just({"kv_scales": "head"}),
    "token_scales": st.just({"kv_scales": "token"}),
    "paged": st.builds(dict, page_size=st.integers(1, 9)),
    "bias": st.just({"bias": True}),
    "softcap": st.just({"softcap": 30.0}),
    "alibi": st.just({"alibi": True}),
    "sinks": st.just({"sinks": True}),
    "dropout": st.just({"dropout": 0.5}),
}
"""Fields that set each feature of a call; latent and kv_dtype depend on other fields and are set separately."""


class SizeLimits(TypedDict, total=False):
    """Largest numbers of the calls drawn.

    Parameters
    ----------
    max_len : int
        Most queries and most keys per head [rows].
    max_width : int
        Largest head_dim and value_dim [elements].
    max_batch : int
        Most sequences [-].
    max_kv_heads : int
        Most key/value heads [-].
    max_group : int
        Most query heads per key/value head [-].
    """

    max_len: int
    max_width: int
    max_batch: int
    max_kv_heads: int
    max_group: int


USUAL = SizeLimits(max_len=14, max_width=5, max_batch=2, max_kv_heads=2, max_group=3)
"""Sizes of calls that run by hand."""


@dataclass(frozen=True)
class CallLimits:
    """Limits of the calls drawn by :func:`calls`."""

    max_len: int
    max_width: int
    max_batch: int
    max_kv_heads: int
    max_group: int
    dtypes: list[Any]
    masks: list[Kind]
    features: list[str]
    directions: list[Any]
    lacked: Mapping[str, frozenset[str]]  # features that the algorithm does not have, by direction


def known_features(features: Iterable[str]) -> list[str]:
    """Validate features and return them as a list, or raise UnknownNameError."""
    names = [features] if isinstance(features, str) else list(features)
    for name in names:
        if name not in FEATURES:
            raise UnknownNameError("feature", name, FEATURES)
    return names


@st.composite
def calls(draw: st.DrawFn, bounds: CallLimits) -> Attention:
    """Draw a call within the limits."""
    direction = draw(st.sampled_from(bounds.directions))
    has = draw(_features(bounds, direction))
    kinds = [kind for kind in bounds.masks if kind in BY_FORMULA or "paged" not in has]
    kind = draw(st.sampled_from(kinds))
    length, width = st.integers(1, bounds.max_len), st.integers(1, bounds.max_width)
    q_len, kv_heads = draw(length), draw(st.integers(1, bounds.max_kv_heads))
    kv_len = q_len if kind == "documents" else draw(length)
    fields: dict[str, Any] = {
        "batch": draw(st.sampled_from([1, 1, 1, *range(2, bounds.max_batch + 1)])),
        "heads": kv_heads * draw(st.integers(1, bounds.max_group)),
        "kv_heads": kv_heads,
        "q_len": q_len,
        "kv_len": kv_len,
        "head_dim": draw(width),
        "value_dim": draw(width),
        "dtype": draw(st.sampled_from(bounds.dtypes)),
        "mask": draw(of_kind(kind, q_len, kv_len, max_side=8)),
        "direction": direction,
    }
    for name in has:
        if name in FIELDS:
            fields |= draw(FIELDS[name])
    if "kv_dtype" in has:
        multiples = {dtype: KV_MULTIPLE.get(dtype, 1) for dtype in KV_QUARTERS if dtype != fields["dtype"]}
        fields["kv_dtype"] = draw(
            st.sampled_from([name for name, least in multiples.items() if least <= bounds.max_width])
        )
        least = multiples[fields["kv_dtype"]]
        fields |= {name: max(least, fields[name] // least * least) for name in ("head_dim", "value_dim")}
    if "latent" in has:  # shared by all heads; V is its first columns
        widths = sorted((fields["head_dim"], fields["value_dim"]))
        fields |= {"latent": True, "kv_heads": 1, "value_dim": widths[0], "head_dim": widths[1]}
    return Attention(**fields)


@st.composite
def _features(draw: st.DrawFn, bounds: CallLimits, direction: str) -> list[str]:
    """Draw up to three compatible features; none in half of the cases."""
    lacked = bounds.lacked.get(direction, frozenset())
    if direction == "both":
        lacked = lacked.union(*bounds.lacked.values())
    if direction != "forward":
        lacked |= set(CACHE_ONLY)
    names = [name for name in bounds.features if name not in lacked]
    chosen = draw(st.just(set()) | st.sets(st.sampled_from(names), min_size=1, max_size=3)) if names else set()
    if chosen >= set(SCALES):  # one scale per head or per key, not both
        chosen -= {"head_scales"}
    if "latent" in chosen:
        chosen -= set(SCALES)
    if "paged" in chosen and not set(bounds.masks) & set(BY_FORMULA):
        chosen -= {"paged"}
    return sorted(chosen)
