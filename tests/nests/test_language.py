"""Folding a nest symbolically counts what running it counts, for nests that no algorithm has."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Expr, Integer, Min, Symbol, ceiling

import iomodel
from iomodel.algorithms import algorithm
from iomodel.nests.alphabet import (
    TILES,
)
from iomodel.nests.features import FEATURES
from iomodel.nests.language import (
    Accumulate,
    Axis,
    Cut,
    DType,
    Exp,
    Fill,
    Hold,
    Idle,
    Kernel,
    Live,
    Load,
    Lookup,
    Loop,
    MatMul,
    Nest,
    Per,
    Piece,
    Pointwise,
    Random,
    Sight,
    Statement,
    Store,
    Tanh,
    Tensor,
    When,
    rebuilt,
)
from iomodel.nests.rules import DeclarationError, check
from iomodel.nests.symbols import (
    BY_NAME,
    B,
    B_c,
    B_r,
    G,
    H,
    H_k,
    H_kv,
    N,
    N_k,
    N_q,
    W_l,
    W_r,
    b_kv,
    d,
    d_v,
    e,
    m_1,
    m_2,
    n_1,
    n_dQ,
    p,
    s,
)
from iomodel.nests.tensors import block_table, depth, grouped, head, key, query, slab, split, value
from tests.support.edits import bodies as bodies_of
from tests.support.edits import with_body
from tests.support.enumeration import with_counts
from tests.support.inside import CACHE_ONLY, Compiled, Count, FormulaKind, MaskKind, View, declared, kind_of
from tests.support.inside import folds as counts
from tests.support.interpreter import Machine
from tests.support.strategies import APPROXIMATE, cases, fraction_of_examples, mask_kinds

spare = Axis("spare", N)  # of the same kind as the others, but in no attention tensor
AXES = (query, key, depth, value, spare)
UNWALKED = (head, slab, split)  # walked by none of these loops, but for `split`
PAIR = (query, key)  # what a mask binds
TILE = {query: B_r, key: B_c, depth: m_1, value: n_1, spare: m_2}
LENGTH = {N_q, N_k, d, d_v, N}
CONDITIONS: list[Expr] = [grouped, Min(1, s - 1)]

axis_lists = st.lists(st.sampled_from(AXES * 2 + UNWALKED), unique=True, max_size=3).map(tuple)
cut_lists = st.lists(st.sampled_from(AXES), unique=True, max_size=3).map(tuple)
# Weights are of linear layers: an attention call says nothing of their width.
dtypes: st.SearchStrategy[DType] = st.sampled_from(sorted({*get_args(DType)} - {"weight", "out"}))


@dataclass(frozen=True)
class Scene:
    """A nest, how it is read, and the numbers for its symbols; `shown` is what a tabulated mask shows."""

    nest: Nest
    kind: MaskKind
    packed: bool
    values: Mapping[Symbol, int]
    shown: int = 0

    def visible(self, left: bool = True, more: int = 0) -> np.ndarray:
        """Which query sees which key, element by element; and so many rows after the last query."""
        q_len, kv_len = self.values[N_q], self.values[N_k]
        if self.kind.tabulated:
            return np.random.default_rng(self.shown).random((q_len, kv_len)) < (self.shown % 5) / 8
        offset = 0 if self.kind.top_left else kv_len - q_len
        distance = np.arange(kv_len)[None, :] - np.arange(q_len + more)[:, None] - offset
        visible = np.ones(distance.shape, dtype=bool)
        if self.kind.left and left:
            visible &= distance >= -self.values[W_l]
        if self.kind.right:
            visible &= distance <= (0 if self.kind.causal else self.values[W_r])
        return visible

    def counted(self) -> dict[str, Any]:

        def seen(left: bool = True, more: int = 11) -> np.ndarray:
            visible = self.visible(left, more)
            return np.repeat(visible, self.values[G], axis=0) if self.packed else visible

        machine = Machine(self.values, seen(more=0), self.packed, sighted=seen)
        machine.run(self.nest)
        elements, size = machine.peak_hbm(self.nest)
        return +machine.counters | {
            "footprint": max(elements for elements, _ in machine.live),
            "footprint_bytes": max(size for _, size in machine.live),
            "peak_hbm": elements,
            "peak_hbm_bytes": size,
        }

    def formulas(self) -> dict[str, Expr]:
        view = View(self.kind, self.packed)
        found: dict[str, Expr] = {}
        for side, kinds in (("reads", counts.READS), ("writes", counts.WRITES)):
            for tensor, moved in counts.moves(self.nest, view, kinds).items():
                found[f"{side} {tensor.name}"] = found.get(f"{side} {tensor.name}", Integer(0)) + moved
        return found | {
            "atomics": counts.atomics(self.nest, view),
            "flops": counts.flops(self.nest, view),
            **{kind.__name__: counts.function_values(self.nest, view, kind) for kind in (Exp, Tanh, Random)},
            "footprint": counts.footprint(self.nest, view),
            "footprint_bytes": counts.footprint(self.nest, view, counts.in_bytes),
            "peak_hbm": counts.peak_hbm(self.nest, view),
            "peak_hbm_bytes": counts.peak_hbm(self.nest, view, counts.in_bytes),
        }

    def folded(self) -> dict[str, Any]:
        formulas = self.formulas()
        if any(formula.has(Count) for formula in formulas.values()):
            point = {symbol: Integer(value) for symbol, value in self.values.items()}
            at = (formula.xreplace(point) for formula in formulas.values())
            found = [int(with_counts(formula, self.visible(), self.values[p], self.visible)) for formula in at]
        else:
            found = list(Compiled(list(formulas.values()), tuple(self.values)).scalars(*self.values.values()))
        told = dict(zip(formulas, found, strict=True))
        peaks = {name: count for name, count in told.items() if name.startswith(("footprint", "peak"))}
        return {name: count for name, count in told.items() if count} | peaks


@dataclass(frozen=True)
class Around:
    """What is around a statement that is to be drawn: what it may speak of."""

    tensors: list[Tensor]
    condition: Expr
    held: set[Tensor]  # those with a buffer; it learns of those declared in this body
    walked: tuple[Axis, ...] = ()
    masked: Axis | None = None
    guarded: bool = False  # inside the masked loop: then no load waits for its first trip
    cut: bool = False
    idle: bool = False

    def turn(self, draw: st.DrawFn, tensor: Tensor) -> Axis | None:
        """Draw the axis whose first trip a move of a tensor waits for or is at: of the masked loop, or around it."""
        axes: list[Axis] = [] if self.masked is None or self.guarded else [self.masked]
        if axes and self.walked in ((query, key), (key, query)) and not (self.cut or self.idle):
            axes = [*self.walked]
        still = [axis for axis in axes if not {axis, *([head] if axis == query else [])} & {*tensor.axes}]
        return draw(st.sampled_from([None, *still]))

    def inside(self, axis: Axis, bound: bool) -> Around:
        masked = axis if bound else self.masked
        guarded = self.guarded and not bound
        return replace(self, held=set(self.held), walked=(*self.walked, axis), masked=masked, guarded=guarded)

    def behind(self) -> Around:
        """The same body, behind a guard."""
        return replace(self, guarded=True)

    def in_pieces(self) -> Around:
        """The body of a cut."""
        return replace(self, held=set(self.held), cut=True)

    def cuttable(self) -> list[Axis]:
        """What a further loop may walk; a partition shares out whole tiles of keys, so it is outside them."""
        free = [axis for axis in AXES if axis not in self.walked]
        if self.cut:
            return free
        if split not in self.walked and key in free and query in self.walked and self.masked is None:
            free.append(split)
        return free


LEAVES = ["load", "load", "hold", "store", "fill", "accumulate", "lookup", "matmul", "function"]
PLAIN = ["load", "hold", "store", "matmul", "function"]


def padded(tensor: Tensor) -> st.SearchStrategy[tuple[Axis, ...]]:
    """Axes whose tiles are moved whole: mostly none."""
    return st.sampled_from([(), (), (), *((axis,) for axis in tensor.axes), tensor.axes])


@st.composite
def leaves(draw: st.DrawFn, around: Around) -> Statement:
    """A statement without a body."""
    tensors, held = st.sampled_from(around.tensors), around.held
    buffers = st.sampled_from(sorted(held, key=lambda tensor: tensor.name)) if held else tensors
    kind = draw(st.sampled_from(LEAVES))
    match kind if held or kind not in {"store", "accumulate"} else "load":
        case "load":
            tensor = draw(tensors)
            waits, only = draw(st.permutations([around.turn(draw, tensor), None]))
            held.add(tensor)
            return Load(tensor, waits, draw(padded(tensor)), draw(st.booleans()), only_first=only)
        case "hold":
            tensor = draw(tensors)
            held.add(tensor)
            return Hold(tensor, draw(st.none() | dtypes))
        case "store":
            source = draw(buffers)
            tensor = draw(st.sampled_from([source, draw(tensors)]))
            return Store(tensor, source, draw(padded(tensor)), only_first=around.turn(draw, tensor))
        case "accumulate":
            within = (slab,) if draw(st.booleans()) else ()
            return Accumulate(draw(tensors), draw(buffers), draw(st.booleans()), within)
        case "fill":
            tensor = draw(tensors)
            return Fill(tensor, draw(padded(tensor)))
        case "lookup" if not around.cut and (split not in around.walked or key in around.walked):
            return Lookup(block_table)
        case "matmul":
            return MatMul(*draw(st.permutations(AXES))[:3])
    function: type[Pointwise] = draw(st.sampled_from([Exp, Tanh, Random]))
    return function(*draw(axis_lists))


@st.composite
def bodies(draw: st.DrawFn, around: Around) -> list[Statement]:
    """Statements in a row."""
    body: list[Statement] = []
    walked = around.walked
    for _ in range(draw(st.integers(1, 3))):
        kinds = ["leaf"] * 5 + ["when"]
        if not (around.cut or around.masked or around.guarded or {query, key, split} & set(walked)):
            kinds += ["cut"]
        if len(walked) < 4:
            kinds += ["loop"] * 4 + (["live", "idle"] if walked else [])
        match draw(st.sampled_from(kinds)):
            case "leaf":
                body.append(draw(leaves(around)))
            case "cut":
                changed = draw(st.lists(pieces if depth not in walked else shallow, min_size=1, max_size=3))
                body.append(Cut(changed, draw(bodies(around.in_pieces()))))
            case "when":
                body.append(When(around.condition, draw(bodies(around)), draw(st.booleans())))
            case "live" | "idle" as kind:
                # A guard speaks of a whole axis: what a part of an axis shows is only asked around masked loops.
                known = [axis for axis in (*PAIR * 3, *AXES) if split not in walked or axis != key or key in walked]
                axis = draw(st.sampled_from(known))
                behind = replace(around.behind(), idle=around.idle or kind == "idle")
                body.append((Live if kind == "live" else Idle)(axis, draw(bodies(behind))))
            case "loop":
                free = around.cuttable()
                axis = draw(st.sampled_from([*free, *(axis for axis in (*PAIR * 3, split) if axis in free)]))
                if axis == split:
                    body.append(Loop(split, Integer(1), draw(parts(around.inside(split, False)))))
                    continue
                whole = axis == key and split in walked
                tile = B_c if whole else draw(st.sampled_from([TILE[axis], TILE[axis], Integer(1), Integer(3)]))
                bound = bool(walked) and around.masked is None and (whole or draw(st.booleans()))
                body.append(Loop(axis, tile, draw(bodies(around.inside(axis, bound))), masked=bound))
    return body


SIZES = [Integer(1), Integer(5), N_q, N_k, B_r, ceiling(N_q / 2), ceiling(N_k / B_c) + 1]


def in_pieces(**more: Symbol) -> st.SearchStrategy[Piece]:
    """Pieces with lengths, and perhaps other sizes, of their own."""
    size = st.sampled_from(SIZES)
    return st.builds(
        Piece,
        st.sampled_from([Integer(0), Integer(1), Integer(2), N, ceiling(N_q / B_r) - 1]),
        st.fixed_dictionaries({N_q: size, N_k: size}, optional=dict.fromkeys([W_l, *more.values()], size)),
        st.sampled_from(["full", "causal", "window"]),
    )


pieces, shallow = in_pieces(depth=d), in_pieces()


@st.composite
def parts(draw: st.DrawFn, around: Around) -> list[Statement]:
    """What is done in each part of the keys, behind a guard or not."""
    inner = around.inside(key, True)
    loop = Loop(key, B_c, draw(bodies(inner)), masked=True)
    body = [draw(leaves(around)), loop, draw(leaves(around))]
    choices = [body, [Live(key, body)], [body[0], Live(key, [loop, body[2]])], [Live(split, body)]]
    return draw(st.sampled_from([*choices, [Live(split, [body[0]]), Live(key, [loop]), Live(split, [body[2]])]]))


@st.composite
def scenes(draw: st.DrawFn, exact: bool = False) -> Scene:
    """Draw a nest with its numbers; no loop skips less than the mask allows if sights are `exact`."""
    tabulated = draw(st.integers(0, 3)) == 0
    kind = MaskKind(tabulated=True) if tabulated else draw(mask_kinds)
    pers: st.SearchStrategy[Per] = st.sampled_from(get_args(Per))
    tensors = []
    for i in range(draw(st.integers(1, 5))):
        axes = draw(axis_lists)
        paged = key in axes and not tabulated and draw(st.booleans())
        tensors.append(Tensor(f"T{i}", axes, draw(dtypes), draw(pers), paged, draw(st.booleans())))
    condition = draw(st.sampled_from(CONDITIONS))
    pers_of_kernels: list[Per] = ["head", "head", "kv_head", "key_head", "call", "batch"]
    launched = st.sampled_from(pers_of_kernels)
    kernels = [
        Kernel(
            f"kernel {i}",
            draw(bodies(Around(tensors, condition, set()))),
            draw(launched),
            tuple(draw(st.lists(st.sampled_from(tensors), max_size=1))),
        )
        for i in range(draw(st.integers(1, 3)))
    ]
    nest = tuple(kernels)
    if tabulated:
        nest = tuple(kernel.with_body(rebuilt(kernel.body, without_pages)) for kernel in nest)
    elif draw(st.booleans()):
        nest = clipped(nest)
    if not tabulated and draw(st.booleans()):
        nest = serpentine(nest)
    if not exact and draw(st.integers(0, 3)) == 0:
        nest = tuple(kernel.with_body(rebuilt(kernel.body, left_unskipped)) for kernel in nest)
    return Scene(nest, kind, draw(st.booleans()), draw(points()), draw(st.integers(0, 99)))


def clipped(nest: Nest) -> Nest:
    """Every load of the tile of a masked loop stops after the last position that is seen."""

    def inside(axis: Axis) -> Any:
        def change(statement: Statement) -> tuple[Statement, ...]:
            axes = statement.tensor.axes if isinstance(statement, Load) else ()
            fits = isinstance(statement, Load) and axis in axes and not {query, key} <= {*axes}
            return (replace(statement, clipped=True),) if fits else (statement,)

        return change

    def change(statement: Statement) -> tuple[Statement, ...]:
        if isinstance(statement, Loop) and statement.masked:
            return (statement.with_body(rebuilt(statement.body, inside(statement.axis))),)
        return (statement,)

    return tuple(kernel.with_body(rebuilt(kernel.body, change)) for kernel in nest)


def serpentine(nest: Nest) -> Nest:
    """Every masked loop that may walk backwards at every second tile."""
    for place, _, body in list(bodies_of(nest)):
        for i, statement in enumerate(body):
            if not (isinstance(statement, Loop) and statement.masked):
                continue

            def turned(here: tuple[Statement, ...], i: int = i) -> tuple[Statement, ...]:
                return (*here[:i], replace(here[i], serpentine=True), *here[i + 1 :])

            changed = with_body(nest, place, turned)
            try:
                check(changed)
            except DeclarationError:
                continue
            nest = changed
    return nest


def left_unskipped(statement: Statement) -> tuple[Statement, ...]:
    """A window that skips nothing at its left side."""
    sighted = isinstance(statement, Loop | Live | Idle)
    return (replace(statement, sight=Sight(left=False)) if sighted else statement,)


def without_pages(statement: Statement) -> tuple[Statement, ...]:
    """No call has both pages and a mask given by data."""
    return () if isinstance(statement, Lookup) else (statement,)


@st.composite
def points(draw: st.DrawFn) -> dict[Symbol, int]:
    values = {symbol: draw(st.integers(1, 9)) for symbol in sorted(LENGTH, key=str)}
    values |= {tile: draw(st.integers(1, 11)) for tile in TILE.values()}
    values |= {W_l: draw(st.integers(0, 6)), W_r: draw(st.integers(0, 6)), p: draw(st.integers(1, 7))}
    values |= {s: draw(st.integers(1, 4)), n_dQ: draw(st.integers(1, 3))}
    values |= {e: draw(st.sampled_from([1, 2, 4])), b_kv: draw(st.sampled_from([32, 64, 128]))}
    group, kv_heads = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    return values | {
        B: draw(st.integers(1, 2)),
        H: group * kv_heads,
        H_kv: kv_heads,
        G: group,
        H_k: draw(st.integers(1, 3)),
    }


@given(scene=scenes())
def test_folding_a_nest_counts_what_running_it_counts(scene: Scene) -> None:
    check(scene.nest)
    assert scene.folded() == scene.counted()


WAYS = [(name, way) for name in iomodel.list_algorithms() for way in algorithm(name).directions]


@st.composite
def declarations(draw: st.DrawFn, name: str, way: str) -> Scene:
    """The nest of an algorithm, with some features of a call on it."""
    found = algorithm(name)
    options = {option: draw(st.booleans()) for option, default in found.takes(way).items() if isinstance(default, bool)}
    options |= {option: 1 for option in found.takes(way) if option not in options}  # a symbol in the nest
    lacked = frozenset().union(*found.without.values(), CACHE_ONLY if way != "forward" else ())
    known = sorted(FEATURES.keys() - lacked)
    features = draw(st.sets(st.sampled_from(known), max_size=4)) if known else set()
    kind = MaskKind(tabulated=True) if draw(st.booleans()) and "paged" not in features else draw(mask_kinds)
    nest = declared(found, FormulaKind(kind, way, tuple(sorted(features))), options)
    values = draw(points()) | {entry.symbol: draw(st.integers(1, 11)) for entry in TILES}
    packed = bool(options.get("packed")) if way == "both" else draw(st.booleans())  # both passes are declared for one
    return Scene(nest, kind, packed, values, draw(st.integers(0, 99)))


@st.composite
def approximate(draw: st.DrawFn, name: str) -> Scene:
    """The nest of an approximation at a call that it answers: its sizes must go together."""
    case = draw(st.sampled_from([variant for variant in APPROXIMATE if variant.algorithm == name]).flatmap(cases))
    kind = kind_of(case.workload)
    nest = declared(algorithm(name), kind, case.options)
    point = {**case.workload.numbers, **case.tiles, **case.options}
    numbers = {BY_NAME[field]: value for field, value in point.items() if field in BY_NAME}
    return Scene(nest, kind.mask, False, {**draw(points()), **numbers})


@pytest.mark.parametrize(("name", "way"), WAYS)
@fraction_of_examples(4)
@given(data=st.data())
def test_folding_a_declaration_counts_what_running_it_counts(name: str, way: str, data: st.DataObject) -> None:
    """In both directions too, which no reference kernel runs."""
    scene = data.draw(approximate(name) if algorithm(name).approximates else declarations(name, way))
    assert scene.folded() == scene.counted()


rows, keys, wide = Tensor("rows", (query,)), Tensor("keys", (key,)), Tensor("wide", (query, key))
matrix = Tensor("matrix", (query, depth))
cached = Tensor("cached", (key, depth), paged=True)
slabs = Tensor("slabs", (slab, query), "fp32")
partial = Tensor("partial", (split, query), "fp32")
ahead = Tensor("ahead", (head,), per="heads")
by_head = Tensor("by_head", (head, query))


def one(*body: Statement) -> Nest:
    return (Kernel("only", body),)


CORNERS: dict[str, Nest] = {
    "a buffer declared after the loop that uses it": one(Loop(query, B_r, [Load(keys)]), Load(keys)),
    "a narrower buffer of the same tensor inside": one(Loop(query, B_r, [Load(rows)]), Hold(rows, "fp32")),
    "a masked loop around the loop it would pair with": one(
        Loop(depth, m_1, [Loop(key, B_c, [Loop(query, B_r, [Load(rows)])], masked=True)])
    ),
    "a guard around the loop it would pair with": one(Loop(depth, m_1, [Live(key, [Loop(query, B_r, [Load(rows)])])])),
    "a guard inside a masked loop": one(Loop(query, B_r, [Loop(key, B_c, [Live(key, [Load(keys)])], masked=True)])),
    "a guard outside a masked loop": one(Loop(query, B_r, [Live(key, [Loop(key, B_c, [Load(wide)], masked=True)])])),
    "a guard on either axis": one(
        Loop(query, B_r, [Live(key, [Loop(key, B_c, [Live(query, [Load(wide), Load(rows)])])])])
    ),
    "a guard twice": one(Loop(query, B_r, [Live(key, [Live(key, [Load(rows), Exp(key)])])])),
    "a masked loop by another way round": one(
        Loop(key, B_c, [Loop(value, n_1, [Loop(query, B_r, [Load(rows)], True)])])
    ),
    "an idle guard around what is live": one(
        Loop(query, B_r, [Idle(key, [Loop(key, B_c, [Load(wide)], masked=True)])])
    ),
    "idle and live at once": one(Loop(query, B_r, [Live(key, [Idle(key, [Load(rows)]), Load(keys)])])),
    "idle where no tile does the seeing": one(Loop(depth, m_1, [Idle(key, [Load(rows)]), Idle(depth, [Load(keys)])])),
    "a first trip in a loop inside": one(
        Loop(query, B_r, [Loop(key, B_c, [Loop(depth, m_1, [Load(rows, after_first=key)])], masked=True)])
    ),
    "the first visit of a query tile": one(
        Loop(
            key,
            B_c,
            [
                Live(
                    query,
                    [
                        Loop(
                            query,
                            B_r,
                            masked=True,
                            body=[
                                Load(rows, only_first=key),
                                Load(rows, after_first=key),
                                Store(rows, only_first=key),
                            ],
                        )
                    ],
                )
            ],
        )
    ),
    "the pages of a stationary key tile": one(
        Loop(key, B_c, [Lookup(block_table), Live(query, [Lookup(block_table)]), Idle(query, [Lookup(block_table)])])
    ),
    "the pages of the keys that a query tile sees": one(
        Loop(
            query,
            B_r,
            [
                Live(key, [Loop(key, B_c, [Lookup(block_table)])]),
                Loop(key, B_c, [Lookup(block_table)], masked=True),
            ],
        )
    ),
    "pages whose last tile is short": one(Loop(query, B_r, [Loop(key, B_c, [Load(cached)], masked=True)])),
    "keys up and down": one(
        Loop(query, B_r, [Loop(key, B_c, [Load(keys), Load(cached), Load(rows)], masked=True, serpentine=True)])
    ),
    "keys up and down, behind a guard and within columns": one(
        Loop(
            depth,
            m_1,
            [
                Loop(
                    query,
                    B_r,
                    [
                        Live(
                            key, [Loop(key, B_c, [Load(cached), Load(wide), Load(ahead)], masked=True, serpentine=True)]
                        )
                    ],
                )
            ],
        )
    ),
    "queries up and down": one(
        Loop(key, B_c, [Loop(query, B_r, [Load(rows), Load(keys), Load(by_head)], masked=True, serpentine=True)])
    ),
    "columns up and down, in padded tiles of the rows around": one(
        Loop(query, B_r, [Loop(depth, m_1, [Load(matrix, padded=(query,))], masked=True, serpentine=True)])
    ),
    "whole tiles shorter than the pages around them": one(Loop(key, B_c, [Load(cached, padded=(key,))])),
    "a sum in one of several slabs": one(
        Loop(
            query,
            B_r,
            [Hold(rows), Accumulate(slabs, held=rows, within=(slab,)), Accumulate(slabs, rows, atomic=False)],
        )
    ),
    "keys dealt out in parts": one(
        Loop(
            query,
            B_r,
            [
                Loop(
                    split,
                    Integer(1),
                    [
                        Live(key, [Load(rows), Loop(key, B_c, [Load(keys), Exp(query, key)], masked=True)]),
                        Store(partial, held=rows),
                    ],
                ),
            ],
        )
    ),
    "one head of a packed row": one(
        Load(ahead), Loop(query, Integer(1), [Load(ahead)]), Loop(query, B_r, [Load(ahead)])
    ),
    "heads that share keys": (
        Kernel("each", [Hold(rows), When(grouped, [Store(rows)]), When(grouped, [Fill(keys)], unless=True)]),
        Kernel("their sum", [When(grouped, [Loop(query, B_r, [Load(rows)]), Fill(keys)])], per="kv_head"),
    ),
    "one key at a time": one(Loop(key, Integer(1), [Loop(query, B_r, [Load(rows), Load(keys)], masked=True)])),
    "one query at a time": one(Loop(query, Integer(1), [Loop(key, B_c, [Load(rows), Load(keys)], masked=True)])),
    "an input that is written later": (
        Kernel("first", [Load(wide), Hold(rows), Store(rows)]),
        Kernel("second", [Load(rows)]),
        Kernel("third", [Hold(wide), Store(wide)]),
    ),
    "a result of the first kernel stays": (
        Kernel("first", [Hold(wide), Store(wide)]),
        Kernel("second", [Load(rows), Hold(keys), Store(keys)]),
    ),
    "scratch that is read by two kernels": (
        Kernel("first", [Hold(wide), Store(wide)]),
        Kernel("second", [Load(wide)]),
        Kernel("third", [Load(wide), Hold(keys), Store(keys)]),
        Kernel("fourth", [Hold(rows), Store(rows)]),
    ),
    "scratch that is written, read and gone": (
        Kernel("first", [Hold(wide), Store(wide)]),
        Kernel("second", [Load(wide), Store(rows, held=wide)]),
        Kernel("third", [Load(rows), Hold(keys), Store(keys)]),
    ),
}


@pytest.mark.parametrize("name", CORNERS)
@fraction_of_examples(8)
@given(kind=mask_kinds, packed=st.booleans(), values=points())
def test_corners(name: str, kind: MaskKind, packed: bool, values: dict[Symbol, int]) -> None:
    check(CORNERS[name])
    scene = Scene(CORNERS[name], kind, packed, values)
    assert scene.folded() == scene.counted()


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ([Load(rows, after_first=depth)], "skips the first trip, but of a loop that is not masked"),
        ([Load(keys, after_first=key)], "its tile changes at every trip"),
        ([Live(query, [Load(rows, after_first=key)])], "inside a guard"),
        ([Load(rows, only_first=query)], "has only the first trip, but its tile changes at every trip"),
        ([Loop(depth, m_1, [Load(keys, after_first=query)])], "of a loop that is not masked"),
    ],
)
def test_a_first_trip_that_no_fold_knows_is_refused(inside: list[Statement], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        check(one(Loop(query, B_r, [Loop(key, B_c, inside, masked=True)])))


def test_the_heads_of_packed_queries_change_at_every_trip() -> None:
    with pytest.raises(DeclarationError, match="its tile changes at every trip"):
        check(one(Loop(key, B_c, [Loop(query, B_r, [Load(ahead, after_first=query)], masked=True)])))


HALVES = (Piece(Integer(2), {N_q: ceiling(N_q / 2)}, "full"),)
BROKEN: list[tuple[Nest, str]] = [
    (one(Loop(query, B_r, [Loop(query, B_r, [Load(rows)])])), "in another loop over the same axis"),
    (one(Loop(key, B_c, [Load(keys)], masked=True)), "needs an enclosing loop over the other axis"),
    (one(Live(key, [Load(rows)])), "needs an enclosing loop over the other axis"),
    (
        one(Loop(query, B_r, [Loop(key, B_c, [Loop(depth, n_1, [Load(wide)], masked=True)], masked=True)])),
        "a masked loop is nested in another",
    ),
    (one(Loop(query, B_r, [Cut(HALVES, [Load(keys)])])), "a cut changes N_q, used by an enclosing loop"),
    (one(Cut(HALVES, [Cut(HALVES, [Load(keys)])])), "a cut is nested in another cut"),
    (one(Loop(query, B_r, [Live(key, [Cut(HALVES, [Load(keys)])])])), "a cut is nested in another cut, a guard"),
    (one(Loop(query, B_r, [Store(rows)])), "is stored but not held in a buffer"),
    (one(Loop(query, B_r, [Loop(key, B_c, [Load(keys)], serpentine=True)])), "over key is not masked"),
    (
        one(Loop(query, B_r, [Loop(depth, m_1, [Loop(key, B_c, [Load(keys)], True, serpentine=True)])])),
        "not directly in the loop over the other axis of the mask",
    ),
    (
        one(Loop(query, B_r, [Idle(key, [Loop(key, B_c, [Load(keys)], True, serpentine=True)])])),
        "in a cut, a partition or a guard of idle tiles",
    ),
    (
        one(Loop(query, B_r, [Live(depth, [Loop(key, B_c, [Load(keys)], True, serpentine=True)])])),
        "in a guard of another axis",
    ),
    (
        one(Loop(query, B_r, [Loop(key, B_c, [Load(keys)], True, serpentine=True), Loop(depth, m_1, [Load(rows)])])),
        "not the only loop of its body",
    ),
    (
        one(Loop(query, B_r, [Loop(key, B_c, [Load(keys, clipped=True)], True, serpentine=True)])),
        "a clipped or padded load of keys",
    ),
]


@pytest.mark.parametrize(("nest", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_a_nest_that_breaks_a_rule_is_refused(nest: Nest, message: str) -> None:
    with pytest.raises(DeclarationError, match=f"^.+: .*{message}"):
        check(nest)


def test_a_nest_is_pickled_without_its_hash() -> None:
    """The hash of a string differs between processes, and so does that of a nest."""
    nest = algorithm("flash2").nest()
    kind = FormulaKind()
    hashes = hash(nest), hash(kind)
    text = pickle.dumps((nest, kind))
    assert b"_hash" not in text
    again = pickle.loads(text)
    assert again == (nest, kind)
    assert tuple(map(hash, again)) == hashes
    kernel = nest[0]
    assert hash(kernel.with_body(())) != hash(kernel)
    assert kernel.with_body(kernel.body) == kernel
