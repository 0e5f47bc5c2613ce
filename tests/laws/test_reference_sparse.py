"""The reference kernels of methods where a query sees some of the keys compute what their papers define."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel.testing.machine import Run, SRAMOverflowError
from tests.reference import dsa, loki, moba, nsa, reformer, routing_transformer, sparse_transformer
from tests.reference.extras import Extras
from tests.reference.masks import dense_attention, visible
from tests.reference.nsa_kernels import Blocks

MODULES: dict[str, Any] = {
    "sparse_transformer": sparse_transformer,
    "loki": loki,
    "dsa": dsa,
    "routing_transformer": routing_transformer,
    "reformer": reformer,
    "nsa": nsa,
    "moba": moba,
}
TILES = {
    "sparse_transformer": ["block_q", "block_kv"],
    "loki": ["block_proj", "block_q", "block_kv", "block_sum"],
    "dsa": ["block_sum", "block_q", "block_kv"],
    "routing_transformer": ["block_proj", "block_q", "block_kv"],
    "reformer": ["block_proj", "block_q", "block_kv"],
    "nsa": ["block_proj", "block_sum", "block_q", "block_kv"],
    "moba": ["block_proj", "block_sum", "block_q", "block_kv"],
}
COUNTED = ["reads", "writes", "widths", "flops", "exps", "sram_states", "hbm_states"]


@dataclass(frozen=True)
class Case:
    name: str
    q_len: int
    kv_len: int
    d: int = 2
    d_v: int = 3
    batch: int = 1
    kv_heads: int = 1
    group: int = 1
    right: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    tiles: dict[str, int] = field(default_factory=dict)
    seed: int = 0

    def tensors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        draw = np.random.default_rng(self.seed).standard_normal
        return (
            draw((self.batch, self.kv_heads * self.group, self.q_len, self.d)),
            draw((self.batch, self.kv_heads, self.kv_len, self.d)),
            draw((self.batch, self.kv_heads, self.kv_len, self.d_v)),
        )

    def run(self, *tensors: np.ndarray, **more: Any) -> Run:
        given = {"right": self.right, **self.tiles, **self.options, **more}
        run: Run = MODULES[self.name].run(*(tensors or self.tensors()), **given)
        return run

    def naive(self) -> np.ndarray:
        output: np.ndarray = MODULES[self.name].naive(*self.tensors(), right=self.right, **self.options)
        return output

    def dense(self) -> np.ndarray:
        """Softmax attention under the mask of the case."""
        seen = visible(self.q_len, self.kv_len, None, self.right, "bottom-right")
        return dense_attention(*self.tensors(), seen)[0]


def self_attention(name: str, n: int, **more: Any) -> Case:
    return Case(name, n, n, **more)


Draw = Callable[..., Any]
small = st.integers(1, 5)


def needs(name: str, draw: Draw, d: int) -> dict[str, Any]:
    """Lengths, mask and options that go together."""
    right = draw(st.sampled_from([None, 0]))
    if name == "sparse_transformer":
        stride, fixed, second = draw(st.integers(1, 6)), draw(st.booleans()), draw(st.booleans())
        n = stride * draw(st.integers(1, 4)) if fixed and second else draw(st.integers(stride, 14))
        options = {"stride": stride, "summary": draw(st.integers(1, stride)), "fixed": fixed, "second": second}
        return {"q_len": n, "kv_len": n, "right": 0, "options": options}
    if name == "loki":
        n = draw(st.integers(1, 12))
        options = {"rank": draw(st.integers(1, d)), "top_k": draw(st.integers(1, n))}
        return {"q_len": draw(st.integers(1, n)), "kv_len": n, "options": options}
    if name == "dsa":
        n = draw(st.integers(1, 12))
        options = {"index_heads": draw(st.integers(1, 3)), "index_dim": draw(small), "top_k": draw(st.integers(1, n))}
        options |= {"index_queries": draw(st.integers(1, 6)), "splits": draw(st.integers(1, 4))}
        return {"q_len": draw(st.integers(1, n)), "kv_len": n, "right": right, "options": options}
    if name == "routing_transformer":
        n = draw(st.integers(1, 12))
        return {"q_len": n, "kv_len": n, "right": right, "options": {"clusters": draw(st.integers(1, n))}}
    if name == "reformer":
        n = draw(st.integers(2, 12))
        options = {"buckets": 2 * draw(st.integers(1, n // 2)), "rounds": draw(st.integers(1, 3))}
        return {"q_len": n, "kv_len": n, "right": right, "group": 1, "options": options}
    if name == "moba":
        size, n = draw(st.integers(1, 4)), draw(st.integers(1, 6))
        options = {"select_block": size, "selected": draw(st.integers(1, 5))}
        return {"q_len": size * n, "kv_len": size * n, "right": 0, "options": options}
    stride = draw(st.integers(1, 3))
    length, size = (stride * draw(st.integers(1, 3)) for _ in range(2))
    least = -(-length // size)
    n = size * draw(st.integers(least, least + 4))
    options = {"compress_block": length, "compress_stride": stride, "select_block": size}
    options |= {"selected": draw(st.integers(1, n // size + 1)), "local": draw(st.integers(1, n))}
    return {"q_len": n, "kv_len": n, "right": 0, "options": options}


@st.composite
def cases(draw: Draw, name: str) -> Case:
    shape = {
        "d": draw(small),
        "d_v": draw(small),
        "batch": draw(st.integers(1, 2)),
        "kv_heads": draw(st.integers(1, 2)),
    }
    tiles = {tile: draw(st.integers(1, 14)) for tile in TILES[name]}
    shape |= {"group": draw(st.integers(1, 3)), "seed": draw(st.integers(0, 99))} | needs(name, draw, shape["d"])
    return Case(name, **shape, tiles=tiles)


def every(name: str, value: int) -> dict[str, int]:
    return dict.fromkeys(TILES[name], value)


@pytest.mark.parametrize("name", MODULES)
@given(data=st.data())
def test_it_computes_what_the_paper_defines(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name))
    run = case.run()
    np.testing.assert_allclose(run.O, case.naive(), rtol=1e-9, atol=1e-12)
    if name == "routing_transformer":  # fills the output first, and overwrites what clusters share
        clusters = case.options["clusters"]
        rows = case.q_len + clusters * -(-case.q_len // clusters)
        assert run.writes["O"] * case.q_len == run.O.size * rows
    else:
        assert run.writes["O"] == run.O.size


@pytest.mark.parametrize("name", MODULES)
@given(data=st.data())
def test_it_runs_at_its_own_peak_and_not_below(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name))
    run = case.run()
    again = case.run(capacity=run.sram_peak)
    assert (again.reads, again.writes) == (run.reads, run.writes)
    with pytest.raises(SRAMOverflowError):
        case.run(capacity=run.sram_peak - 1)


@pytest.mark.parametrize("name", [name for name in MODULES if name != "moba"])
@given(data=st.data())
def test_counts_do_not_depend_on_the_data(name: str, data: st.DataObject) -> None:
    """What is selected, hashed or routed changes which rows move, not how many; not even where all are equal."""
    case = data.draw(cases(name))
    drawn, ones = case.run(), case.run(*(np.ones_like(tensor) for tensor in case.tensors()))
    assert np.isfinite(ones.O).all()
    for what in COUNTED:
        assert getattr(drawn, what) == getattr(ones, what), what


@pytest.mark.parametrize("name", ["sparse_transformer", "nsa", "moba"])
@given(data=st.data())
def test_no_query_sees_what_comes_later(name: str, data: st.DataObject) -> None:
    case = data.draw(cases(name))
    known = data.draw(st.integers(0, case.q_len))
    tensors = case.tensors()
    for tensor in tensors:
        tensor[:, :, known:] *= -3
    # NumPy sums in another order where the later rows are others: MoBA of 24 queries differed by 8e-17.
    np.testing.assert_allclose(case.run().O[:, :, :known], case.run(*tensors).O[:, :, :known], rtol=1e-13)


@given(n=st.integers(1, 12), block_q=small, block_kv=small, group=st.integers(1, 2))
def test_a_sparse_transformer_with_nothing_left_out_is_causal_attention(
    n: int, block_q: int, block_kv: int, group: int
) -> None:
    tiles = {"block_q": block_q, "block_kv": block_kv}
    for stride, fixed, second in ((n, False, False), (n, True, False), (1, False, True), (1, True, True)):
        options = {"stride": stride, "summary": 1, "fixed": fixed, "second": second}
        case = self_attention("sparse_transformer", n, right=0, group=group, options=options, tiles=tiles)
        np.testing.assert_allclose(case.run().O, case.dense(), rtol=1e-9, atol=1e-12)


@given(q_len=st.integers(1, 5), more=st.integers(0, 6), rank=st.integers(1, 3), tile=small)
def test_loki_that_selects_every_key_is_attention(q_len: int, more: int, rank: int, tile: int) -> None:
    options = {"rank": rank, "top_k": q_len + more}
    case = Case("loki", q_len, q_len + more, d=3, group=2, kv_heads=2, options=options, tiles=every("loki", tile))
    np.testing.assert_allclose(case.run().O, case.dense(), rtol=1e-9, atol=1e-12)


def test_loki_with_all_components_selects_the_largest_scores() -> None:
    case = Case("loki", 4, 9, d=3, options={"rank": 3, "top_k": 2}, tiles=every("loki", 2))
    Q, K, V = case.tensors()
    S = Q @ K.swapaxes(-1, -2)
    expected, _ = dense_attention(Q, K, V, np.sort(S, axis=-1)[..., -2:-1] <= S)
    np.testing.assert_allclose(case.run().O, expected, rtol=1e-9)


@pytest.mark.parametrize("right", [None, 0])
def test_routing_to_one_cluster_is_attention_of_normalised_rows(right: int | None) -> None:
    name = "routing_transformer"
    case = self_attention(name, 7, d=4, right=right, group=2, options={"clusters": 1}, tiles=every(name, 3))
    Q, K, V = case.tensors()
    Q, K = (routing_transformer.normed(x.reshape(-1, 4)).reshape(x.shape) for x in (Q, K))
    np.testing.assert_allclose(Q.mean(axis=-1), 0.0, atol=1e-12)
    np.testing.assert_allclose(Q.var(axis=-1), 1.0, rtol=1e-3)
    if right == 0:  # the queries are the keys, so the two heads have no key head in common
        Q, K, V = (x.repeat(n, axis=1) for x, n in ((Q, 1), (Q, 1), (V, 2)))
    expected, _ = dense_attention(Q, K, V, visible(7, 7, None, right, "bottom-right"))
    np.testing.assert_allclose(case.run().O, expected, rtol=1e-9)


def test_routing_gives_zero_to_those_whom_no_cluster_takes() -> None:
    name = "routing_transformer"
    case = self_attention(name, 12, options={"clusters": 4}, tiles=every(name, 3), seed=3)
    left_out = (case.run().O == 0).all(axis=-1)
    assert 0 < left_out.sum() < 9  # w = 3 rows a cluster, some of them in several
    for name in ("Q_IDX", "K_IDX"):
        assert (np.diff(case.run().outputs[name], axis=-1) > 0).all()  # in the order of the sequence


@pytest.mark.parametrize("right", [None, 0])
@pytest.mark.parametrize("rounds", [1, 3])
def test_reformer_of_one_bucket_is_attention_to_others(right: int | None, rounds: int) -> None:
    options = {"buckets": 2, "rounds": rounds}
    case = self_attention("reformer", 7, d=3, right=right, options=options, tiles=every("reformer", 3))
    Q, K, V = case.tensors()
    Q = 50.0 + Q  # nearly one direction, so one of the two buckets
    others = visible(7, 7, None, right, "bottom-right") & ~np.eye(7, dtype=np.bool_)
    others[0, 0] = right == 0  # nobody else is there
    expected, _ = dense_attention(Q, Q / np.linalg.norm(Q, axis=-1, keepdims=True), V, others)
    np.testing.assert_allclose(case.run(Q, K, V).O, expected, rtol=1e-9)


@given(blocks=st.integers(1, 5), size=st.integers(1, 3), more=st.integers(0, 2), tile=small)
def test_branches_of_nsa_that_leave_nothing_out_are_causal_attention(
    blocks: int, size: int, more: int, tile: int
) -> None:
    n = blocks * size
    options = {"compress_block": 1, "compress_stride": 1, "select_block": size}
    options |= {"selected": blocks + more, "local": n}
    case = self_attention("nsa", n, right=0, group=2, kv_heads=2, options=options, tiles=every("nsa", tile))
    run, (Q, K, V) = case.run(), case.tensors()
    for branch in ("O_slc", "O_win"):
        np.testing.assert_allclose(run.outputs[branch], case.dense(), rtol=1e-9, atol=1e-12)
    given = nsa.weights(Q, K, V, compress_block=1)
    compressed, _ = dense_attention(Q, K @ given["W_K"][0], V @ given["W_V"][0], np.tri(n, dtype=np.bool_))
    np.testing.assert_allclose(run.outputs["O_cmp"], compressed, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("fixed", [False, True])
def test_sparse_transformer_first_factor_by_hand(fixed: bool) -> None:
    options = {"stride": 4 if fixed else 2, "fixed": fixed, "second": False}
    run = self_attention(
        "sparse_transformer", 6, right=0, options=options, tiles={"block_q": 2, "block_kv": 2}
    ).run()  # fmt: skip
    # Strided, queries 0-1 see keys 0-1, 2-3 see 0-3, 4-5 see 2-5: five tiles of 2 x 2. Fixed, the sections are 0-3,
    # with three tiles, and 4-5, with one.
    visits = 4 if fixed else 5
    assert run.reads == {"Q": 12, "K": visits * 4, "V": visits * 6}
    assert run.writes == {"O": 18}
    assert (run.flops, run.exps) == (visits * 2 * 4 * (2 + 3), visits * (4 + 2))
    # Q 4, K 4, V 6; in fp32 O 6, l 2, m 2, S 4.
    assert (run.sram_peak, run.sram_bytes(2)) == (28, 2 * 14 + 4 * 14)
    assert run.hbm_peak == 12 + 12 + 18 + 18


def test_sparse_transformer_second_factors_by_hand() -> None:
    tiles = {"block_q": 2, "block_kv": 2}
    strided = self_attention(
        "sparse_transformer", 6, right=0, options={"stride": 2, "second": True}, tiles=tiles
    ).run()  # fmt: skip
    # Positions 0 2 4 and 1 3 5, each with tiles of 2 x 2, 1 x 2 and 1 x 1.
    assert strided.reads == {"Q": 12, "K": 2 * 5 * 2, "V": 2 * 5 * 3}
    assert (strided.flops, strided.exps) == (2 * 2 * 7 * 5, 2 * (4 + 2 + 2 + 1 + 1 + 1))
    options = {"stride": 3, "summary": 1, "second": True, "fixed": True}
    fixed = self_attention("sparse_transformer", 6, right=0, options=options, tiles=tiles)
    # Sections 0-2 and 3-5, of two row tiles each; the first sees summary 2, the second 2 and 5.
    run = fixed.run()
    assert run.reads == {"Q": 12, "K": (2 + 4) * 2, "V": (2 + 4) * 3}
    assert (run.flops, run.exps) == (2 * 9 * 5, 9 + 9)
    np.testing.assert_array_equal(run.O[0, 0, :2], 0.0)  # before the first summary
    np.testing.assert_allclose(run.O[0, 0, 2:5], fixed.tensors()[2][0, 0, [2, 2, 2]])  # one key only
    # Q 4, K 2, V 3; O 6, l 2, m 2, S 2.
    assert (run.sram_peak, run.sram_bytes(2)) == (21, 2 * 9 + 4 * 12)


def test_loki_by_hand() -> None:
    tiles = {"block_proj": 2, "block_q": 2, "block_kv": 3, "block_sum": 2}
    run = Case("loki", 3, 5, d=4, d_v=2, group=2, options={"rank": 2, "top_k": 3}, tiles=tiles).run()
    # R goes twice for the new keys, in tiles of 2 and 1, and twice for each of two heads. Each head scores two tiles
    # of queries by two columns of 5 keys, and each of its 3 queries takes 3 whole keys.
    assert run.reads == {
        "R": (2 + 2 * 2) * 16, "K_new": 12, "Q": 24, "K": 2 * (2 * 5 * 2 + 3 * 3 * 4), "S": 30, "I": 18, "Q_rot": 24,
        "V": 2 * 3 * 3 * 2,
    }  # fmt: skip
    assert run.writes == {"K": 12, "Q_rot": 24, "S": 30, "I": 18, "O": 12}
    assert run.flops == 2 * 3 * 16 + 2 * (2 * 3 * 16 + 2 * 15 * 2 + 2 * 9 * (4 + 2))
    assert run.exps == 2 * 3 * (3 + 2)  # two tiles of selected keys
    # The scores: R 16, Q 2*4, K 3*2; Q_rot 2*4, S 2*3. Rotation: R 16, K_new 8, K 8. Attention: I 3, Q 4, K 8, V 4,
    # O 2, l, m, S 2. The choice: I 3 and one score.
    assert run.sram_states >= {(30, 0, 14, 0, 0, 0), (24, 0, 8, 0, 0, 0), (16, 0, 6, 3, 0, 0), (1, 0, 0, 3, 0, 0)}
    assert (run.sram_peak, run.sram_bytes(2)) == (44, 116)
    # Q 24, K 20, V 10, K_new 12, R 16; then Q_rot 24, S 30, I 18.
    assert run.hbm_peak == 82 + 72
    assert (run.widths["I"], run.widths["S"]) == ("int32", "io")


def test_dsa_by_hand() -> None:
    tiles = {"block_sum": 2, "block_q": 1, "block_kv": 3}
    options = {"index_heads": 2, "index_dim": 2, "top_k": 3}
    case = Case("dsa", 3, 4, d=3, d_v=2, group=2, right=0, options=options, tiles=tiles)
    run = case.run()
    # Queries see 2, 3 and 4 keys, so both tiles of queries, of 2 and 1, score both tiles of 2 keys. They attend to 2,
    # 3 and 3 keys, in two tiles of one head.
    assert run.reads == {
        "Q_I": 12, "W_I": 6, "K_I": 2 * 4 * 2, "S_I": 2 + 3 + 4, "I": 2 * 9, "Q": 18, "K": 2 * 8 * 3, "V": 2 * 8 * 2
    }  # fmt: skip
    assert run.writes == {"S_I": 12, "I": 9, "O": 12}
    assert run.flops == 12 * 2 * (2 * 2 + 2) + 2 * 3 * 3 * 2 * (3 + 2)  # a tile of three places is computed whole
    assert run.exps == 2 * 3 * (3 + 1)
    # Attention: Q 3, K 9, V 6; O 2, l, m, S 3; I 3. Scores: Q_I 8, K_I 4; W_I 4, S_I 4, products 8.
    assert run.sram_states >= {(18, 0, 7, 3, 0, 0), (12, 0, 16, 0, 0, 0), (0, 0, 1, 3, 0, 0)}
    assert (run.sram_peak, run.sram_bytes(2)) == (28, 88)
    # Q 18, K 12, V 8, Q_I 12, K_I 8, W_I 6; then S_I 12 and I 9, or I 9 and O 12.
    assert run.hbm_peak == 64 + 21
    assert run.widths | {"I": "int32", "S_I": "fp32", "W_I": "fp32"} == run.widths
    assert (run.outputs["I"][0, 0] >= 0).sum() == 2
    assert (run.outputs["I"][0, 1:] >= 0).all()
    Q, K, V = case.tensors()
    latent, apart = case.run(Q, K, V, extras=Extras(latent=True)), case.run(Q, K, K[..., :2])
    np.testing.assert_array_equal(latent.O, apart.O)
    assert latent.reads == {name: count for name, count in run.reads.items() if name != "V"}
    assert (latent.sram_peak, latent.hbm_peak) == (28, 85 - 8)  # as the scores need


@given(q_len=st.integers(1, 5), more=st.integers(0, 6), right=st.sampled_from([None, 0]), tile=small)
def test_dsa_that_selects_every_key_is_attention(q_len: int, more: int, right: int | None, tile: int) -> None:
    options = {"index_heads": 2, "index_dim": 1, "top_k": q_len + more}
    shape = {"d": 3, "group": 2, "kv_heads": 2, "right": right, "options": options}
    case = Case("dsa", q_len, q_len + more, **shape, tiles=every("dsa", tile))
    np.testing.assert_allclose(case.run().O, case.dense(), rtol=1e-9, atol=1e-12)


def test_routing_transformer_by_hand() -> None:
    name, options = "routing_transformer", {"clusters": 2}
    causal = self_attention(name, 5, right=0, options=options, tiles=every(name, 2)).run()
    # Three tiles are projected. Two clusters of w = 3: tiles of 2 and 1 rows, each over keys 2 and 1.
    assert causal.reads == {"MU": 3 * 4, "Q": 10 + 2 * (6 + 12), "Q_PROD": 10, "Q_IDX": 2 * (3 + 6), "V": 2 * 18}
    assert causal.writes == {"Q_PROD": 10, "Q_IDX": 6, "O": 15 + 2 * 9}
    assert (causal.flops, causal.exps) == (2 * 5 * 2 * 2 + 2 * 2 * 9 * 5, 2 * (9 + 6))
    # Q_IDX and K_IDX 2 each; Q 4, K 4, V 6; O 6, l 2, m 2, S 4.
    assert (causal.sram_peak, causal.sram_bytes(2)) == (32, 4 * 4 + 2 * 14 + 4 * 14)
    assert causal.hbm_peak == 10 + 15 + 4 + 6 + 15  # K is no input
    full = self_attention(name, 5, options=options, tiles=every(name, 2)).run()
    assert full.reads == {
        "MU": 24, "Q": 10 + 2 * 6, "K": 10 + 2 * 12, "Q_PROD": 10, "K_PROD": 10, "Q_IDX": 6, "K_IDX": 12, "V": 36,
    }  # fmt: skip
    assert full.writes == {**causal.writes, "K_PROD": 10, "K_IDX": 6}
    assert (full.flops, full.exps) == (causal.flops + 40, causal.exps)
    assert full.hbm_peak == 10 + 10 + 15 + 4 + 6 + 6 + 15  # more than the 20 + 6 while Q is assigned


@pytest.mark.parametrize("right", [None, 0])
def test_reformer_by_hand(right: int | None) -> None:
    options = {"buckets": 4, "rounds": 2}
    run = self_attention("reformer", 5, right=right, options=options, tiles=every("reformer", 2)).run()
    # m = 3: a chunk of 3 over itself, in tiles of 2 and 1 by 2 and 1, and one of 2 over all 5, in three tiles.
    assert run.reads == {
        "Q": 10 + 2 * 2 * (3 + 6 + 2 + 5), "R": 3 * 2 * 4, "BUCKET": 10 + 2 * 16, "ORDER": 2 * 16, "V": 2 * 11 * 3,
        "LSE_acc": 10, "O_acc": 30,
    }  # fmt: skip
    assert run.writes == {"BUCKET": 10, "ORDER": 10, "O_acc": 30, "LSE_acc": 10, "O": 15}
    assert run.flops == 2 * (2 * 5 * 2 * 2) + 2 * 2 * (9 + 10) * 5
    assert run.exps == 2 * (9 + 3 * 2 + 10 + 2 * 3) + 10
    # ORDER and BUCKET of rows and keys 2 each; Q 4, K 4, V 6; O 6, l 2, m 2, S 4.
    assert (run.sram_peak, run.sram_bytes(2)) == (36, 4 * 8 + 2 * 14 + 4 * 14)
    # Q 10, V 15, R 8; BUCKET and ORDER 10 each, O_acc 30, LSE_acc 10.
    assert run.hbm_peak == 33 + 60
    assert run.widths | {"BUCKET": "int32", "ORDER": "int32", "O_acc": "fp32", "LSE_acc": "fp32"} == run.widths


def test_nsa_by_hand() -> None:
    options = {"compress_block": 2, "compress_stride": 1, "select_block": 2, "selected": 2, "local": 2}
    run = self_attention("nsa", 4, d_v=1, right=0, group=2, options=options, tiles=every("nsa", 2)).run()
    # Compressed blocks 0-1, 1-2 and 2-3, made in tiles of 2 and 1, each of two offsets. Position t sees t of them: of
    # the tiles 0-1 and 2, those that begin before. Selected: 1, 1, 2 and 2 blocks, whose importance is read. Local:
    # three tiles of 2 x 2 a head.
    assert run.reads == {
        "Q": 3 * 4 + 3 * 4 + 4 * 4 + 2 * 8, "K": 2 * 6 + 6 * 4 + 2 * 12, "V": 2 * 3 + 6 * 2 + 2 * 6,
        "W_K": 16, "W_V": 4,
        "K_cmp": 2 * 7 * 2, "V_cmp": 7, "LSE": 6, "P_slc": 6, "I": 8, "GATE": 24, "O_cmp": 8, "O_slc": 8, "O_win": 8,
    }  # fmt: skip
    assert run.writes == {
        "K_cmp": 6, "V_cmp": 3, "O_cmp": 8, "LSE": 8, "P_slc": 8, "I": 8, "O_slc": 8, "O_win": 8, "O": 8
    }  # fmt: skip
    assert run.flops == 2 * 2 * 3 * (4 + 1) + 2 * 14 * 3 + 2 * 14 * 2 + 2 * 24 * 3 + 2 * 3 * 2 * 4 * 3
    assert run.exps == (14 + 2 * 4) + 14 + (24 + 6 * 2) + 2 * 3 * (4 + 2)
    # Selected: I 2; Q 4, K 4, V 2; O 2, l 2, m 2, S 4. Importance: Q 4, K 4; LSE 2, S 4, P_slc 2. Gates: 3 and 3; O 1.
    assert run.sram_states >= {(10, 0, 10, 2, 0, 0), (8, 0, 8, 0, 0, 0), (6, 0, 1, 0, 0, 0), (11, 0, 6, 0, 0, 0)}
    assert (run.sram_peak, run.sram_bytes(2)) == (22, 4 * 2 + 2 * 10 + 4 * 10)
    # Q 16, K 8, V 4, W_K 8, W_V 2, GATE 24; at the end the branches and O, 8 each.
    assert run.hbm_peak == 62 + 32
    assert run.widths | {"LSE": "fp32", "I": "int32"} == run.widths


@given(blocks=st.integers(5, 9), selected=st.integers(3, 6), more=st.integers(0, 2), group=st.integers(1, 3))
def test_nsa_selects_among_many_blocks(blocks: int, selected: int, more: int, group: int) -> None:
    """Long enough that the importance decides, and that the heads of a group would not choose alike."""
    options = {"compress_block": 1 + more, "compress_stride": 1, "select_block": 2, "selected": selected, "local": 1}
    shape = {"group": group, "d_v": 1, "seed": selected, "options": options, "tiles": every("nsa", 5)}
    case = self_attention("nsa", 2 * blocks, right=0, **shape)
    run, (Q, K, V) = case.run(), case.tensors()
    np.testing.assert_allclose(run.O, case.naive(), rtol=1e-9, atol=1e-12)
    covered = np.arange(2 * blocks - more)[:, None] + np.arange(1 + more)
    K_cmp = np.einsum("bhjrd,rde->bhje", K[:, :, covered], nsa.weights(Q, K, V, compress_block=1 + more)["W_K"])
    expected = nsa.shared_probability(Q, K_cmp, covered, 1, 2)
    np.testing.assert_allclose(run.outputs["P_slc"], expected, rtol=1e-9, atol=1e-12)


def test_importance_of_nsa_by_hand() -> None:
    """Eq. 9 with l = l' = 2 d: a compressed block inside counts twice, one that is half inside once."""
    blocks = Blocks(n=8, length=2, stride=1, size=2, selected=1)
    assert blocks.compressed == 7
    table = [[blocks.share(block, compressed) for compressed in range(7)] for block in range(4)]
    assert table == [[2, 1, 0, 0, 0, 0, 0], [0, 1, 2, 1, 0, 0, 0], [0, 0, 0, 1, 2, 1, 0], [0, 0, 0, 0, 0, 1, 2]]


def test_choice_of_nsa_by_hand() -> None:
    importance = np.array([0.0, 5.0, 7.0, 7.0, 0.0, 0.0, 9.0])
    # Block 6 is later than the own one, 5; of the equal blocks 2 and 3 the first.
    assert [nsa.choose(importance, 5, n) for n in (1, 2, 4, 9)] == [
        [5], [5, 0], [5, 0, 4, 2], [5, 0, 4, 2, 3, 1]
    ]  # fmt: skip
    assert nsa.choose(importance, 0, 3) == [0]
    assert nsa.choose(importance, 1, 3) == [1, 0]


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("sparse_transformer", None, {}), ("sparse_transformer", 0, {"fixed": True, "second": True, "stride": 4}),
        ("loki", 0, {}), ("dsa", 1, {"top_k": 2}), ("dsa", 0, {"top_k": 7}),
        ("routing_transformer", 1, {}), ("reformer", 1, {}), ("reformer", None, {"buckets": 3}),
        ("nsa", None, {}), ("nsa", 0, {"compress_block": 4, "compress_stride": 3, "select_block": 3}),
        ("moba", None, {}), ("moba", 0, {"select_block": 4}),
    ],
)  # fmt: skip
def test_it_refuses_what_the_method_does_not_have(name: str, right: int | None, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"self-attention|sections|every key|blocks"):
        self_attention(name, 6, right=right, options=wrong, tiles=every(name, 2)).run()
