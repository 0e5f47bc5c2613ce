"""Nodes without degrees of a layout: every verb searches the degrees, in these nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import iomodel
from iomodel import Layout
from iomodel.planning import memory_plan

LOAD = {"prompt": 2048, "output": 128}
VERBS: dict[str, Callable[..., Any]] = {
    "plan": lambda **nodes: iomodel.plan("llama-3.1-70b", "h100-sxm5", count=8, **LOAD, **nodes),
    "memory_plan": lambda **nodes: memory_plan("llama-3.1-70b", "h100-sxm5", count=8, **LOAD, **nodes),
    "fleet": lambda **nodes: (
        iomodel.fleet("llama-3.1-70b", "h100-sxm5", load=2, ttft=2.0, tpot=0.1, **LOAD, **nodes).best
    ),
    "pareto": lambda **nodes: iomodel.pareto("llama-3.1-70b", "h100-sxm5", replica_devices=4, **LOAD, **nodes).front[0],
    "step": lambda **nodes: iomodel.step("llama-3.1-70b", "h100-sxm5", batch=4, q_len=1, kv_len=2048, **nodes),
    "train_step": lambda **nodes: iomodel.train_step(
        "llama-3.1-70b", "h100-sxm5", batch=64, seq_len=4096, count=32, **({"layout": Layout(**nodes)} if nodes else {})
    ),
}


def degrees(layout: Layout) -> dict[str, Any]:
    """Return the degrees of a layout without its nodes."""
    return layout.model_dump(exclude={"devices_per_node", "network_bandwidth"})


@pytest.mark.parametrize("verb", VERBS)
def test_nodes_that_hold_all_devices_change_no_choice(verb: str) -> None:
    alone, inside = VERBS[verb](), VERBS[verb](devices_per_node=8)
    assert degrees(inside.layout) == degrees(alone.layout)
    assert max(degrees(alone.layout).values()) > 1
    assert inside.layout.devices_per_node == 8


def test_narrow_nodes_keep_their_size_in_the_search() -> None:
    nodes = {"devices_per_node": 4, "network_bandwidth": 5e9}
    split = iomodel.plan("llama-3.1-405b", "h100-sxm5", count=16, precision="fp8", **LOAD, **nodes)
    joined = iomodel.plan("llama-3.1-405b", "h100-sxm5", count=16, precision="fp8", **LOAD)
    assert (split.layout.devices_per_node, split.layout.network_bandwidth) == (4, 5e9)
    assert split.layout.devices > 4
    assert split.tokens_per_second < joined.tokens_per_second


def test_a_layout_of_one_device_is_no_search() -> None:
    with pytest.raises(iomodel.InfeasibleError, match="one device"):
        iomodel.plan("llama-3.1-70b", "h100-sxm5", count=8, layout=Layout(), **LOAD)
    with pytest.raises(iomodel.InfeasibleError, match="one device"):
        iomodel.plan("llama-3.1-70b", "h100-sxm5", count=8, tensor_parallel=1, devices_per_node=8, **LOAD)
