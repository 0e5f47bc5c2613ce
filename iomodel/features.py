"""What a call may add to attention, each as a change of any algorithm's nest: it is declared once, here.

====================  ==================================================================================================
bias                  a tile of an additive bias is loaded with every tile of S
softcap               a hyperbolic tangent of every score (Gemma 2, arXiv:2408.00118)
alibi                 one slope a head is loaded with the stationary tile (arXiv:2108.12409)
sinks                 one logit a head joins the softmax denominator (gpt-oss, arXiv:2508.10925)
dropout               a random number an element of P; its state is stored by the forward pass and loaded by the
                      backward pass, no mask is (arXiv:2205.14135, Algorithms 2 and 4). Nothing is added to a nest
                      that has no marker for it because it draws and stores the mask by itself
kv_dtype              K and V lie in HBM in a dtype of their own
head_scales,          their scales: one a head, loaded with the stationary tile, or one a key, loaded with its tile
token_scales
paged                 K and V lie in whole pages, found through a table: one entry for each page that a tile touches
                      (PagedAttention, arXiv:2309.06180)
latent                V is the first columns of K and is not loaded apart from it (MLA, arXiv:2405.04434)
====================  ==================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from iomodel.nest import (
    Block,
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
    rebuilt,
    walk,
)
from iomodel.tensors import (
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

Change = Callable[[Statement], Iterable[Statement]]


def _everywhere(nest: Nest, change: Change) -> Nest:
    return tuple(kernel.with_body(rebuilt(kernel.body, change)) for kernel in nest)


def _beside(nest: Nest, wanted: Callable[[Leaf], bool], climbs: Callable[[Loop], bool], added: Leaf) -> Nest:
    """Add a statement before everything in the body around the loops that `climbs` tells, where a leaf is `wanted`."""

    def in_block(block: Any) -> Any:
        body: list[Any] = []
        found = False
        for statement in block.body:
            if isinstance(statement, Block):
                through = isinstance(statement, Loop) and climbs(statement)
                if through and _holds(statement, wanted, climbs):
                    found = True
                    body.append(statement)
                else:
                    body.append(in_block(statement))
            else:
                found = found or wanted(statement)
                body.append(statement)
        return block.with_body((added, *body) if found else body)

    return tuple(map(in_block, nest))


def _holds(block: Any, wanted: Callable[[Leaf], bool], climbs: Callable[[Loop], bool]) -> bool:
    for statement in block.body:
        if isinstance(statement, Loop) and climbs(statement) and _holds(statement, wanted, climbs):
            return True
        if not isinstance(statement, Block) and wanted(statement):
            return True
    return False


def _masked(loop: Loop) -> bool:
    return loop.masked


def _is(kind: type) -> Callable[[Leaf], bool]:
    return lambda leaf: isinstance(leaf, kind)


def _loads(tensor: Tensor) -> Callable[[Leaf], bool]:
    return lambda leaf: isinstance(leaf, Load) and leaf.tensor.name == tensor.name


def _with_bias(nest: Nest) -> Nest:
    return _everywhere(nest, lambda s: (s, Load(bias)) if isinstance(s, Scores) else (s,))


def _with_softcap(nest: Nest) -> Nest:
    return _everywhere(nest, lambda s: (s, Tanh(*s.axes)) if isinstance(s, Scores) else (s,))


def _with_alibi(nest: Nest) -> Nest:
    return _beside(nest, _is(Scores), _masked, Load(slopes))


def _with_sinks(nest: Nest) -> Nest:
    def change(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Sink):
            return (Load(sinks), Exp(*statement.axes)) if statement.axes else (Load(sinks),)
        return (statement,)

    return _everywhere(nest, change)


def _with_dropout(nest: Nest) -> Nest:
    """The forward pass draws where it takes exponentials, and stores the state first; others load it."""
    if not any(isinstance(leaf, Drop) for leaf, _ in walk(nest)):
        return nest  # its dropout is an option of its own
    forward = any(isinstance(leaf, Store) and leaf.tensor.name == "O" for leaf, _ in walk(nest))
    drawn = _everywhere(nest, lambda s: (s, Random(*s.axes)) if isinstance(s, Drop) else (s,))
    if forward:
        return (Kernel("state of the random numbers", [Fill(R)], per="call"), *drawn)
    return _beside(drawn, _is(Random), lambda loop: loop.masked or loop.tile == 1, Load(R))


def _with_kv_dtype(nest: Nest) -> Nest:
    def change(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Load | Hold) and statement.tensor.name in ("K", "V"):
            return (replace(statement, tensor=replace(statement.tensor, dtype="kv")),)
        return (statement,)

    return _everywhere(nest, change)


def _with_head_scales(nest: Nest) -> Nest:
    nest = _beside(nest, _is(Scores), _masked, Load(K_scale))
    return _beside(nest, _loads(V), lambda loop: loop.axis == key and (loop.masked or loop.tile == 1), Load(V_scale))


def _with_token_scales(nest: Nest) -> Nest:
    nest = _beside(nest, _loads(K), lambda loop: loop.axis == depth, Load(K_scales))
    return _everywhere(nest, lambda s: (s, Load(V_scales)) if isinstance(s, Load) and _loads(V)(s) else (s,))


def _with_pages(nest: Nest) -> Nest:
    def change(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Load | Hold) and statement.tensor.name in ("K", "V"):
            return (replace(statement, tensor=replace(statement.tensor, paged=True)),)
        if not isinstance(statement, Block):
            return (statement,)
        body: list[Statement] = []
        for inner in statement.body:
            together = any(_loads(K)(leaf) for leaf in statement.body if not isinstance(leaf, Block))
            if not isinstance(inner, Block) and (_loads(K)(inner) or (_loads(V)(inner) and not together)):
                body.append(Lookup(block_table))
            body.append(inner)
        return (statement.with_body(body),)

    return _everywhere(nest, change)


def _with_latent(nest: Nest) -> Nest:
    def change(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Block) and any(_loads(K)(s) for s in statement.body if not isinstance(s, Block)):
            return (statement.with_body([s for s in statement.body if isinstance(s, Block) or not _loads(V)(s)]),)
        return (statement,)

    def inside(statement: Statement) -> Sequence[Statement]:
        if isinstance(statement, Load) and _loads(V)(statement):
            return (replace(statement, tensor=replace(statement.tensor, inside=True)),)
        return (statement,)

    return _everywhere(_everywhere(nest, change), inside)


FEATURES: dict[str, Callable[[Nest], Nest]] = {
    "latent": _with_latent,
    "kv_dtype": _with_kv_dtype,
    "head_scales": _with_head_scales,
    "token_scales": _with_token_scales,
    "paged": _with_pages,
    "bias": _with_bias,
    "softcap": _with_softcap,
    "alibi": _with_alibi,
    "sinks": _with_sinks,
    "dropout": _with_dropout,
}
"""Every feature, in the order in which they are put on."""


def dressed(nest: Nest, features: Iterable[str]) -> Nest:
    """A nest with the features of a call."""
    wanted = set(features)
    for name, put_on in FEATURES.items():
        if name in wanted:
            nest = put_on(nest)
    return nest
