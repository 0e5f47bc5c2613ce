"""Laws of all workloads: the narrowest element, the longest part, and weights against counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel.workloads.call import ELEMENT_SIZE
from iomodel.workloads.elementwise import Elementwise

SHAPES: list[Any] = [
    iomodel.Attention(heads=4, kv_heads=2, q_len=9, head_dim=8, dtype="fp32"),
    iomodel.VarlenAttention(q_lens=[9, 2], kv_lens=[3, 20], head_dim=8, dtype="fp32"),
    iomodel.Linear(rows=9, in_features=8, out_features=7, dtype="fp32"),
    iomodel.MLP(rows=9, in_features=8, hidden_features=7, dtype="fp32"),
    iomodel.Experts(loads=[1, 9, 4], in_features=8, hidden_features=7, dtype="fp32"),
    iomodel.CrossEntropy(rows=9, in_features=8, vocab_size=7, dtype="fp32"),
    iomodel.Recurrence(tokens=9, head_dim=8, dtype="fp32"),
    Elementwise(rows=9, channels=8, dtype="fp32"),
]
each = pytest.mark.parametrize("workload", SHAPES, ids=lambda workload: type(workload).__name__)


@each
def test_the_narrowest_element_is_that_of_the_narrowest_type(workload: Any) -> None:
    """In quarters of a bit: 32 to the byte, whichever of the types is narrowed."""
    types = [name for name in type(workload).model_fields if name.endswith("dtype")]
    assert workload.narrowest == 32 * 4
    for name in types:
        for dtype in ("bf16", "fp8"):
            narrow = workload.model_copy(update={name: dtype})
            assert narrow.narrowest == 32 * ELEMENT_SIZE[dtype]
    for dtype in types:
        if dtype == "weight_dtype":
            assert workload.model_copy(update={dtype: "int4"}).narrowest == 16


@each
def test_no_part_is_longer_than_the_longest(workload: Any) -> None:
    """In every number but the multiplicity of a part; each is reached by some part."""
    longest = workload.longest.numbers
    for name in longest.keys() - {"batch", "groups"}:
        assert longest[name] == max(part.numbers[name] for part in workload.sequences)


@given(
    st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 3), st.booleans(),
    st.sampled_from(["bf16", "fp8", "int4"]),
)  # fmt: skip
def test_one_tile_reads_the_weights_of_a_layer_once(
    rows: int, terms: int, columns: int, groups: int, gated: bool, dtype: str
) -> None:
    shape = {"rows": rows, "in_features": terms, "out_features": columns, "groups": groups}
    layer = iomodel.Linear(**shape, gated=gated, weight_dtype=dtype)
    cost = iomodel.cost("gemm", layer, {"block_m": 9, "block_n": 9, "block_k": 9})
    weights = sum(elements for tensor, elements in cost.reads.items() if tensor.startswith("W"))
    assert weights == layer.parameters
    assert cost.flops == layer.flops
