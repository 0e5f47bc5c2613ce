"""Calls of methods of what the functions return."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import iomodel
from tests.fuzz import fields
from tests.fuzz.calls import Arguments, altered, times, told
from tests.fuzz.law import Case, answered

TILES = {"block_q": 8, "block_kv": 4}

MAKERS: dict[str, tuple[Callable[[], Any], Callable[[Random], Arguments]]] = {
    "shard": (
        lambda: iomodel.Attention(q_len=64, head_dim=8, heads=8, kv_heads=4),
        lambda rng: {"ranks": rng.choice((1, 2, 4))},
    ),
    "subs": (
        lambda: iomodel.expressions("flash2", "causal"),
        lambda rng: {"batch": 1, "heads": 2, "block_q": fields.small(rng)},
    ),
    "at": (
        lambda: iomodel.cost_array("flash2", q_len=[[8, 9], [10, 11]], head_dim=8, **TILES),
        lambda rng: {"index": (0, 1)},
    ),
    "solution": (
        lambda: iomodel.solve_many("flash2", sram_bytes=20_000, q_len=[8, 9], head_dim=8),
        lambda rng: {"index": rng.choice((0, (1,)))},
    ),
    "kv_bytes": (
        lambda: iomodel.model("gpt-oss-20b"),
        lambda rng: {"context": fields.length(rng), "kv_dtype": "fp8", "page_size": 16},
    ),
    "kv_bytes_per_token": (lambda: iomodel.model("gpt-oss-20b"), lambda rng: {"kv_dtype": "fp8"}),
    "weight_bytes": (lambda: iomodel.model("gpt-oss-20b"), lambda rng: {"dtype": "fp8"}),
    "shown": (
        lambda: iomodel.trace("flash2", iomodel.Attention(q_len=16, head_dim=8), None, TILES),
        lambda rng: {"most": 3},
    ),
    "plot": (
        lambda: iomodel.trace("flash2", iomodel.Attention(q_len=16, head_dim=8), None, TILES),
        lambda rng: {"path": "x.gif"},
    ),
    "to_csv": (
        lambda: iomodel.trace("flash2", iomodel.Attention(q_len=16, head_dim=8), None, TILES),
        lambda rng: {"path": "x.csv"},
    ),
    "check": (lambda: iomodel.Layout(tensor_parallel=4), lambda rng: {"model": iomodel.model("llama-3-8b")}),
    "visible_pairs": (lambda: iomodel.Documents([3, 5]), lambda rng: {"q_len": 8, "kv_len": 8}),
    "seen": (lambda: iomodel.BlockMask([[1, 0], [0, 1]], 4, 4), lambda rng: {"q_len": 8, "kv_len": 8}),
}
"""By the name of the method: an object that has it, and right arguments."""


@cache
def _object(method: str) -> Any:
    return MAKERS[method][0]()


def method(rng: Random) -> Case:
    """A call of a method."""
    name = rng.choice(list(MAKERS))
    given = MAKERS[name][1](rng)
    for _ in range(times(rng)):
        given = altered(given, rng)
    if name == "at":  # the only one that takes places by position alone
        index = given.get("index", ())
        arguments, named = list(index) if isinstance(index, tuple | list) else [index], {}
    else:
        arguments, named = [], {key: value for key, value in given.items() if isinstance(key, str)}
    text = f"{type(_object(name)).__name__}.{name}{told(arguments, named)}"
    return Case(
        "methods",
        text,
        lambda: answered(getattr(_object(name), name), arguments, named, name != "subs" or rng.random() < 0.05),
    )
