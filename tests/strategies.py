"""Valid workloads, masks, tiles and options, small enough that a reference kernel runs in about a millisecond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from hypothesis import Phase, settings
from hypothesis import strategies as st

import iomodel
from iomodel.algorithms import algorithm
from iomodel.masks import MaskKind
from iomodel.workload import ELEMENT_SIZE, Mask
from tests.reference.machine import Run


@dataclass
class Tally:
    """How many shapes were compared with the reference kernels."""

    shapes: int = 0


@dataclass(frozen=True)
class Variant:
    """An algorithm under some of its options, with the tiles that it then takes."""

    algorithm: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tiles(self) -> tuple[str, ...]:
        return iomodel.expressions(self.algorithm, **self.options).tiles

    def __str__(self) -> str:
        return "-".join([self.algorithm, *(name if on else f"no_{name}" for name, on in self.options.items())])


def variants() -> list[Variant]:
    """Every algorithm under every combination of its switches; options that are no switch keep to `cases`."""
    found = []
    for name in iomodel.list_algorithms():
        switches = [option for option, default in algorithm(name).options.items() if isinstance(default, bool)]
        for chosen in product([True, False], repeat=len(switches)):
            found.append(Variant(name, dict(zip(switches, chosen, strict=True))))
    return found


VARIANTS = variants()

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
    kernel = import_module(f"tests.reference.{name}")
    told = {option: value for option, value in options.items() if option != algorithm(name).tiled_by}
    measured: Run = kernel.run(
        np.ones((w.batch, w.heads, w.q_len, w.head_dim)),
        np.ones((w.batch, w.kv_heads, w.kv_len, w.head_dim)),
        np.ones((w.batch, w.kv_heads, w.kv_len, w.value_dim)),
        **bounds(w.mask),
        **tiles,
        **told,
    )
    return measured


def bounds(mask: Mask) -> dict[str, Any]:
    """A mask as the reference kernels take it."""
    if isinstance(mask, iomodel.Window):
        return {"left": mask.left, "right": mask.right, "align": mask.align}
    return {"right": 0} if mask == "causal" else {}


sides = st.none() | st.integers(0, 8)
alignments = st.sampled_from(["bottom-right", "top-left"])
windows = st.builds(iomodel.Window, left=sides, right=sides, align=alignments)
named: list[Mask] = ["full", "causal"]
masks: st.SearchStrategy[Mask] = st.sampled_from(named) | windows
dtypes = st.sampled_from(sorted(ELEMENT_SIZE))
widths = st.integers(1, 5)
mask_kinds = st.builds(MaskKind, left=st.booleans(), right=st.booleans(), top_left=st.booleans()) | st.builds(
    MaskKind, left=st.booleans(), right=st.just(True), causal=st.just(True), top_left=st.booleans()
)

# Mostly short; at times longer, with tiles to match. A tile may be larger than the sequence.
scales = st.sampled_from([(14, 1, 16)] * 3 + [(40, 6, 48)])


@st.composite
def workloads(draw: st.DrawFn, longest: int = 14) -> iomodel.Attention:
    kv_heads = draw(st.integers(1, 2))
    return iomodel.Attention(
        batch=draw(st.sampled_from([1, 1, 1, 2])),
        heads=kv_heads * draw(st.integers(1, 3)),
        kv_heads=kv_heads,
        q_len=draw(st.integers(1, longest)),
        kv_len=draw(st.integers(1, longest)),
        head_dim=draw(widths),
        value_dim=draw(widths),
        dtype=draw(dtypes),
        mask=draw(masks),
    )


@st.composite
def cases(draw: st.DrawFn, variant: Variant) -> Case:
    longest, least, most = draw(scales)
    declared = algorithm(variant.algorithm).options
    options = {name: draw(DRAWN[type(default)]) for name, default in declared.items() if name not in variant.options}
    tiles = {name: draw(st.integers(least, most)) for name in variant.tiles}
    options |= {**variant.options, "packed": draw(st.booleans())}
    return Case(variant.algorithm, draw(workloads(longest)), tiles, options)


def fraction_of_examples(share: int) -> settings:
    """The profile's number of examples divided by `share`, for a test whose examples are slow: too slow to shrink."""
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    return settings(max_examples=max(10, settings().max_examples // share), phases=phases)
