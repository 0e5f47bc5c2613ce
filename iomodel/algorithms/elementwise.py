"""Elementwise kernels, of a decoder layer above all: every element is loaded, used, stored.

The kernels are those launched by serving engines: a norm that also adds the residual, the rotation of queries and
keys in place, the append to the cache, the activation of a gated MLP, the look-up of embeddings. The root mean square
norm (Zhang and Sennrich 2019, arXiv:1910.07467, equation 4), the activations and the rotation have a backward pass. The
gradient of gamma is a sum over all rows: each part adds up its rows on chip, and a second kernel adds up the parts.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from sympy import Expr, ceiling

from iomodel.nests.algorithm import Algorithm, Requirement
from iomodel.nests.language import Axis, Exp, Hold, Kernel, Load, Loop, Statement, Store, Tensor
from iomodel.nests.symbols import C_2, C_3, ONE, C, T, s

row = Axis("row", T)
channel = Axis("channel", C)
other = Axis("other", C_2)
one = Axis("one", ONE)
part = Axis("part", s, of=row, chunk=ceiling(T / s))
"""Rows whose contributions to the gradient of gamma are added up on chip, as many to each part."""


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
turns = Tensor("angles", (row, Axis("angle", C_3)), "fp32", per="call")
keys, values = _rows("K", other), _rows("V", other)
cached_keys, cached_values = _rows("K_cache", other, "kv"), _rows("V_cache", other, "kv")
tokens = Tensor("tokens", (row, one), "int64", per="call")
table = _rows("embeddings")  # the looked-up rows
rstd = Tensor("rstd", (row,), "fp32", per="call")
"""One over the root mean square of each row."""
dx, dy, dgamma = _rows("dx"), _rows("dy"), Tensor("dgamma", (channel,), per="call")
dgamma_parts = Tensor("dgamma_parts", (part, channel), "fp32", per="call")
d_queries, d_gate, d_up, d_hidden = _rows("dQ"), _rows("dgate"), _rows("dup"), _rows("dhidden")


def _declare_norm(keeps_rstd: bool) -> tuple[Kernel, ...]:
    """Declare the norm of a row at a time; a backward pass needs the deviation of the row."""
    kept: list[Statement] = [Hold(rstd), Store(rstd)] if keeps_rstd else []
    body = [Load(x), Load(gamma), *kept, Store(y, held=x)]
    return (Kernel("y = norm(x) * gamma", [Loop(row, ONE, body)], per="call"),)


def _declare_norm_backward(splits: Expr) -> tuple[Kernel, ...]:
    """Declare the gradients of the rows with the parts of that of gamma, then its sum."""
    assert splits in (part.length, ONE)
    return (
        Kernel("dx, parts of dgamma", per="call", body=[
            Loop(part, ONE, [
                Load(gamma), Hold(dgamma, "fp32"),
                Loop(row, ONE, [Load(dy), Load(x), Load(rstd), Store(dx, held=x)]),
                Store(dgamma_parts, held=dgamma),
            ]),
        ]),
        Kernel("dgamma", [Hold(dgamma, "fp32"), Loop(part, ONE, [Load(dgamma_parts)]), Store(dgamma)], per="call"),
    )  # fmt: skip


def _merged() -> tuple[Statement, ...]:
    """Take the mean of outputs over disjoint keys by their log-sum-exps (Ye et al., arXiv:2501.01005, 2.2)."""
    outputs, others, mean = _rows("O_a"), _rows("O_b"), _rows("O")
    lse_a, lse_b, lse = (Tensor(name, (row,), "fp32", per="call") for name in ("LSE_a", "LSE_b", "LSE"))
    loads = Load(lse_a), Load(lse_b), Load(outputs), Load(others)
    return *loads, Exp(row), Exp(row), Store(mean, held=outputs), Store(lse, held=lse_a)


def _combined() -> tuple[Statement, ...]:
    """Add up the weighted outputs of the experts of a token, `others` rows."""
    every = Tensor("outputs", (row, other, channel), per="call")
    weights = Tensor("router_weights", (row, other), "fp32", per="call")
    return Load(weights), Hold(y, "fp32"), Loop(other, ONE, [Load(every)]), Store(y)


_TURN = (Load(turns), Load(slots), Load(queries), Store(queries), Load(keys), Store(cached_keys, held=keys))
_APPEND = (Load(slots), Load(new_k), Store(cached_k, held=new_k))
BODIES: dict[str, tuple[str, tuple[Statement, ...]]] = {
    "copy": ("y = x", (Load(x), Store(y, held=x))),
    "add": ("y = x + residual", (Load(x), Load(residual), Store(y, held=x))),
    "softmax": ("y = softmax(x)", (Load(x), Exp(row, channel), Store(y, held=x))),
    "add_norm": (
        "residual += x; y = norm(residual) * gamma",
        (Load(x), Load(residual), Store(residual), Load(gamma), Store(y, held=x)),
    ),
    "layer_norm": ("y = layer_norm(x) * gamma + beta", (Load(x), Load(gamma), Load(beta), Store(y, held=x))),
    "gather_rows": ("y = rows of x, in the order of their experts", (Load(slots), Load(x), Store(y, held=x))),
    "rotary": ("rotate Q and K", (Load(angles), Load(queries), Store(queries))),
    "append": ("append K and V to the cache", (*_APPEND, Load(new_v), Store(cached_v, held=new_v))),
    "rotary_append": (
        "rotate Q and K; append K and V to the cache",
        (*_TURN, Load(values), Store(cached_values, held=values)),
    ),
    "rotary_append_latent": ("rotate Q and K; append the latent to the cache", _TURN),
    "append_latent": ("append the latent to the cache", _APPEND),
    "gated_activation": ("act(gate) * up", (Load(gate), Load(up), Exp(row, channel), Store(hidden, held=gate))),
    "activation": ("act(x)", (Load(gate), Exp(row, channel), Store(hidden, held=gate))),
    "embedding": ("look up embeddings", (Load(tokens), Load(table), Hold(x), Store(x))),
    "merge_states": ("O, LSE of two sets of keys", _merged()),
    "combine_experts": ("add up the experts of a token", _combined()),
}
REPLACES = {"add_norm": ("add norm",)}
_SLOPE = (Exp(row, channel), Store(d_gate, held=gate))
BACKWARD: dict[str, tuple[str, tuple[Statement, ...]]] = {
    "rotary": ("rotate dQ and dK back", (Load(angles), Load(d_queries), Store(d_queries))),
    "gated_activation": ("dgate, dup", (Load(d_hidden), Load(gate), Load(up), *_SLOPE, Store(d_up, held=up))),
    "activation": ("dgate", (Load(d_hidden), Load(gate), *_SLOPE)),
}


def _declare(title: str, body: tuple[Statement, ...]) -> tuple[Kernel, ...]:
    """Declare a kernel over one row of activations at a time."""
    return (Kernel(title, [Loop(row, ONE, body)], per="call"),)


def _algorithm(name: str, title: str, declare: Any, backward: Any, **more: Any) -> Algorithm:
    return Algorithm(
        name=name,
        title=title,
        cite="kernels of serving engines, as in vLLM (Kwon et al. 2023, arXiv:2309.06180), csrc/; backward passes as "
        "in Liger-Kernel (Hsu et al. 2024, arXiv:2410.10989), section 3",
        answers="elementwise",
        declare=declare,
        backward=backward,
        **more,
    )


def _algorithms() -> tuple[Algorithm, ...]:
    made = [
        _algorithm(
            "norm",
            "y = norm(x) * gamma",
            _declare_norm,
            _declare_norm_backward,
            options={"keeps_rstd": False, "splits": 1},
            saved={"keeps_rstd": True},
            requires=(Requirement.at_most(s, "splits", T, "up to {most}, the rows"),),
        )
    ]
    for name, (title, body) in BODIES.items():
        backward = partial(_declare, *BACKWARD[name]) if name in BACKWARD else None
        chains = REPLACES.get(name, ())
        made.append(_algorithm(name, title, partial(_declare, title, body), backward, replaces=chains))
    return tuple(made)


ALGORITHMS = _algorithms()
