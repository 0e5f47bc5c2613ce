"""What a decoder layer does beside products and attention, as loop nests: every element is loaded, used, stored.

The kernels are those that serving engines launch: a norm that also adds the residual, the rotation of queries and
keys in place, the append to the cache, the activation of a gated MLP, the look-up of embeddings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from sympy import Integer, Symbol

from iomodel.nest import Axis, Exp, Hold, Kernel, Load, Loop, Nest, Statement, Store, Tensor, check

ONE = Integer(1)
T, C, C_2 = (Symbol(letter, integer=True, positive=True) for letter in ("T", "C", "C_2"))

row = Axis("row", T)
channel = Axis("channel", C)
other = Axis("other", C_2)
one = Axis("one", ONE)

SHAPE = {"rows": T, "channels": C, "others": C_2}


def _rows(name: str, axis: Axis = channel, dtype: str = "io") -> Tensor:
    return Tensor(name, (row, axis), dtype, per="call")  # type: ignore[arg-type]


x, y, residual = _rows("x"), _rows("y"), _rows("residual")
gamma = Tensor("gamma", (channel,), per="call")
queries, angles = _rows("Q"), Tensor("angles", (row, other), "fp32", per="call")
gate, up, hidden = _rows("gate"), _rows("up"), _rows("hidden")
new_k, new_v = _rows("K"), _rows("V", other)
cached_k, cached_v = _rows("K_cache", dtype="kv"), _rows("V_cache", other, "kv")
slots = Tensor("slots", (row, one), "int64", per="call")
tokens = Tensor("tokens", (row, one), "int64", per="call")
table = _rows("embeddings")  # the rows that are looked up


def _norm() -> list[Statement]:
    return [Load(x), Load(gamma), Store(y, held=x)]


def _add_norm() -> list[Statement]:
    return [Load(x), Load(residual), Store(residual), Load(gamma), Store(y, held=x)]


def _rotary() -> list[Statement]:
    return [Load(angles), Load(queries), Store(queries)]


def _append() -> list[Statement]:
    return [Load(slots), Load(new_k), Store(cached_k, held=new_k), Load(new_v), Store(cached_v, held=new_v)]


def _append_latent() -> list[Statement]:
    return [Load(slots), Load(new_k), Store(cached_k, held=new_k)]


def _gated() -> list[Statement]:
    return [Load(gate), Load(up), Exp(row, channel), Store(hidden, held=gate)]


def _activation() -> list[Statement]:
    return [Load(gate), Exp(row, channel), Store(hidden, held=gate)]


def _embed() -> list[Statement]:
    return [Load(tokens), Load(table), Hold(x), Store(x)]


def _combine() -> list[Statement]:
    """Each token adds up what its experts made of it: `others` rows a token."""
    every = Tensor("outputs", (row, other, channel), per="call")
    weights = Tensor("router_weights", (row, other), "fp32", per="call")
    return [Load(weights), Hold(y, "fp32"), Loop(other, ONE, [Load(every)]), Store(y)]


BODIES: dict[str, tuple[str, Callable[[], list[Statement]]]] = {
    "norm": ("y = norm(x) * gamma", _norm),
    "add_norm": ("residual += x; y = norm(residual) * gamma", _add_norm),
    "rotary": ("rotate Q and K", _rotary),
    "append": ("append K and V to the cache", _append),
    "append_latent": ("append the latent to the cache", _append_latent),
    "gated_activation": ("act(gate) * up", _gated),
    "activation": ("act(x)", _activation),
    "embedding": ("look up embeddings", _embed),
    "combine_experts": ("add up the experts of a token", _combine),
}


@cache
def pointwise(name: str) -> Nest:
    """The nest of one of `BODIES`: a row of activations at a time."""
    title, body = BODIES[name]
    nest: Nest = (Kernel(title, [Loop(row, ONE, body())], per="call"),)
    check(nest)
    return nest
