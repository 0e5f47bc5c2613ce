"""Elementwise kernels of a decoder layer: every element is loaded, used, stored.

The kernels are those launched by serving engines: a norm that also adds the residual, the rotation of queries and
keys in place, the append to the cache, the activation of a gated MLP, the look-up of embeddings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sympy import Integer

from iomodel.nests.algorithm import Algorithm
from iomodel.nests.language import Axis, Exp, Hold, Kernel, Load, Loop, Statement, Store, Tensor
from iomodel.nests.symbols import C_2, C, T

ONE = Integer(1)

row = Axis("row", T)
channel = Axis("channel", C)
other = Axis("other", C_2)
one = Axis("one", ONE)


def _rows(name: str, axis: Axis = channel, dtype: str = "io") -> Tensor:
    return Tensor(name, (row, axis), dtype, per="call")  # type: ignore[arg-type]


x, y, residual = _rows("x"), _rows("y"), _rows("residual")
gamma = Tensor("gamma", (channel,), per="call")
beta = Tensor("beta", (channel,), per="call")
queries, angles = _rows("Q"), Tensor("angles", (row, other), "fp32", per="call")
gate, up, hidden = _rows("gate"), _rows("up"), _rows("hidden")
new_k, new_v = _rows("K"), _rows("V", other)
cached_k, cached_v = _rows("K_cache", dtype="kv"), _rows("V_cache", other, "kv")
slots = Tensor("slots", (row, one), "int64", per="call")
tokens = Tensor("tokens", (row, one), "int64", per="call")
table = _rows("embeddings")  # the looked-up rows


def _norm() -> list[Statement]:
    return [Load(x), Load(gamma), Store(y, held=x)]


def _add_norm() -> list[Statement]:
    return [Load(x), Load(residual), Store(residual), Load(gamma), Store(y, held=x)]


def _layer_norm() -> list[Statement]:
    return [Load(x), Load(gamma), Load(beta), Store(y, held=x)]


def _gather() -> list[Statement]:
    return [Load(slots), Load(x), Store(y, held=x)]


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
    """Declare the weighted sum of expert outputs per token, `others` rows per token."""
    every = Tensor("outputs", (row, other, channel), per="call")
    weights = Tensor("router_weights", (row, other), "fp32", per="call")
    return [Load(weights), Hold(y, "fp32"), Loop(other, ONE, [Load(every)]), Store(y)]


BODIES: dict[str, tuple[str, Callable[[], list[Statement]]]] = {
    "norm": ("y = norm(x) * gamma", _norm),
    "add_norm": ("residual += x; y = norm(residual) * gamma", _add_norm),
    "layer_norm": ("y = layer_norm(x) * gamma + beta", _layer_norm),
    "gather_rows": ("y = rows of x, in the order of their experts", _gather),
    "rotary": ("rotate Q and K", _rotary),
    "append": ("append K and V to the cache", _append),
    "append_latent": ("append the latent to the cache", _append_latent),
    "gated_activation": ("act(gate) * up", _gated),
    "activation": ("act(x)", _activation),
    "embedding": ("look up embeddings", _embed),
    "combine_experts": ("add up the experts of a token", _combine),
}


def _declare(title: str, body: Callable[[], list[Statement]]) -> tuple[Kernel, ...]:
    """Declare a kernel over one row of activations at a time."""
    return (Kernel(title, [Loop(row, ONE, body())], per="call"),)


ALGORITHMS = tuple(
    Algorithm(
        name=name,
        title=title,
        cite="kernels of serving engines, as in vLLM (Kwon et al. 2023, arXiv:2309.06180), csrc/",
        answers="elementwise",
        declare=partial(_declare, title, body),
    )
    for name, (title, body) in BODIES.items()
)
