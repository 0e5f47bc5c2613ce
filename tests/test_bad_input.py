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
BACKWARD = iomodel.Attention(q_len=20, head_dim=4, direction="backward")
TILES = {"block_q": 4, "block_kv": 4}
scalars = st.sampled_from([None, True, 0, -1, 1, 2.5, float("nan"), float("inf"), 10**30, "", "flash2", "causal", b"x"])
odd = st.sampled_from(
    [(), [1], {}, {"block_q": 0}, {"block_q": 4}, {1: 2}, object(), W, np.array([1, 2]), Symbol("x"), Path()]
)
masks = st.sampled_from([iomodel.Documents([20]), iomodel.Documents([3]), iomodel.BlockMask([[1]], 20, 20)])
junk = scalars | odd | masks | st.text(max_size=5) | st.integers() | st.floats()

CALLS: dict[str, Callable[[Any], Any]] = {
    "Attention q_len": lambda x: iomodel.Attention(q_len=x, head_dim=4),
    "Attention kv_heads": lambda x: iomodel.Attention(q_len=4, head_dim=4, heads=6, kv_heads=x),
    "Attention dtype": lambda x: iomodel.Attention(q_len=4, head_dim=4, dtype=x),
    "Attention mask": lambda x: iomodel.Attention(q_len=4, head_dim=4, mask=x),
    "Attention direction": lambda x: iomodel.Attention(q_len=4, head_dim=4, direction=x),
    "Attention kv_dtype": lambda x: iomodel.Attention(q_len=4, head_dim=4, kv_dtype=x),
    "Attention kv_scales": lambda x: iomodel.Attention(q_len=4, head_dim=4, kv_scales=x),
    "Attention page_size": lambda x: iomodel.Attention(q_len=4, head_dim=4, page_size=x),
    "Attention latent": lambda x: iomodel.Attention(q_len=4, head_dim=4, latent=x),
    "Attention softcap": lambda x: iomodel.Attention(q_len=4, head_dim=4, softcap=x),
    "Attention dropout": lambda x: iomodel.Attention(q_len=4, head_dim=4, dropout=x),
    "Attention bias": lambda x: iomodel.Attention(q_len=4, head_dim=4, bias=x),
    "VarlenAttention": lambda x: iomodel.VarlenAttention(q_lens=x, head_dim=4),
    "VarlenAttention item": lambda x: iomodel.VarlenAttention(q_lens=[4, x], head_dim=4),
    "VarlenAttention kv_lens": lambda x: iomodel.VarlenAttention(q_lens=[4, 5], kv_lens=x, head_dim=4),
    "VarlenAttention mask": lambda x: iomodel.VarlenAttention(q_lens=[4, 5], head_dim=4, mask=x),
    "Documents": iomodel.Documents,
    "Documents item": lambda x: iomodel.Documents([3, x]),
    "Documents causal": lambda x: iomodel.Documents([3], causal=x),
    "BlockMask": lambda x: iomodel.BlockMask(x, 4, 4),
    "BlockMask item": lambda x: iomodel.BlockMask([[1, x]], 4, 4),
    "BlockMask size": lambda x: iomodel.BlockMask([[1]], x, 4),
    "shard": W.shard,
    "Window": lambda x: iomodel.Window(left=x),
    "Window align": lambda x: iomodel.Window(align=x),
    "cost algorithm": lambda x: iomodel.cost(x, W, TILES),
    "cost workload": lambda x: iomodel.cost("flash2", x, TILES),
    "cost tiles": lambda x: iomodel.cost("flash2", W, x),
    "cost tile": lambda x: iomodel.cost("flash2", W, {**TILES, "block_q": x}),
    "cost option": lambda x: iomodel.cost("flash2", W, TILES, lse=x),
    "cost number": lambda x: iomodel.cost("split_kv", W, TILES, splits=x),
    "cost backward": lambda x: iomodel.cost("flash2", BACKWARD, TILES, deterministic=x),
    "cost follower": lambda x: iomodel.cost("two_pass", BACKWARD, {**TILES, "dq_block_q": x}),
    "expressions algorithm": iomodel.expressions,
    "expressions mask": lambda x: iomodel.expressions("flash2", x),
    "expressions direction": lambda x: iomodel.expressions("flash2", direction=x),
    "expressions feature": lambda x: iomodel.expressions("flash2", bias=x),
    "expressions number": lambda x: iomodel.expressions("split_kv", splits=x),
    "subs": lambda x: iomodel.expressions("flash2").subs(block_q=x),
    "optimum": lambda x: iomodel.optimum("flash2", x),
    "optimum direction": lambda x: iomodel.optimum("flash2", direction=x),
    "optimum number": lambda x: iomodel.optimum("split_kv", splits=x),
    "evaluate": lambda x: iomodel.evaluate(iomodel.expressions("flash2").flops, {**W.numbers, "q_len": x}),
    "evaluate values": lambda x: iomodel.evaluate(iomodel.expressions("flash2").flops, x),
    "evaluate formula": lambda x: iomodel.evaluate(x, W.numbers),
    "solve hardware": lambda x: iomodel.solve("flash2", W, x),
    "solve bytes": lambda x: iomodel.solve("flash2", W, sram_bytes=x),
    "solve elements": lambda x: iomodel.solve("flash2", W, sram_elements=x),
    "solve alignment": lambda x: iomodel.solve("flash2", W, sram_bytes=5000, alignment=x),
    "solve min_block_kv": lambda x: iomodel.solve("flash2", W, sram_bytes=5000, min_block_kv=x),
    "solve epsilon": lambda x: iomodel.solve("flash2", W, sram_bytes=5000, epsilon=x),
    "solve splits": lambda x: iomodel.solve("split_kv", W, sram_bytes=5000, splits=x),
    "solve workload": lambda x: iomodel.solve("flash2", x, sram_bytes=5000),
    "compare option": lambda x: iomodel.compare(W, sram_bytes=5000, packed=x),
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


MANY = iomodel.VarlenAttention(q_lens=[20, 3], head_dim=4)
PAGED = W.model_copy(update={"page_size": 4})
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: iomodel.cost("two_pass", W, TILES), "direction: 'forward' given; allowed: backward, for two_pass"),
    (lambda: iomodel.cost("tiled_query", BACKWARD, TILES), "direction: 'backward' given; allowed: forward, for tiled"),
    (lambda: iomodel.solve("split_kv", BACKWARD, sram_bytes=5000), "direction: 'backward' given; allowed: forward"),
    (lambda: iomodel.expressions("flash2", direction="sideways"), "direction: 'sideways' is unknown"),
    (lambda: iomodel.cost("standard", PAGED), "paged: given; allowed: not with standard, whose forward pass lacks it"),
    (lambda: iomodel.solve("small_cache", PAGED, sram_bytes=5000), "paged: given; allowed: not with small_cache"),
    (lambda: iomodel.expressions("flash2", biass=True), "option of flash2: 'biass' is unknown; did you mean 'bias'?"),
    (lambda: iomodel.expressions("flash2", bias=3), "bias: 3 given; allowed: bool"),
    (lambda: iomodel.expressions("flash2", direction="backward", paged=True), "paged: given with direction backward"),
    (lambda: iomodel.expressions("flash2", latent=True, head_scales=True), "head_scales: given with latent"),
    (lambda: iomodel.expressions("flash2", head_scales=True, token_scales=True), "token_scales: given with"),
    (lambda: iomodel.cost("split_kv", W, TILES, splits=6), "splits: 6 given; allowed: up to 5, the tiles of 4 ke"),
    (lambda: iomodel.cost("split_kv", MANY, TILES, splits=6), "splits: 6 given; allowed: up to 5, the tiles of 4 keys"),
    (lambda: iomodel.cost("split_kv", W, TILES, splits=0), "splits: 0 given; allowed: an integer from 1"),
    (lambda: iomodel.solve("split_kv", W, sram_bytes=5000, splits=21), "splits: 21 given; allowed: up to 20"),
    (lambda: iomodel.cost("flash2", BACKWARD, TILES, dq_buffers=0), "dq_buffers: 0 given; allowed: an integer from 1"),
    (lambda: iomodel.cost("flash2", BACKWARD, TILES, lse=True), "option of flash2: 'lse' is unknown"),
    (lambda: iomodel.cost("flash2", W, TILES, accumulate=True), "option of flash2: 'accumulate' is unknown"),
    (lambda: iomodel.cost("flash2", W, {**TILES, "bwd_block_q": 8}), "tile of flash2: 'bwd_block_q' is unknown"),
    (lambda: iomodel.cost("standard", BACKWARD, {"gemm3_m": 4}), "gemm3_n: standard needs this tile"),
    (
        lambda: iomodel.compare(BACKWARD, sram_bytes=5000, splits=2),
        "option of flash1, flash2, flash3, standard, two_pass: 'spl",
    ),
    (lambda: iomodel.compare(W, sram_bytes=5), "algorithm: none fits 5 B of SRAM; the least that would do is "),
    (lambda: iomodel.crossover("flash2", "flash1", MANY, TILES), "workload: VarlenAttention"),
    (lambda: iomodel.crossover("flash2", "flash1", PAGED, TILES), "mask: 'causal' given; allowed: full, or"),
    (lambda: iomodel.least_sram("flash2", MANY, 1), "hbm_bytes: 1 B given; flash2 moves at least"),
]


@pytest.mark.parametrize(("call", "says"), REFUSED, ids=[says[:40] for _, says in REFUSED])
def test_what_does_not_go_together_is_refused_in_one_line(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(iomodel.IOModelError) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(says)
    assert "\n" not in message
    assert len(message) < 300


def test_every_error_is_a_value_error() -> None:
    assert issubclass(iomodel.IOModelError, ValueError)
