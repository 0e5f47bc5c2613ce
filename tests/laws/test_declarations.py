"""No one-step edit of a declaration goes unseen: it is refused, or some count leaves that of the reference kernel.

Edits are made of the plain nest, before the features of a call are put on, and of the nest with its features. A nest
of both directions is that of the one and that of the other (:mod:`tests.laws.test_sums`); they are edited apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import signature
from typing import Any
from zlib import crc32

import pytest
from sympy import Expr, Integer

import iomodel
from iomodel.algorithms import algorithm
from iomodel.counting import folds as counts
from iomodel.counting.kinds import mask_kind
from iomodel.nests.alphabet import NUMBERS
from iomodel.nests.features import dressed
from iomodel.nests.language import (
    Accumulate,
    Exp,
    Guard,
    Hold,
    Kernel,
    Load,
    Lookup,
    Loop,
    MatMul,
    Nest,
    Pointwise,
    Random,
    Tanh,
    loops,
    walk,
)
from iomodel.nests.rules import DeclarationError, check
from iomodel.nests.symbols import BY_NAME
from iomodel.testing.machine import Run
from iomodel.workloads.call import CACHE_ONLY
from tests.reference.masks import visible
from tests.support.edits import Edit, bodies, edits
from tests.support.numeric_view import NumericView, Point
from tests.support.strategies import VARIANTS, Variant, bounds, one_in, run

Attention, Window = iomodel.Attention, iomodel.Window
Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Shape:
    """A workload with a size for every tile there is; an algorithm takes those that it knows.

    `gemm` has a pair of tiles for each product, over again where there are more products.
    """

    workload: iomodel.Attention
    block_q: int
    block_kv: int
    gemm: Pairs = ((2, 2),)
    packed: bool = False
    dq: tuple[int, int] = (2, 3)
    options: Mapping[str, int] = field(default_factory=lambda: {"splits": 1, "dq_buffers": 1})

    def tiles(self, names: tuple[str, ...]) -> dict[str, int]:
        sizes = {
            "block_q": self.block_q,
            "block_kv": self.block_kv,
            "dq_block_q": self.dq[0],
            "dq_block_kv": self.dq[1],
        }
        for product in range(6):
            m, n = self.gemm[product % len(self.gemm)]
            sizes |= {f"gemm{product + 1}_m": m, f"gemm{product + 1}_n": n}
        return {name: sizes[name] for name in names}

    def seen(self) -> Any:
        """Which query sees which key."""
        given = {"left": None, "right": None, "align": "bottom-right"} | bounds(self.workload)
        return given["seen"] if "seen" in given else visible(self.workload.q_len, self.workload.kv_len, **given)


def call(q_len: int, kv_len: int, head_dim: int, value_dim: int, **more: Any) -> iomodel.Attention:
    return Attention(q_len=q_len, kv_len=kv_len, head_dim=head_dim, value_dim=value_dim, **more)


def decisive(product: int, pair: tuple[int, int]) -> Pairs:
    """Large tiles of one product, so that its kernel decides the footprint."""
    return tuple(pair if product == i else (1, 1) for i in range(6))


NARROW = Window(left=1, right=1, align="top-left")
SHARED = {"heads": 2, "kv_heads": 1}
SEVERAL = {"splits": 2, "dq_buffers": 2}
SHAPES = [
    # Causal with more queries than keys: the first query tile sees nothing. A GQA group is packed, or is not.
    Shape(call(7, 5, 3, 2, **SHARED, mask="causal"), 3, 2, ((4, 4),), packed=True),
    Shape(call(7, 5, 3, 2, **SHARED, mask="causal"), 2, 2, ((4, 2), (3, 1)), dq=(3, 2), options=SEVERAL),
    # Ragged on both axes.
    Shape(call(5, 7, 2, 3, heads=2), 2, 3, ((2, 3), (4, 2)), options={"splits": 3, "dq_buffers": 3}),
    # A window: the first key tiles are seen by nobody.
    Shape(call(4, 11, 2, 2, mask=Window(left=1, right=0)), 3, 2, ((1, 1),), dq=(1, 2)),
    # A window at the top left: the last query tiles, or the last key tiles, are idle.
    Shape(call(9, 4, 2, 2, mask=NARROW), 2, 2),
    Shape(call(4, 9, 2, 1, mask=NARROW, **SHARED), 3, 2, ((3, 3),), options=SEVERAL),
    # Each product in its turn decides the footprint of standard attention, in tiles and then whole; or a row does.
    Shape(call(3, 3, 1, 9), 2, 2, decisive(1, (3, 8))),
    Shape(call(3, 3, 9, 1), 2, 2, decisive(0, (3, 8))),
    Shape(call(8, 4, 1, 9), 2, 2, decisive(2, (8, 8))),
    Shape(call(8, 8, 1, 5), 2, 2, decisive(3, (8, 8))),
    Shape(call(4, 8, 9, 1), 2, 2, decisive(4, (8, 8))),
    Shape(call(8, 4, 9, 1), 2, 2, decisive(5, (8, 8))),
    Shape(call(8, 8, 1, 1), 2, 2, ((1, 1),)),
    # Rows of the key/value heads decide it where their gradients are summed.
    Shape(call(2, 2, 40, 1, **SHARED), 1, 1, ((1, 1),), dq=(1, 1), options=SEVERAL),
    Shape(call(2, 2, 1, 40, **SHARED), 1, 1, ((1, 1),), dq=(1, 1), options=SEVERAL),
    # The statistics of all rows would decide it, were they on chip at once.
    Shape(call(16, 2, 1, 1), 1, 1, dq=(1, 1)),
    # dQ is made by a pass of its own, whose tiles are the larger ones.
    Shape(call(9, 9, 2, 2, mask="causal"), 1, 1, dq=(6, 5)),
]
FEATURED = [
    Shape(
        call(7, 5, 3, 2, **SHARED, mask="causal", alibi=True, sinks=True, dropout=0.5),
        2,
        2,
        ((2, 3), (3, 1)),
        options=SEVERAL,
    ),
    Shape(call(7, 5, 3, 2, **SHARED, mask="causal", alibi=True, sinks=True, bias=True, softcap=1.0), 3, 2, packed=True),
    Shape(call(4, 9, 2, 1, mask=NARROW, bias=True, dropout=0.5), 2, 3, dq=(3, 2)),
    Shape(call(9, 4, 2, 1, mask=NARROW, bias=True, softcap=1.0, alibi=True), 2, 3, dq=(3, 2)),
    Shape(call(5, 7, 2, 3, heads=2, alibi=True, dropout=0.5, bias=True), 2, 3, ((2, 2), (4, 2))),
    Shape(call(5, 7, 2, 3, heads=2, sinks=True), 2, 3, options={"splits": 3}),
    Shape(call(5, 7, 2, 3, softcap=1.0), 2, 3),
    Shape(
        call(7, 5, 3, 2, **SHARED, mask="causal", kv_dtype="fp8", kv_scales="head"),
        2,
        2,
        ((2, 3), (3, 1)),
        options=SEVERAL,
    ),
    Shape(call(7, 5, 3, 2, **SHARED, mask="causal", kv_dtype="fp8", kv_scales="token"), 2, 2, ((2, 3), (3, 1))),
    Shape(call(9, 7, 3, 2, **SHARED, mask="causal", page_size=3), 2, 2, options=SEVERAL),
    Shape(call(4, 11, 3, 2, mask=Window(left=1, right=0), page_size=4), 3, 2),
    Shape(call(4, 11, 3, 2, mask=Window(left=1, right=0), alibi=True, dropout=0.5), 3, 2),
    Shape(call(4, 11, 3, 2, mask=Window(left=1, right=0), kv_scales="head"), 3, 2),
    Shape(call(7, 5, 3, 2, **SHARED, mask="causal", latent=True), 2, 2, ((2, 3), (3, 1)), options=SEVERAL),
    Shape(call(6, 6, 3, 2, mask=iomodel.Documents([2, 1, 3], causal=True), dropout=0.5), 2, 2, options={"splits": 3}),
    # The kernels that sinks and scales touch decide the footprint.
    Shape(call(2, 2, 9, 1, **SHARED, kv_scales="head", alibi=True, bias=True, sinks=True), 1, 1, decisive(0, (8, 8))),
    Shape(call(2, 2, 1, 9, **SHARED, kv_scales="head", dropout=0.5), 1, 1, decisive(1, (8, 8))),
    Shape(call(2, 9, 1, 9, **SHARED, kv_scales="token"), 1, 4, decisive(1, (8, 8))),
    Shape(call(4, 30, 1, 1, **SHARED, sinks=True), 1, 1, ((1, 1),), options={"splits": 30, "dq_buffers": 30}),
]


def shapes(variant: Variant) -> list[Shape]:
    """The shapes that a variant answers, in its direction."""
    found = []
    for shape in [*SHAPES, *FEATURED]:
        lacked = variant.without | (set(CACHE_ONLY) if variant.direction == "backward" else set())
        if not lacked & set(shape.workload.features):
            fields = {name: getattr(shape, name) for name in shape.__dataclass_fields__}
            workload = shape.workload.model_copy(update={"direction": variant.direction})
            found.append(Shape(**{**fields, "workload": workload}))
    return found


def sums(nest: Nest, view: NumericView) -> Iterator[tuple[str, Expr]]:
    """Every count of a nest that adds up over its statements."""
    for side, kinds in (("reads", counts.READS), ("writes", counts.WRITES)):
        moved: Counter[str] = Counter()
        for tensor, count in counts.moves(nest, view, kinds).items():
            moved[tensor.name] += count  # of a tensor that changes its dtype, or its place
        for name, count in moved.items():
            yield f"{side} {name}", count
    yield "atomics", counts.atomics(nest, view)
    yield "flops", counts.flops(nest, view)
    for name, kind in (("exps", Exp), ("tanhs", Tanh), ("randoms", Random)):
        yield name, counts.function_values(nest, view, kind)


def peaks(nest: Nest, view: NumericView) -> Iterator[tuple[str, Expr]]:
    """Every count that is a maximum."""
    yield "footprint", counts.footprint(nest, view)
    yield "footprint_bytes", counts.footprint(nest, view, view.size)
    yield "peak_hbm", counts.peak_hbm(nest, view)


Quantities = Callable[[Nest, NumericView], Iterator[tuple[str, Expr]]]


def expected(measured: Run, w: iomodel.Attention) -> dict[str, int]:
    return {
        **{f"reads {name}": count for name, count in measured.reads.items()},
        **{f"writes {name}": count for name, count in measured.writes.items()},
        **{name: getattr(measured, name) for name in ("atomics", "flops", "exps", "tanhs", "randoms")},
        "footprint": measured.sram_peak,
        "footprint_bytes": measured.sram_bytes(w.element_size, w.kv_element_size),
        "peak_hbm": measured.hbm_peak,
    }


@dataclass(frozen=True)
class Reference:
    """What the reference kernel counts at a shape."""

    shape: Shape
    view: NumericView
    kernel: Mapping[str, int]

    @property
    def features(self) -> tuple[str, ...]:
        return self.shape.workload.features

    def differs(self, nest: Nest, quantities: Quantities) -> bool:
        """Whether a nest with its features on counts anything else."""
        told = set()
        for name, count in quantities(nest, self.view):
            told.add(name)
            if count != self.kernel.get(name, 0):
                return True
        return quantities == sums and not {name for name, count in self.kernel.items() if count} - PEAKS <= told


PEAKS = {"footprint", "footprint_bytes", "peak_hbm"}


def differs(nest: Nest, kernels: Iterable[Reference], features: Iterable[str] | None = None) -> bool:
    """Whether a nest is refused, or counts otherwise than the reference kernel at one of its shapes.

    Dressed with the features of each shape, if it has none yet. The sums are told first: most edits show there.
    """
    if refused(nest):
        return True
    dress = lru_cache(maxsize=None)(lambda put_on: dressed(nest, put_on) if features is None else nest)
    return any(kernel.differs(dress(kernel.features), quantities) for quantities in (sums, peaks) for kernel in kernels)


def declared(variant: Variant) -> Nest:
    """The plain nest; options that are numbers stay symbols."""
    found = algorithm(variant.algorithm)
    numbers = {name: BY_NAME[name] for name in NUMBERS & found.options.keys()}
    return found.nest(variant.direction, masked=True, **variant.options, **numbers)


def depends_on_a_mask(variant: Variant) -> bool:
    """Whether a call without a mask has another nest."""
    found = algorithm(variant.algorithm)
    return "masked" in signature(found.declare if variant.direction == "forward" else found.backward).parameters


def edited(variant: Variant) -> list[Edit]:
    """All edits of the plain nest."""
    return _edits(declared(variant))


_edits = lru_cache(maxsize=4)(lambda nest: list(edits(nest)))


def references(variant: Variant) -> tuple[Reference, ...]:
    """The counts of the reference kernel at every shape of a variant."""
    return counted(variant.algorithm, variant.direction, tuple(variant.options.items()))


@lru_cache(maxsize=4)
def counted(name: str, direction: str, options: tuple[tuple[str, Any], ...]) -> tuple[Reference, ...]:
    variant, found = Variant(name, direction, dict(options)), []
    taken = algorithm(variant.algorithm).takes(variant.direction)
    for shape in shapes(variant):
        if shape.workload.mask == "full" and depends_on_a_mask(variant):
            continue
        tiles = shape.tiles(variant.tiles)
        numbers = {name: shape.options.get(name, 1) for name in NUMBERS & taken.keys()}
        options = {**variant.options, **numbers, "packed": shape.packed}
        measured = run(variant.algorithm, shape.workload, tiles, options)
        point = {**shape.workload.numbers, **tiles, **numbers}
        values = {BY_NAME[name]: Integer(n) for name, n in point.items()}
        at = Point(values, shape.seen(), shape.workload.page_size or 1)
        view = NumericView(mask_kind(shape.workload.mask), shape.packed, point=at)
        found.append(Reference(shape, view, expected(measured, shape.workload)))
    return tuple(found)


def refused(nest: Nest) -> bool:
    try:
        check(nest)
    except DeclarationError:
        return True
    return False


each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=str, scope="module")
"""Module scope runs all tests of a variant in a row, which share its counts and its edits."""
ONE_IN = one_in(10, "nightly")
"""Which share of the edits is judged: all of them at night, for one takes up to some tenths of a second."""


def some(every: Iterable[Edit]) -> Iterator[Edit]:
    """The edits to judge, always the same."""
    return (edit for edit in every if crc32(str(edit).encode()) % ONE_IN == 0)


@each_variant
def test_the_declaration_itself_differs_nowhere(variant: Variant) -> None:
    for reference in references(variant):
        assert not differs(declared(variant), [reference]), reference.shape


@each_variant
def test_every_edit_is_seen(variant: Variant) -> None:
    """Of the plain nest, features put on afterwards where a shape has them: a marker shows only there."""
    kernels = references(variant)
    assert [str(edit) for edit in some(edited(variant)) if not differs(edit.nest, kernels)] == []


@each_variant
def test_every_edit_of_a_feature_is_seen(variant: Variant) -> None:
    """Of what a feature adds or changes, wherever a shape has that feature."""
    kernels: dict[tuple[str, ...], list[Reference]] = {}
    for kernel in references(variant):
        kernels.setdefault(kernel.features, []).append(kernel)
    seen = set(map(str, edited(variant)))  # in the other test
    unseen = set()
    for features in filter(None, kernels):
        for edit in some(edits(dressed(declared(variant), features))):
            if str(edit) not in seen:
                found = seen if differs(edit.nest, kernels[features], features) else unseen
                found.add(str(edit))
    assert sorted(unseen - seen) == []


@each_variant
def test_every_statement_is_edited(variant: Variant) -> None:
    nest = declared(variant)
    every = edited(variant)
    kinds = Counter(edit.kind.partition(" into ")[0] for edit in every)
    leaves: list[Any] = [leaf for leaf, _ in walk(nest)]
    moves = [(leaf, path) for leaf, path in walk(nest) if hasattr(leaf, "tensor") and not isinstance(leaf, Hold)]
    assert kinds["flipped"] == sum(not isinstance(leaf, Lookup) for leaf, _ in moves)
    assert kinds["doubled"] == sum(not isinstance(leaf, Hold) for leaf in leaves)
    holds = kinds["dropped"] - kinds["doubled"]
    assert kinds["no longer kept"] == sum(len(kernel.keeps) for kernel in nest)
    assert 0 < holds <= kinds["of another width"] + holds <= 2 * sum(isinstance(leaf, Hold) for leaf in leaves)
    assert kinds["no more atomic"] + kinds["atomic"] == sum(isinstance(leaf, Accumulate) for leaf in leaves)
    turns = ((getattr(leaf, "after_first", None), getattr(leaf, "only_first", None)) for leaf in leaves)
    assert kinds["at every trip"] == sum(any(turn) for turn in turns)
    blocks: list[Any] = [path[-1] for _, path, _ in bodies(nest)]
    assert kinds["turned round"] == sum(isinstance(block, Guard) for block in blocks)
    masked: list[Any] = [path for _, path, _ in bodies(nest) if isinstance(path[-1], Loop) and path[-1].masked]
    assert kinds["unmasked"] == len(masked)
    assert kinds["up and down"] == sum(  # where a tile stays at the turn, as its tensor has no other axis of a loop
        any({*load.tensor.axes} & {*loops(path)} == {path[-1].axis} for load in path[-1].body if isinstance(load, Load))
        for path in masked
    )
    markers = [leaf for leaf in leaves if isinstance(leaf, Pointwise | MatMul)]
    assert kinds["hoisted"] >= sum(len(path) > 1 and isinstance(leaf, Load) for leaf, path in moves)
    assert kinds["doubled"] >= len(markers)
    assert all(edit.nest != nest for edit in every)
    assert {path[0] for _, path in walk(nest)} >= {
        block for block in blocks if isinstance(block, Kernel) and block.body
    }
