"""No one-step edit of a declaration goes unseen: it is refused, or some count leaves that of the reference kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from sympy import Expr, Integer

import iomodel
from iomodel import counts
from iomodel.algorithms import algorithm
from iomodel.counts import View, in_bytes
from iomodel.expressions import mask_kind
from iomodel.nest import DeclarationError, Hold, Load, Nest, Store, check, walk
from iomodel.symbols import BY_NAME
from tests.edits import Edit, edits
from tests.reference.machine import Run
from tests.strategies import VARIANTS, Variant, run

Attention, Window = iomodel.Attention, iomodel.Window


@dataclass(frozen=True)
class Shape:
    """A workload with a size for every tile there is; an algorithm takes those that it knows."""

    workload: iomodel.Attention
    block_q: int
    block_kv: int
    gemm: tuple[int, int, int, int]
    packed: bool = False

    def tiles(self, names: tuple[str, ...]) -> dict[str, int]:
        sizes = {"block_q": self.block_q, "block_kv": self.block_kv}
        sizes |= dict(zip(["gemm1_m", "gemm1_n", "gemm2_m", "gemm2_n"], self.gemm, strict=True))
        return {name: sizes[name] for name in names}


BAND = Window(left=1, right=1, align="top-left")
SHAPES = [
    # Causal with more queries than keys: the first query tile sees nothing. A GQA group is packed.
    Shape(
        Attention(q_len=7, kv_len=5, head_dim=3, value_dim=2, heads=2, kv_heads=1, mask="causal"), 3, 2, (4,) * 4, True
    ),
    Shape(Attention(q_len=7, kv_len=5, head_dim=3, value_dim=2, mask="causal"), 2, 2, (4, 2, 3, 1)),
    # Ragged on both axes.
    Shape(Attention(q_len=5, kv_len=7, head_dim=2, value_dim=3, heads=2), 2, 3, (2, 3, 4, 2)),
    # A window: the first key tiles are seen by nobody.
    Shape(Attention(q_len=4, kv_len=11, head_dim=2, value_dim=2, mask=Window(left=1, right=0)), 3, 2, (1,) * 4),
    # A window at the top left: the last query tiles, or the last key tiles, are idle.
    Shape(
        Attention(q_len=9, kv_len=4, head_dim=2, value_dim=2, mask=Window(left=1, right=1, align="top-left")),
        2,
        2,
        (2,) * 4,
    ),
    Shape(
        Attention(q_len=4, kv_len=9, head_dim=2, value_dim=1, mask=Window(right=1, align="top-left")), 3, 2, (3,) * 4
    ),
    # The second product decides the footprint of standard attention, then the first.
    Shape(Attention(q_len=3, kv_len=3, head_dim=1, value_dim=9), 2, 2, (1, 1, 3, 8)),
    Shape(Attention(q_len=3, kv_len=3, head_dim=9, value_dim=1), 2, 2, (3, 8, 1, 1)),
]


def quantities(nest: Nest, view: View) -> Iterator[tuple[str, Expr]]:
    """Every count of a nest, the cheap ones to tell apart first."""
    for side, kind in (("reads", Load), ("writes", Store)):
        for tensor, moved in counts.moves(nest, view, kind).items():
            yield f"{side} {tensor.name}", moved
    yield "flops", counts.flops(nest, view)
    yield "exps", counts.exps(nest, view)
    yield "footprint", counts.footprint(nest, view)
    yield "footprint_bytes", counts.footprint(nest, view, in_bytes)
    yield "peak_hbm", counts.peak_hbm(nest)


def expected(measured: Run, element_size: int) -> dict[str, int]:
    return {
        **{f"reads {name}": count for name, count in measured.reads.items()},
        **{f"writes {name}": count for name, count in measured.writes.items()},
        "flops": measured.flops,
        "exps": measured.exps,
        "footprint": measured.sram_peak,
        "footprint_bytes": measured.sram_bytes(element_size),
        "peak_hbm": measured.hbm_peak,
    }


def differs(nest: Nest, shape: Shape, tiles: Mapping[str, int], kernel: Mapping[str, int]) -> bool:
    """Whether the nest counts anything else than the reference kernel does."""
    values = {BY_NAME[name]: Integer(n) for name, n in {**shape.workload.numbers, **tiles}.items()}
    told = dict(quantities(nest, View(mask_kind(shape.workload.mask), shape.packed)))
    moved = {name for name, count in kernel.items() if count}
    return not moved <= told.keys() or any(
        formula.xreplace(values) != kernel.get(name, 0) for name, formula in told.items()
    )


def declared(variant: Variant) -> Nest:
    return algorithm(variant.algorithm).nest(**variant.options)


def references(variant: Variant) -> list[tuple[Shape, dict[str, int], dict[str, int]]]:
    found = []
    for shape in SHAPES:
        tiles = shape.tiles(variant.tiles)
        measured = run(variant.algorithm, shape.workload, tiles, {**variant.options, "packed": shape.packed})
        found.append((shape, tiles, expected(measured, shape.workload.element_size)))
    return found


def refused(nest: Nest) -> bool:
    try:
        check(nest)
    except DeclarationError:
        return True
    return False


each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=str)


@each_variant
def test_the_declaration_itself_differs_nowhere(variant: Variant) -> None:
    for shape, tiles, kernel in references(variant):
        assert not differs(declared(variant), shape, tiles, kernel), shape


@each_variant
def test_every_edit_is_seen(variant: Variant) -> None:
    kernels = references(variant)

    def seen(edit: Edit) -> bool:
        return refused(edit.nest) or any(differs(edit.nest, *reference) for reference in kernels)

    assert [str(edit) for edit in edits(declared(variant)) if not seen(edit)] == []


@each_variant
def test_every_statement_is_edited(variant: Variant) -> None:
    nest = declared(variant)
    kinds = Counter(edit.kind.partition(" into ")[0] for edit in edits(nest))
    leaves: list[Any] = [leaf for leaf, _ in walk(nest)]
    moves = sum(isinstance(leaf, Load | Store) for leaf in leaves)
    assert kinds["flipped"] == moves
    assert kinds["doubled"] == sum(not isinstance(leaf, Hold) for leaf in leaves)
    assert kinds["dropped"] == kinds["doubled"] + kinds["of another width"]
    inside_a_block = sum(isinstance(leaf, Load | Store) and len(path) > 1 for leaf, path in walk(nest))
    assert kinds["hoisted"] == inside_a_block
    assert kinds["of another width"] > 0
    assert all(edit.nest != nest for edit in edits(nest))
