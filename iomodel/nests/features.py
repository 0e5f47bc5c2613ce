"""Optional features of attention, each declared once as a transformation of any nest.

====================  ==================================================================================================
bias                  a tile of an additive bias is loaded with every tile of S
softcap               a hyperbolic tangent of every score (Gemma 2, arXiv:2408.00118)
alibi                 one slope per head is loaded with the stationary tile (arXiv:2108.12409)
sinks                 one logit per head joins the softmax denominator (gpt-oss, arXiv:2508.10925)
dropout               a random number per element of P; its state is stored by the forward pass and loaded by the
                      backward pass, but no mask (arXiv:2205.14135, Algorithms 2 and 4). Nothing is added to a nest
                      without a marker, which draws and stores the mask itself
kv_dtype              K and V are stored in HBM in a separate dtype
head_scales,          their scales: one per head, loaded with the stationary tile, or one per key, loaded with its tile
token_scales
paged                 K and V, and scales per key, are stored in whole pages, located by a table: one entry per page
                      that a tile touches (PagedAttention, arXiv:2309.06180)
latent                V is the first columns of K and is not loaded separately (MLA, arXiv:2405.04434)
====================  ==================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from iomodel.nests.feature_names import FEATURE_NAMES
from iomodel.nests.language import (
    Compound,
    Drop,
    Exp,
    Fill,
    Hold,
    Kernel,
    Leaf,
    Load,
    Lookup,
    Loop,
    Nest,
    Random,
    Scores,
    Sink,
    Statement,
    Store,
    Tanh,
    Tensor,
    everywhere,
    walk,
)
from iomodel.nests.tensors import (
    K,
    K_scale,
    K_scales,
    R,
    V,
    V_scale,
    V_scales,
    bias,
    block_table,
    depth,
    key,
    sinks,
    slopes,
)

PAGED = ("K", "V", "K_scale", "V_scale")
"""The tensors that lie in pages of keys; scales of a head have no keys."""


def _beside(nest: Nest, wanted: Callable[[Leaf], bool], climbs: Callable[[Loop], bool], added: Leaf) -> Nest:
    """Add a statement in front of a body that contains a `wanted` leaf, outside the loops selected by `climbs`."""

    def in_block(block: Any) -> Any:
        body: list[Any] = []
        matched = False
        for statement in block.body:
            if isinstance(statement, Compound):
                through = isinstance(statement, Loop) and climbs(statement)
                if through and _holds(statement, wanted, climbs):
                    matched = True
                    body.append(statement)
                else:
                    body.append(in_block(statement))
            else:
                matched = matched or wanted(statement)
                body.append(statement)
        return block.with_body((added, *body) if matched else body)

    return tuple(map(in_block, nest))


def _holds(block: Any, wanted: Callable[[Leaf], bool], climbs: Callable[[Loop], bool]) -> bool:
    for statement in block.body:
        if isinstance(statement, Loop) and climbs(statement) and _holds(statement, wanted, climbs):
            return True
        if not isinstance(statement, Compound) and wanted(statement):
            return True
    return False


def _masked(loop: Loop) -> bool:
    return loop.masked


def _is(kind: type) -> Callable[[Leaf], bool]:
    return lambda leaf: isinstance(leaf, kind)


def _loads(tensor: Tensor) -> Callable[[Leaf], bool]:
    return lambda leaf: isinstance(leaf, Load) and leaf.tensor.name == tensor.name


def _with_bias(nest: Nest) -> Nest:
    return everywhere(nest, lambda s: (s, Load(bias)) if isinstance(s, Scores) else (s,))


def _with_softcap(nest: Nest) -> Nest:
    return everywhere(nest, lambda s: (s, Tanh(*s.axes)) if isinstance(s, Scores) else (s,))


def _with_alibi(nest: Nest) -> Nest:
    return _beside(nest, _is(Scores), _masked, Load(slopes))


def _with_sinks(nest: Nest) -> Nest:
    def change(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Sink):
            return (Load(sinks), Exp(*statement.axes)) if statement.axes else (Load(sinks),)
        return (statement,)

    return everywhere(nest, change)


def _with_dropout(nest: Nest) -> Nest:
    """Draw random numbers after exponentials in the forward pass, which stores their state; other passes load it."""
    if not any(isinstance(leaf, Drop) for leaf, _ in walk(nest)):
        return nest  # its dropout is a separate option
    forward = any(isinstance(leaf, Store) and leaf.tensor.name == "O" for leaf, _ in walk(nest))
    drawn = everywhere(nest, lambda s: (s, Random(*s.axes)) if isinstance(s, Drop) else (s,))
    if forward:
        return (Kernel("state of the random numbers", [Fill(R)], per="call"), *drawn)
    return _beside(drawn, _is(Random), lambda loop: loop.masked or loop.tile == 1, Load(R))


def _with_kv_dtype(nest: Nest) -> Nest:
    def change(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Load | Hold) and statement.tensor.name in ("K", "V"):
            return (replace(statement, tensor=replace(statement.tensor, dtype="kv")),)
        return (statement,)

    return everywhere(nest, change)


def _with_head_scales(nest: Nest) -> Nest:
    nest = _beside(nest, _is(Scores), _masked, Load(K_scale))
    return _beside(nest, _loads(V), lambda loop: loop.axis == key and (loop.masked or loop.tile == 1), Load(V_scale))


def _with_token_scales(nest: Nest) -> Nest:
    nest = _beside(nest, _loads(K), lambda loop: loop.axis == depth, Load(K_scales))
    return everywhere(nest, lambda s: (s, Load(V_scales)) if isinstance(s, Load) and _loads(V)(s) else (s,))


def _with_pages(nest: Nest) -> Nest:
    def change(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Load | Hold) and statement.tensor.name in PAGED and key in statement.tensor.axes:
            return (replace(statement, tensor=replace(statement.tensor, paged=True)),)
        if not isinstance(statement, Compound):
            return (statement,)
        body: list[Statement] = []
        for inner in statement.body:
            together = any(_loads(K)(leaf) for leaf in statement.body if not isinstance(leaf, Compound))
            if not isinstance(inner, Compound) and (_loads(K)(inner) or (_loads(V)(inner) and not together)):
                body.append(Lookup(block_table))
            body.append(inner)
        return (statement.with_body(body),)

    return everywhere(nest, change)


def _with_latent(nest: Nest) -> Nest:
    def change(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Compound) and any(_loads(K)(s) for s in statement.body if not isinstance(s, Compound)):
            return (statement.with_body([s for s in statement.body if isinstance(s, Compound) or not _loads(V)(s)]),)
        return (statement,)

    def inside(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Load) and _loads(V)(statement):
            return (replace(statement, tensor=replace(statement.tensor, inside=True)),)
        return (statement,)

    without = tuple(replace(kernel, keeps=tuple(t for t in kernel.keeps if t.name != V.name)) for kernel in nest)
    return everywhere(everywhere(without, change), inside)


_CHANGES = (
    _with_latent,
    _with_kv_dtype,
    _with_head_scales,
    _with_token_scales,
    _with_pages,
    _with_bias,
    _with_softcap,
    _with_alibi,
    _with_sinks,
    _with_dropout,
)
FEATURES: dict[str, Callable[[Nest], Nest]] = dict(zip(FEATURE_NAMES, _CHANGES, strict=True))
"""Every feature, in the order of application."""


def dressed(nest: Nest, features: Iterable[str]) -> Nest:
    """Apply the features of a call to a nest."""
    wanted = set(features)
    for name, apply in FEATURES.items():
        if name in wanted:
            nest = apply(nest)
    return nest
