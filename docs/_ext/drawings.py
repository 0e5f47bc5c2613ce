"""The drawings on the pages of the algorithms: small calls whose schedules can be seen, and shipped tiles on a chip."""

from __future__ import annotations

from typing import Any

import iomodel
from iomodel import plots
from iomodel.algorithms import algorithm
from iomodel.counting.bound_call import BoundCall
from iomodel.explorer.link import link

TILE = 16
"""Rows of every tile of a drawing."""
CALLS: dict[str, Any] = {
    "attention": iomodel.Attention(q_len=64, head_dim=16),
    "linear": iomodel.Linear(rows=64, in_features=64, out_features=64),
    "mlp": iomodel.MLP(rows=32, in_features=32, hidden_features=64, gated=True),
    "recurrence": iomodel.Recurrence(tokens=64, heads=1, head_dim=16, value_dim=16, delta=True, gate="head"),
    "cross_entropy": iomodel.CrossEntropy(rows=32, in_features=32, vocab_size=64),
}
"""The call of each kind of workload: four tiles along its longest axis."""
OPTIONS: dict[str, dict[str, Any]] = {
    "dsa": {"index_heads": 2, "index_dim": 8, "top_k": 16},
    "linformer": {"projected": 16},
    "loki": {"rank": 8, "top_k": 16},
    "moba": {"select_block": 8, "selected": 3},
    "nsa": {"compress_block": 8, "compress_stride": 8, "select_block": 8, "selected": 2, "local": 16},
    "performer": {"features": 16},
    "reformer": {"buckets": 8, "rounds": 2},
    "routing_transformer": {"clusters": 4},
    "sparse_transformer": {"stride": 16, "summary": 4},
    "split_kv": {"splits": 2},
}
"""Options that suit so short a call."""


def small(name: str, direction: str | None = None) -> tuple[Any, dict[str, int], dict[str, Any]]:
    """Return the small call of an algorithm, its tiles and its options."""
    declaration, options = algorithm(name), OPTIONS.get(name, {})
    call = CALLS[declaration.answers]
    if declaration.answers == "attention":
        mask = (declaration.masks or ("full",))[0]
        call = call.model_copy(update={"direction": direction or declaration.directions[0], "mask": mask})
    tiles = dict.fromkeys(BoundCall.bind(name, call, options, tiled=True).tiles, TILE)
    return call, tiles, options


def trace(name: str, direction: str | None = None) -> iomodel.studies.trace.trace.Trace:
    """Trace the small call of an algorithm."""
    call, tiles, options = small(name, direction)
    return iomodel.trace(name, call, tiles=tiles, **options)


def address(name: str) -> str:
    """Return the address at which the explorer plays the moves of the small call, from the page of an algorithm."""
    call, tiles, options = small(name)
    shown = {tile: tiles[tile] for tile in BoundCall.bind(name, call, options, tiled=False).tiles}
    return f"../explorer-page.html?play#{link(name, call, 'h100-sxm5', shown, 'textbook', **options)}"


def moves(name: str, direction: str | None = None) -> Any:
    """Draw the moves of the small call of an algorithm."""
    return plots.moves(trace(name, direction))


def on_chip(name: str, device: str) -> Any:
    """Draw the shipped tile of an algorithm for rows of 128 elements."""
    return plots.on_chip(name, iomodel.Attention(heads=32, q_len=8192, head_dim=128, mask="causal"), device)
