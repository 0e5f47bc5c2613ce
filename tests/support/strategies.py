"""Valid workloads, masks, tiles and options, small enough that a reference kernel runs in about a millisecond."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from hypothesis import Phase, settings
from hypothesis import strategies as st

import iomodel
from iomodel import testing
from iomodel.algorithms import algorithm, exact_algorithms
from iomodel.counting.mask_kind import MaskKind
from iomodel.nests.feature_names import APART, BAND_ONLY, other_of
from iomodel.nests.features import FEATURES
from iomodel.testing.drawn_masks import Kind
from iomodel.testing.machine import Run
from iomodel.workloads.call import ELEMENT_SIZE, Mask
from iomodel.workloads.masks.tabulated import Tabulated
from tests.reference.extras import Extras
from tests.reference.written import Written
from tests.support.tile_names import tile_names


@dataclass
class Tally:
    """How many shapes were compared with the reference kernels."""

    shapes: int = 0


@dataclass(frozen=True)
class Variant:
    """An algorithm in a direction under some of its options, with the tiles that it then takes."""

    algorithm: str
    direction: str = "forward"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tiles(self) -> tuple[str, ...]:
        every = [self.tiles_under(mask) for mask in algorithm(self.algorithm).masks or ("full",)]
        return tuple(dict.fromkeys(name for names in every for name in names))

    def tiles_under(self, mask: Any) -> tuple[str, ...]:
        return tile_names(self.algorithm, mask, self.direction, **self.options)

    @property
    def without(self) -> frozenset[str]:
        return algorithm(self.algorithm).without.get(self.direction, frozenset())

    def __str__(self) -> str:
        way = [] if self.direction == "forward" else [self.direction]
        return "-".join([self.algorithm, *way, *(name if on else f"no_{name}" for name, on in self.options.items())])


def variants() -> list[Variant]:
    """Every algorithm and direction under every combination of its switches; other options keep to `cases`."""
    found = []
    for name in iomodel.list_algorithms():
        for direction in set(algorithm(name).directions) - {"both"}:
            taken = algorithm(name).takes(direction)
            switches = [option for option, default in taken.items() if isinstance(default, bool)]
            for chosen in product([True, False], repeat=len(switches)):
                found.append(Variant(name, direction, dict(zip(switches, chosen, strict=True))))
    return sorted(found, key=str)


EXACT = exact_algorithms()
EVERY = variants()
VARIANTS = [variant for variant in EVERY if not algorithm(variant.algorithm).approximates]
APPROXIMATE = [variant for variant in EVERY if algorithm(variant.algorithm).approximates]
FORWARD = [variant for variant in VARIANTS if variant.direction == "forward"]

# What an option that is no switch may be; an option of another type needs a line here.
DRAWN = {int: st.integers(1, 5)}


@dataclass(frozen=True)
class Case:
    """What `iomodel.cost` takes, and what a reference kernel takes."""

    algorithm: str
    workload: iomodel.Attention
    tiles: Mapping[str, int]
    options: Mapping[str, Any]

    def cost(self) -> iomodel.Cost:
        return iomodel.cost(self.algorithm, self.workload, self.tiles, **self.options)

    def run(self) -> Run:
        return run(self.algorithm, self.workload, self.tiles, self.options)


def run(name: str, w: iomodel.Attention, tiles: Mapping[str, int], options: Mapping[str, Any]) -> Run:
    """Run the reference kernel; that it computes attention is the matter of test_reference."""
    known = {**algorithm(name).takes(w.direction), **algorithm(name).common}
    told = {
        option: value for option, value in options.items() if option in known and option != algorithm(name).tiled_by
    }
    as_read = {option: options[option] for option in algorithm(name).written(w.direction) if option in options}
    if as_read and algorithm(name).approximates:
        told |= as_read
    elif as_read:
        told["written"] = Written(**as_read)
    rows, keys = (w.batch, w.heads, w.q_len), (w.batch, w.kv_heads, w.kv_len)
    tensors = [np.ones((*rows, w.head_dim)), np.ones((*keys, w.head_dim)), np.ones((*keys, w.value_dim))]
    more = {**bounds(w), **tiles, **told, **({"extras": extras(w, as_read)} if w.features else {})}
    if w.direction == "forward":
        measured: Run = import_module(f"tests.reference.{name}").run(*tensors, **more)
        return measured
    saved = {"O": np.ones((*rows, w.value_dim))}
    saved |= {pairs: np.ones((*rows, w.kv_len)) for pairs in ("P", "P_drop", "dropout_mask")}
    saved |= {statistic: np.ones(rows) for statistic in ("LSE", "l", "m")}
    kernel = import_module(f"tests.reference.backward.{name}")
    return kernel.run(*tensors, np.ones((*rows, w.value_dim)), saved, **more)


def bounds(w: iomodel.Attention) -> dict[str, Any]:
    """A mask as the reference kernels take it."""
    if isinstance(w.mask, iomodel.Window):
        return {"left": w.mask.left, "right": w.mask.right, "align": w.mask.align}
    if isinstance(w.mask, str):
        return {"right": 0} if w.mask == "causal" else {}
    return {"seen": w.mask.seen(w.q_len, w.kv_len)}


def extras(w: iomodel.Attention, as_read: Mapping[str, bool] = {}) -> Extras:
    """The features of a call as the reference kernels take them."""
    of_queries = () if as_read.get("bias_vector") else (w.q_len,)
    per_head = np.zeros(w.heads)
    keys = (w.kv_len,) if w.kv_scales == "token" else ()
    scale = np.ones((w.batch, w.kv_heads, *keys)) if w.kv_scales else None
    return Extras(
        bias=np.zeros((w.batch, w.heads, *of_queries, w.kv_len)) if w.bias else None,
        softcap=w.softcap,
        slopes=per_head if w.alibi else None,
        sinks=per_head if w.sinks else None,
        dropout=w.dropout or None,
        own_kv_dtype=w.kv_dtype != w.dtype,
        scales=w.kv_scales,
        K_scale=scale,
        V_scale=scale,
        page_size=w.page_size,
        latent=w.latent,
    )


BY_FORMULA: list[Kind] = ["full", "causal", "window", "window"]
masks = testing.masks(kinds=BY_FORMULA)
dtypes = st.sampled_from(sorted(ELEMENT_SIZE))
mask_kinds = st.builds(MaskKind, left=st.booleans(), right=st.booleans(), top_left=st.booleans()) | st.builds(
    MaskKind, left=st.booleans(), right=st.just(True), causal=st.just(True), top_left=st.booleans()
)

# Mostly short; at times longer, with tiles to match. A tile may be larger than the sequence.
scales = st.sampled_from([(14, 1, 16)] * 3 + [(40, 6, 48)])
FIELD_OF = {"paged": "page_size", "head_scales": "kv_scales", "token_scales": "kv_scales"}


def data_masks(q_len: int, kv_len: int) -> st.SearchStrategy[Mask]:
    """A mask that no formula describes."""
    return testing.masks(q_len, kv_len, kinds=["documents", "blocks"])


def workloads(
    longest: int = 14, direction: Any = "forward", without: frozenset[str] | None = None
) -> st.SearchStrategy[iomodel.Attention]:
    """A call; with features, and masks given by data, only where those that are lacked are told."""
    if without is None:
        return testing.workloads(max_len=longest, masks=BY_FORMULA, directions=[direction])
    has = [name for name in FEATURES if name not in without]
    every: list[Kind] = [*BY_FORMULA, *BY_FORMULA, "documents", "blocks"]
    return testing.workloads(max_len=longest, masks=every, features=has, directions=[direction])


SELF = {"sparse_transformer", "reformer", "routing_transformer", "nsa", "moba", "mamba1", "mamba2"}
"""Algorithms of self-attention alone."""
UNGROUPED = {"reformer", "mamba1"}
"""Algorithms in which every query head has keys of its own."""
CACHED = {"dsa"}
"""Algorithms whose causal queries may have earlier keys before them."""
# What an option that is a number may be, for a call; the tiles and the options before it may matter.
DRAWN_FOR: dict[str, Any] = {
    "projected": lambda w, _: st.integers(1, w.kv_len),
    "features": lambda w, _: st.integers(1, w.kv_len),
    "rank": lambda w, _: st.integers(1, w.head_dim),
    "top_k": lambda w, _: st.integers(1, w.kv_len),
    "splits": lambda _, on: st.integers(1, -(-on["top_k"] // on["block_kv"])),
    "index_heads": lambda _w, _: st.integers(1, 4),
    "index_queries": lambda _w, _: st.integers(1, 5),
    "index_dim": lambda _w, _: st.integers(1, 4),
    "stride": lambda w, on: (
        st.sampled_from(divisors(w.q_len)) if on["fixed"] and on["second"] else st.integers(1, w.q_len)
    ),
    "summary": lambda _, on: st.integers(1, on["stride"]),
    "buckets": lambda w, _: st.integers(1, w.q_len // 2).map(lambda half: 2 * half),
    "rounds": lambda _w, _: st.integers(1, 3),
    "clusters": lambda w, _: st.integers(1, w.q_len),
    "compress_stride": lambda w, _: st.sampled_from(divisors(w.q_len)),
    "compress_block": lambda w, on: st.integers(1, w.q_len // on["compress_stride"]).map(
        lambda times: times * on["compress_stride"]
    ),
    "select_block": lambda w, on: st.sampled_from(
        [size for size in divisors(w.q_len) if size % on.get("compress_stride", 1) == 0]
    ),
    "selected": lambda _w, _: st.integers(1, 5),
    "local": lambda w, _: st.integers(1, w.q_len),
    "state": lambda _w, _: st.integers(1, 4),
    "expand": lambda _w, _: st.integers(1, 3),
}


def divisors(number: int) -> list[int]:
    """What divides a number."""
    return [size for size in range(1, number + 1) if number % size == 0]


@st.composite
def approximate_cases(draw: st.DrawFn, variant: Variant) -> Case:
    """A call that an approximation answers, with options that go together."""
    longest, least, most = draw(scales)
    found, name = algorithm(variant.algorithm), variant.algorithm
    mask = draw(st.sampled_from(found.masks))
    alone = (mask == "causal" and name not in CACHED) or name in SELF
    latent = "latent" in found.features and draw(st.booleans())
    q_len = draw(st.integers(2 if name == "reformer" else 1, longest))
    kv_heads, group = 1 if latent else draw(st.integers(1, 2)), 1 if name in UNGROUPED else draw(st.integers(1, 3))
    kv_len = q_len if alone else draw(st.integers(q_len if name == "loki" or mask == "causal" else 1, longest + 4))
    head_dim = draw(st.integers(1, 5))
    w = iomodel.Attention(
        batch=draw(st.integers(1, 2)),
        heads=kv_heads * group,
        kv_heads=kv_heads,
        q_len=q_len,
        kv_len=kv_len,
        head_dim=head_dim,
        value_dim=draw(st.integers(1, head_dim if latent else 5)),
        dtype=draw(dtypes),
        mask=mask,
        latent=latent,
    )
    tiles = {tile: draw(st.integers(least, most)) for tile in variant.tiles_under(mask)}
    chosen = dict(variant.options)
    for option, drawn in DRAWN_FOR.items():
        if option in found.options:
            chosen[option] = draw(drawn(w, {**chosen, **tiles}))
    chosen |= draw(as_written(variant, mask))
    return Case(name, w, tiles, chosen)


@st.composite
def cases(draw: st.DrawFn, variant: Variant, plain: bool = False) -> Case:
    if algorithm(variant.algorithm).approximates:
        return draw(approximate_cases(variant))
    longest, least, most = draw(scales)
    taken = algorithm(variant.algorithm).takes(variant.direction)
    options = {name: draw(DRAWN[type(default)]) for name, default in taken.items() if name not in variant.options}
    tiles = {name: draw(st.integers(least, most)) for name in variant.tiles}
    options |= {**variant.options, "packed": draw(st.booleans())}
    workload = draw(workloads(longest, variant.direction, None if plain else variant.without))
    if not plain:
        options |= draw(as_written(variant, workload.mask))
    if "value_slabs" in options:
        tiles["block_value"] = draw(st.integers(1, workload.value_dim + 2))
    if "splits" in options:
        options["splits"] = min(options["splits"], -(-workload.kv_len // tiles["block_kv"]))
    return Case(variant.algorithm, workload, tiles, options)


def switched_on(names: Iterable[str]) -> dict[str, Any]:
    """Options as written, each with the value that changes a count; of those that go apart, the first."""
    chosen = sorted(names)
    refused = {other for name, others in APART.items() if name in chosen for other in others}
    return {name: other_of(name) for name in chosen if name not in refused}


def as_written(variant: Variant, mask: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the options as written, in one of eight: each choice has formulas of its own, which take their time.

    `tests/laws/test_as_written.py` draws them in every example.
    """
    names = algorithm(variant.algorithm).written(variant.direction)
    if isinstance(mask, Tabulated):
        names = tuple(name for name in names if name not in BAND_ONLY)
    if not names:
        return st.just({})
    some = st.sets(st.sampled_from(names), min_size=1, max_size=3).map(switched_on)
    return st.one_of(*[st.just({})] * 7, some)


def fraction_of_examples(share: int) -> settings:
    """The profile's number of examples divided by `share`, for a test whose examples are slow: too slow to shrink.

    They are at least ten, or a third of a profile with few: such a test runs for many algorithms or masks.
    """
    phases, most = [Phase.explicit, Phase.reuse, Phase.generate], settings().max_examples
    return settings(max_examples=max(min(10, most // 3), most // share), phases=phases)


def at_most(examples: int) -> settings:
    """The profile's number of examples, but no more than these, for a test whose examples are slow."""
    return settings(max_examples=min(examples, settings().max_examples))


def one_in(number: int, whole: str = "dev") -> int:
    """Every how many cases of a long list the profile asks one: all of them under `whole` and deeper profiles."""
    return 1 if settings().max_examples >= settings.get_profile(whole).max_examples else number
