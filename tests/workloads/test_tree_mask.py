"""Trees of drafted tokens, and a prefix that sequences share: outputs of counting kernels, and their counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import iomodel
from iomodel import InputError
from iomodel.testing import assert_traffic
from iomodel.workloads.elementwise import Elementwise
from tests.reference import flash2, pointwise
from tests.support.strategies import fraction_of_examples


@st.composite
def trees(draw: st.DrawFn, most: int = 9) -> list[int]:
    return [draw(st.integers(-1, i - 1)) for i in range(draw(st.integers(1, most)))]


def path(parents: list[int], node: int) -> list[int]:
    """The token and what it continues, from the cache on."""
    return [*(path(parents, parents[node]) if parents[node] >= 0 else []), node]


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention of rows of queries to all keys."""
    scores = q @ k.T / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    made: np.ndarray = weights @ v / weights.sum(-1, keepdims=True)
    return made


@given(trees(), st.integers(0, 11), st.sampled_from([1, 2, 4, 16]), st.sampled_from([1, 3, 4, 32]))
@example([-1, 0, 0, -1, 2], 5, 2, 4)
def test_a_drafted_token_attends_to_the_cache_and_its_path(
    parents: list[int], cached: int, block_q: int, block_kv: int
) -> None:
    n, d = len(parents), 3
    mask = iomodel.BlockMask.tree(parents, cached)
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, heads, rows, d)) for heads, rows in ((2, n), (1, cached + n), (1, cached + n)))
    seen = np.zeros((n, cached + n), dtype=bool)
    for node in range(n):
        seen[node, [*range(cached), *(cached + each for each in path(parents, node))]] = True
    ran = flash2.run(q, k, v, seen=seen, block_q=block_q, block_kv=block_kv)
    for node in range(n):
        rows = np.flatnonzero(seen[node])
        for head in range(2):
            expected = attention(q[0, head, node], k[0, 0, rows], v[0, 0, rows])
            np.testing.assert_allclose(ran.O[0, head, node], expected, rtol=1e-9)
    w = iomodel.Attention(heads=2, kv_heads=1, q_len=n, kv_len=cached + n, head_dim=d, mask=mask)
    cost = iomodel.cost("flash2", w, {"block_q": block_q, "block_kv": block_kv})
    assert_traffic(cost, ran)
    assert cost.flops == ran.flops
    assert cost.useful_flops == 2 * 2 * 2 * d * sum(cached + len(path(parents, node)) for node in range(n))


def test_a_chain_is_causal() -> None:
    shape = {"q_len": 6, "kv_len": 16, "head_dim": 4}
    chain = iomodel.BlockMask.tree([-1, 0, 1, 2, 3, 4], cached=10)
    for tiles in ({"block_q": 2, "block_kv": 3}, {"block_q": 4, "block_kv": 1}):
        one, other = (iomodel.cost("flash2", iomodel.Attention(**shape, mask=m), tiles) for m in (chain, "causal"))
        assert (one.reads, one.writes, one.flops) == (other.reads, other.writes, other.flops)


@pytest.mark.parametrize(
    ("parents", "cached", "message"),
    [
        ([-1, 1], 0, "parents: 1 given for token 1; allowed: -1, or an earlier token"),
        ([-2], 0, "parent 0: -2 given; allowed: an integer from -1"),
        ([], 0, r"parents: \[\] given; allowed: the parent of each token"),
        ("-1", 0, "parents: '-1' given; allowed: the parent of each token"),
        ([-1], -1, "cached: -1 given; allowed: an integer from 0"),
    ],
)
def test_a_wrong_tree_is_an_error_of_one_line(parents: list[int], cached: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        iomodel.BlockMask.tree(parents, cached)
    assert "\n" not in str(error.value)


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 9), st.integers(1, 9), st.integers(1, 2))
@fraction_of_examples(2)
def test_a_shared_prefix_is_read_once_and_merged(batch: int, heads: int, prefix: int, own: int, group: int) -> None:
    """Cascade attention: all queries over the shared keys as one sequence, each over its own keys, and the merge."""
    d, tiles = 3, {"block_q": 4, "block_kv": 4}
    rng = np.random.default_rng(1)
    q = rng.standard_normal((batch, heads * group, 1, d))
    shared_k, shared_v = rng.standard_normal((2, heads, prefix, d))
    k, v = rng.standard_normal((2, batch, heads, own, d))
    together = q.transpose(2, 1, 0, 3)
    first = flash2.run(together, shared_k[None], shared_v[None], packed=True, **tiles)
    second = flash2.run(q, k, v, packed=True, **tiles)
    rows = batch * heads * group
    o_a, lse_a = first.O.transpose(2, 1, 0, 3).reshape(rows, d), first.LSE[0].T.reshape(rows)
    merged = pointwise.merge_states(o_a, lse_a, second.O.reshape(rows, d), second.LSE.reshape(rows))
    for row, (b, h) in enumerate(np.ndindex(batch, heads * group)):
        keys, values = (
            np.concatenate([shared[h // group], each[b, h // group]]) for shared, each in ((shared_k, k), (shared_v, v))
        )
        np.testing.assert_allclose(merged.outputs["O"][row], attention(q[b, h, 0], keys, values), rtol=1e-9)
    shape = {"heads": heads * group, "kv_heads": heads, "head_dim": d}
    of_prefix = iomodel.cost("flash2", iomodel.Attention(**shape, q_len=batch, kv_len=prefix), tiles, packed=True)
    of_own = iomodel.cost("flash2", iomodel.Attention(**shape, batch=batch, q_len=1, kv_len=own), tiles, packed=True)
    of_merge = iomodel.cost("merge_states", Elementwise(rows=rows, channels=d))
    for cost, ran in ((of_prefix, first), (of_own, second), (of_merge, merged)):
        assert_traffic(cost, ran)
    assert of_prefix.reads["K"] == heads * prefix * d * -(-batch * group // 4)
