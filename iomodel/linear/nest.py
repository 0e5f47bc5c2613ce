"""Linear layers as loop nests: Y = X W in output tiles, in the language of the attention algorithms.

A block keeps an output tile and streams slices of X and W past it (Goto and van de Geijn 2008, ACM TOMS 34:12). Few
rows leave few output tiles; then the terms of the sum are shared out among blocks too, and a second kernel adds up.
There are `groups` products of one shape: the heads of an absorbed projection, experts that have as many tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from sympy import Integer, Symbol, ceiling

from iomodel.nest import Axis, Exp, Hold, Kernel, Load, Loop, MatMul, Nest, Statement, Store, Tensor, check
from iomodel.symbols import b_w, e, e_kv, s


def _positive(letter: str) -> Symbol:
    return Symbol(letter, integer=True, positive=True)


g, T, C_in, C_out, n_s = map(_positive, ("g", "T", "C_in", "C_out", "n_s"))
B_m, B_n, B_k = map(_positive, ("B_m", "B_n", "B_k"))
ONE = Integer(1)

group = Axis("group", g)
row = Axis("row", T)
term = Axis("term", C_in)
column = Axis("column", C_out)
part = Axis("part", s, of=term, chunk=B_k * ceiling(ceiling(C_in / B_k) / s))
"""Whole slices of the sum, as many to each part, the last ones with fewer or none."""
block = Axis("block", ceiling(C_in / n_s), of=term, chunk=n_s)
"""Terms that share a scale of W: whole slices, or all terms."""
part_of_blocks = Axis("part", s, of=block, chunk=ceiling(ceiling(C_in / n_s) / s))
"""The same for whole blocks."""

SHAPE = {"groups": g, "rows": T, "in_features": C_in, "out_features": C_out, "scale_block": n_s}
SIZES = {"element_size": e, "weight_size": b_w, "kv_element_size": e_kv}
TILES = {"block_m": B_m, "block_n": B_n, "block_k": B_k, "splits": s}


def _tensor(name: str, *axes: Axis, dtype: str = "io") -> Tensor:
    return Tensor(name, axes, dtype, per="call")  # type: ignore[arg-type]


X = _tensor("X", group, row, term)
W = _tensor("W", group, term, column, dtype="weight")
W_gate = _tensor("W_gate", group, term, column, dtype="weight")
W_up = _tensor("W_up", group, term, column, dtype="weight")
Y = _tensor("Y", group, row, column, dtype="kv")
"""Of a width of its own, as K and V are: a product of fp8 rows is stored in bf16."""
G = _tensor("G", group, row, column, dtype="kv")
bias = _tensor("bias", group, column, dtype="kv")


def _scales(weight: Tensor) -> Tensor:
    return _tensor(f"{weight.name}_scale", group, block, column)


class Form(NamedTuple):
    """What shapes the nest of a linear layer.

    `split` shares the terms out among blocks; `gated` is Y = act(X W_gate) * (X W_up) in one kernel; `scaled` weights
    have a scale a column and block of terms; a `bias` is added to the result.
    """

    split: bool = False
    gated: bool = False
    scaled: bool = False
    bias: bool = False


@lru_cache(maxsize=64)
def gemm(form: Form = Form()) -> Nest:  # noqa: B008 - frozen
    """The nest of a linear layer, checked; the tile of a result is held in fp32."""
    weights = (W_gate, W_up) if form.gated else (W,)
    results = (G, Y) if form.gated else (Y,)
    held: list[Statement] = [Hold(result, "fp32") for result in results]
    products: list[Statement] = [Load(X)]
    for weight in weights:
        products += [Load(weight), MatMul(row, column, term)]
    done: list[Statement] = [Load(bias)] if form.bias else []
    done += [Exp(row, column)] if form.gated else []
    done += [Store(Y)]
    slices: Statement = Loop(term, B_k, products)
    if form.scaled:
        slices = Loop(block, ONE, [*(Load(_scales(weight)) for weight in weights), slices])
    summed = [*held, slices]
    share = part_of_blocks if form.scaled else part
    title = "Y = act(X W_gate) * (X W_up)" if form.gated else "Y = X W"
    if not form.split:
        nest: Nest = (_tiled(title, [*summed, *done]),)
    else:
        partial = {result: _tensor(f"{result.name}_acc", share, *result.axes, dtype="fp32") for result in results}
        parts = [Store(partial[result], held=result) for result in results]
        adds = [Load(partial[result]) for result in results]
        nest = (
            _tiled(f"{title}, a part of the terms", [Loop(share, ONE, [*summed, *parts])]),
            _tiled("add up", [*held, Loop(share, ONE, adds), *done]),
        )
    check(nest)
    return nest


def _tiled(title: str, body: Sequence[Statement]) -> Kernel:
    """A kernel over the output tiles of every group."""
    tiles = Loop(group, ONE, [Loop(row, B_m, [Loop(column, B_n, body)])])
    return Kernel(title, [tiles], per="call")
