"""Whatever is handed to a public function, it answers or raises an IOModelError of one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Symbol

import iomodel

W = iomodel.Attention(q_len=20, head_dim=4, mask="causal")
TILES = {"block_q": 4, "block_kv": 4}
scalars = st.sampled_from([None, True, 0, -1, 1, 2.5, float("nan"), float("inf"), 10**30, "", "flash2", "causal", b"x"])
odd = st.sampled_from(
    [(), [1], {}, {"block_q": 0}, {"block_q": 4}, {1: 2}, object(), W, np.array([1, 2]), Symbol("x"), Path()]
)
junk = scalars | odd | st.text(max_size=5) | st.integers() | st.floats()

CALLS: dict[str, Callable[[Any], Any]] = {
    "Attention q_len": lambda x: iomodel.Attention(q_len=x, head_dim=4),
    "Attention kv_heads": lambda x: iomodel.Attention(q_len=4, head_dim=4, heads=6, kv_heads=x),
    "Attention dtype": lambda x: iomodel.Attention(q_len=4, head_dim=4, dtype=x),
    "Attention mask": lambda x: iomodel.Attention(q_len=4, head_dim=4, mask=x),
    "Window": lambda x: iomodel.Window(left=x),
    "Window align": lambda x: iomodel.Window(align=x),
    "cost algorithm": lambda x: iomodel.cost(x, W, TILES),
    "cost workload": lambda x: iomodel.cost("flash2", x, TILES),
    "cost tiles": lambda x: iomodel.cost("flash2", W, x),
    "cost tile": lambda x: iomodel.cost("flash2", W, {**TILES, "block_q": x}),
    "cost option": lambda x: iomodel.cost("flash2", W, TILES, lse=x),
    "expressions algorithm": iomodel.expressions,
    "expressions mask": lambda x: iomodel.expressions("flash2", x),
    "expressions direction": lambda x: iomodel.expressions("flash2", direction=x),
    "subs": lambda x: iomodel.expressions("flash2").subs(block_q=x),
    "optimum": lambda x: iomodel.optimum("flash2", x),
    "evaluate": lambda x: iomodel.evaluate(iomodel.expressions("flash2").flops, {**W.numbers, "q_len": x}),
    "evaluate values": lambda x: iomodel.evaluate(iomodel.expressions("flash2").flops, x),
    "evaluate formula": lambda x: iomodel.evaluate(x, W.numbers),
    "solve hardware": lambda x: iomodel.solve("flash2", W, x),
    "solve bytes": lambda x: iomodel.solve("flash2", W, sram_bytes=x),
    "solve elements": lambda x: iomodel.solve("flash2", W, sram_elements=x),
    "solve alignment": lambda x: iomodel.solve("flash2", W, sram_bytes=5000, alignment=x),
    "solve min_block_kv": lambda x: iomodel.solve("flash2", W, sram_bytes=5000, min_block_kv=x),
    "solve epsilon": lambda x: iomodel.solve("flash2", W, sram_bytes=5000, epsilon=x),
    "compare": lambda x: iomodel.compare(x, sram_bytes=5000),
    "hardware": iomodel.hardware,
    "lower_bounds": lambda x: iomodel.lower_bounds("flash2", W, x),
    "least_sram": lambda x: iomodel.least_sram("flash2", W, x),
    "crossover workload": lambda x: iomodel.crossover("flash2", "standard", x, TILES, up_to=10),
    "crossover tiles": lambda x: iomodel.crossover("flash2", "standard", W, x, up_to=10),
    "crossover up_to": lambda x: iomodel.crossover("flash2", "standard", W, TILES, up_to=x),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
@given(value=junk)
def test_junk_is_answered_or_refused_in_one_line(call: Callable[[Any], Any], value: Any) -> None:
    try:
        call(value)
    except iomodel.IOModelError as error:
        message = str(error)
    else:
        return
    assert message
    assert "\n" not in message


def test_every_error_is_a_value_error() -> None:
    assert issubclass(iomodel.IOModelError, ValueError)
