"""Folding a nest symbolically counts what running it counts, for nests that no algorithm has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Integer, Symbol

from iomodel import counts
from iomodel.compiled import Compiled
from iomodel.counts import View
from iomodel.masks import MaskKind
from iomodel.nest import Axis, DType, Exp, Hold, Kernel, Live, Load, Loop, MatMul, Nest, Statement, Store, Tensor, check
from iomodel.symbols import B, B_c, B_r, G, H, H_kv, N, N_k, N_q, W_l, W_r, d, d_v, e, m_1, m_2, n_1
from iomodel.tensors import depth, key, query, value
from tests.interpreter import Machine, peak_hbm
from tests.strategies import fraction_of_examples, mask_kinds

spare = Axis("spare", N)  # of the same kind as the others, but in no attention tensor
AXES = (query, key, depth, value, spare)
PAIR = (query, key)  # what a mask binds
TILE = {query: B_r, key: B_c, depth: m_1, value: n_1, spare: m_2}
LENGTH = {N_q, N_k, d, d_v, N}

axis_lists = st.lists(st.sampled_from(AXES), unique=True, max_size=3).map(tuple)
dtypes: st.SearchStrategy[DType] = st.sampled_from(get_args(DType))


@dataclass(frozen=True)
class Scene:
    """A nest, how it is read, and the numbers for its symbols."""

    nest: Nest
    kind: MaskKind
    packed: bool
    values: Mapping[Symbol, int]

    def seen(self) -> np.ndarray:
        """Which row sees which key, element by element."""
        offset = 0 if self.kind.top_left else self.values[N_k] - self.values[N_q]
        distance = np.arange(self.values[N_k])[None, :] - np.arange(self.values[N_q])[:, None] - offset
        visible = np.ones(distance.shape, dtype=bool)
        if self.kind.left:
            visible &= distance >= -self.values[W_l]
        if self.kind.right:
            visible &= distance <= (0 if self.kind.causal else self.values[W_r])
        return np.repeat(visible, self.values[G], axis=0) if self.packed else visible

    def counted(self) -> dict[str, Any]:
        batch = self.values[B]
        machine = Machine(
            self.values,
            self.seen(),
            self.values[G] if self.packed else 1,
            batch * self.values[H],
            batch * self.values[H_kv],
            self.values[e],
        )
        machine.run(self.nest)
        instances = machine.kv_heads if self.packed else machine.heads
        return {
            "reads": {name: instances * count for name, count in machine.reads.items() if count},
            "writes": {name: instances * count for name, count in machine.writes.items() if count},
            "flops": instances * machine.flops,
            "exps": instances * machine.exps,
            "footprint": max(elements for elements, _ in machine.live),
            "footprint_bytes": max(size for _, size in machine.live),
            "peak_hbm": peak_hbm(self.nest, machine),
        }

    def folded(self) -> dict[str, Any]:
        view = View(self.kind, self.packed)
        reads, writes = counts.moves(self.nest, view, Load), counts.moves(self.nest, view, Store)
        formulas = {
            "flops": counts.flops(self.nest, view),
            "exps": counts.exps(self.nest, view),
            "footprint": counts.footprint(self.nest, view),
            "footprint_bytes": counts.footprint(self.nest, view, counts.in_bytes),
            "peak_hbm": counts.peak_hbm(self.nest),
        }
        every = [*reads.values(), *writes.values(), *formulas.values()]
        found = iter(Compiled(every, tuple(self.values)).scalars(*self.values.values()))
        return {
            "reads": {tensor.name: count for tensor in reads if (count := next(found))},
            "writes": {tensor.name: count for tensor in writes if (count := next(found))},
            **{name: next(found) for name in formulas},
        }


@st.composite
def bodies(
    draw: st.DrawFn, tensors: list[Tensor], held: set[Tensor], walked: tuple[Axis, ...], masked: bool
) -> list[Statement]:
    """Statements in a row; `held` has the tensors with a buffer, and learns of those declared here."""
    kinds = ["load", "hold", "store", "matmul", "exp"]
    body: list[Statement] = []
    for _ in range(draw(st.integers(1, 3))):
        free = [axis for axis in AXES if axis not in walked]
        blocks = (["loop"] * 3 if len(walked) < 4 else []) + (["live"] if walked and len(walked) < 4 else [])
        kind = draw(st.sampled_from(kinds + blocks))
        if kind == "store" and not held:
            kind = "load"
        match kind:
            case "load":
                tensor = draw(st.sampled_from(tensors))
                body.append(Load(tensor))
                held.add(tensor)
            case "hold":
                tensor = draw(st.sampled_from(tensors))
                body.append(Hold(tensor, draw(st.none() | dtypes)))
                held.add(tensor)
            case "store":
                buffers = st.sampled_from(sorted(held, key=lambda tensor: tensor.name))
                source = draw(buffers)
                body.append(draw(st.sampled_from([Store(source), Store(draw(st.sampled_from(tensors)), source)])))
            case "matmul":
                body.append(MatMul(*draw(st.permutations(AXES))[:3]))
            case "exp":
                body.append(Exp(*draw(axis_lists)))
            case "live":
                axis = draw(st.sampled_from((*PAIR * 3, *AXES)))
                body.append(Live(axis, draw(bodies(tensors, held, walked, masked))))
            case "loop":
                axis = draw(st.sampled_from([*free, *(axis for axis in PAIR * 3 if axis in free)]))
                tile = draw(st.sampled_from([TILE[axis], TILE[axis], Integer(1), Integer(3)]))
                bound = bool(walked) and not masked and draw(st.booleans())
                inside = draw(bodies(tensors, set(held), (*walked, axis), masked or bound))
                body.append(Loop(axis, tile, inside, masked=bound))
    return body


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    tensors = [Tensor(f"T{i}", draw(axis_lists), draw(dtypes)) for i in range(draw(st.integers(1, 5)))]
    kernels = draw(st.integers(1, 3))
    nest = tuple(Kernel(f"kernel {i}", draw(bodies(tensors, set(), (), False))) for i in range(kernels))
    return Scene(nest, draw(mask_kinds), draw(st.booleans()), draw(points()))


@st.composite
def points(draw: st.DrawFn) -> dict[Symbol, int]:
    values = {symbol: draw(st.integers(1, 9)) for symbol in sorted(LENGTH, key=str)}
    values |= {tile: draw(st.integers(1, 11)) for tile in TILE.values()}
    values |= {W_l: draw(st.integers(0, 6)), W_r: draw(st.integers(0, 6)), e: draw(st.sampled_from([1, 2, 4]))}
    group, kv_heads = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    return values | {B: draw(st.integers(1, 2)), H: group * kv_heads, H_kv: kv_heads, G: group}


@given(scene=scenes())
def test_folding_a_nest_counts_what_running_it_counts(scene: Scene) -> None:
    check(scene.nest)
    assert scene.folded() == scene.counted()


rows, keys, wide = Tensor("rows", (query,)), Tensor("keys", (key,)), Tensor("wide", (query, key))


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
