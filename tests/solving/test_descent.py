"""Tiles of a call without a kernel: no other size of one of them, or of two together, is known to be faster."""

from __future__ import annotations

from typing import Any

import pytest

import iomodel
from iomodel.solving.certificate import TIE

SCAN = iomodel.Attention(q_len=520, heads=2, head_dim=13, mask="causal")
LINEAR = iomodel.Attention(q_len=4096, head_dim=64, dtype="int8", mask="causal")
SPARSE = iomodel.Attention(q_len=8192, head_dim=256, mask="causal")
MLP = iomodel.MLP(rows=300, in_features=512, hidden_features=1024)
FASTER: list[tuple[str, Any, str, dict[str, int], dict[str, Any]]] = [
    ("mamba1", SCAN, "a30", {"block_kv": 192, "block_channels": 16}, {"expand": 1}),
    ("linear_transformer", LINEAR, "rtx4070ti-super", {"block_q": 48}, {}),
    ("dsa", SPARSE, "gb200", {"block_q": 16, "block_kv": 32, "block_sum": 304}, {"top_k": 3173, "index_dim": 8}),
    ("fused_mlp", MLP, "rtx4070ti-super", {"block_m": 80, "block_n": 64, "block_k": 64}, {}),
]
"""Tiles between powers of two that a descent over powers of two alone had missed by 1 to 16 %."""


@pytest.mark.parametrize(("name", "call", "device", "tiles", "options"), FASTER, ids=[case[0] for case in FASTER])
def test_a_size_between_powers_of_two_is_found(
    name: str, call: Any, device: str, tiles: dict[str, int], options: dict[str, Any]
) -> None:
    solved = iomodel.solve(name, call, device, **options)
    other = iomodel.estimate(name, call, device, tiles, **options)
    assert solved.seconds <= other.seconds * (1 + TIE)
