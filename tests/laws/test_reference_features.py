"""The reference kernels compute attention with every feature of a call, at counts worked out by hand."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from iomodel.testing.machine import Run, SRAMOverflowError
from tests.laws.test_reference import ALGORITHMS, Shape, bound, depth, length, options
from tests.reference.backward.dense import dense_dropout
from tests.reference.extras import Extras, keep_mask

FEATURED = ["flash1", "flash2", "flash3", "split_kv", "tiled_query", "standard"]
ALIGNS = ["bottom-right", "top-left"]


Tensors = tuple[np.ndarray, np.ndarray, np.ndarray]


def dense(tensors: Tensors, seen: np.ndarray, extras: Extras, offset: int) -> Tensors:
    """O, LSE and P of the whole workload at once, with no tile and no online softmax."""
    Q, K, V = tensors
    batch, heads, q_len, d = Q.shape
    group, kv_len = heads // K.shape[1], K.shape[2]
    if extras.scales:
        assert extras.K_scale is not None
        assert extras.V_scale is not None
        last = {"head": (..., None, None), "token": (..., None)}[extras.scales]
        K, V = K * extras.K_scale[last], V * extras.V_scale[last]
    K, V = K[:, np.arange(heads) // group], V[:, np.arange(heads) // group]
    S = np.einsum("bhid,bhjd->bhij", Q, K) * d**-0.5
    i, j = np.arange(q_len)[:, None], np.arange(kv_len)[None, :]
    h = np.arange(heads)[:, None, None]
    if extras.softcap is not None:
        S = extras.softcap * np.tanh(S / extras.softcap)
    if extras.bias is not None:
        S = S + extras.bias
    if extras.slopes is not None:
        S = S + extras.slopes[:, None, None] * (j - i - offset)
    W = np.where(seen, np.exp(S), 0.0)
    total = W.sum(axis=-1)
    if extras.sinks is not None:
        total = total + np.exp(extras.sinks)[:, None]
    with np.errstate(divide="ignore"):
        lse = np.log(total)
    P = W / np.where(total == 0, 1.0, total)[..., None]
    Z = np.ones_like(P)
    if extras.dropout is not None:
        Z = np.stack([keep_mask(extras, b, h, i, j) for b in range(batch)]) / (1 - extras.dropout)
    return np.einsum("bhij,bhjc->bhic", P * Z, V), lse, P


@dataclass(frozen=True)
class Call:
    shape: Shape
    extras: Extras
    seen: np.ndarray | None = None

    def tensors(self) -> Tensors:
        Q, K, V = self.shape.tensors()
        return Q, K, K[..., : self.shape.d_v] if self.extras.latent else V

    def run(self, name: str, **chosen: Any) -> Run:
        mask = self.shape.mask | {"seen": self.seen}
        run: Run = ALGORITHMS[name].run(*self.tensors(), extras=self.extras, **mask, **chosen)
        return run

    def dense(self) -> Tensors:
        offset = self.shape.kv_len - self.shape.q_len if self.shape.mask.get("align") != "top-left" else 0
        seen = self.shape.visible() if self.seen is None else self.seen
        return dense(self.tensors(), seen, self.extras, offset)


def numbers(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def features(shape: Shape, *names: str) -> Extras:
    """The named features of a shape, with arbitrary numbers."""
    heads = shape.kv_heads * shape.group
    cache = (shape.batch, shape.kv_heads)
    chosen: dict[str, dict[str, Any]] = {
        "bias": {"bias": numbers(shape.batch, heads, shape.q_len, shape.kv_len, seed=2)},
        "softcap": {"softcap": 0.7},
        "alibi": {"slopes": 0.3 * numbers(heads, seed=3)},
        "sinks": {"sinks": numbers(heads, seed=4)},
        "dropout": {"dropout": 0.4, "seed": 5},
        "dtype": {"own_kv_dtype": True},
        "head": {"scales": "head", "K_scale": numbers(*cache, seed=6), "V_scale": numbers(*cache, seed=7)},
        "token": {
            "scales": "token",
            "K_scale": numbers(*cache, shape.kv_len, seed=8),
            "V_scale": numbers(*cache, shape.kv_len, seed=9),
        },
        "paged": {"page_size": 3, "page_seed": 1},
        "latent": {"latent": True},
    }
    return replace(Extras(), **{key: value for name in names for key, value in chosen[name].items()})


@st.composite
def calls(draw: Callable[..., Any], name: str) -> Call:
    latent = draw(st.booleans())
    d = draw(depth)
    d_v = draw(st.integers(1, d) if latent else depth)
    heads = st.just(1) if latent else st.integers(1, 2)
    mask = {"left": draw(bound), "right": draw(bound), "align": draw(st.sampled_from(ALIGNS))}
    shape = Shape(
        draw(length), draw(length), d, d_v,
        batch=draw(st.integers(1, 2)), kv_heads=draw(heads), group=draw(st.integers(1, 3)), mask=mask,
    )  # fmt: skip
    names = [n for n in ["bias", "softcap", "alibi", "sinks", "dropout", "dtype"] if draw(st.booleans())]
    names += ["latent"] if latent else draw(st.sampled_from([[], ["head"], ["token"]]))
    extras = features(shape, *names)
    if name != "standard":
        extras = replace(extras, page_size=draw(st.none() | st.integers(1, 9)), page_seed=draw(st.integers(0, 9)))
    pairs = shape.q_len * shape.kv_len
    bits = draw(st.none() | st.lists(st.booleans(), min_size=pairs, max_size=pairs))
    return Call(shape, extras, None if bits is None else np.reshape(bits, (shape.q_len, shape.kv_len)))


@pytest.mark.parametrize("name", FEATURED)
@given(data=st.data())
def test_it_computes_attention_with_any_features(name: str, data: st.DataObject) -> None:
    call = data.draw(calls(name))
    run = call.run(name, **data.draw(options(name)))
    output, lse, P = call.dense()
    np.testing.assert_allclose(run.O, output, rtol=1e-9, atol=1e-11)
    if name == "standard":
        np.testing.assert_allclose(run.outputs["P"], P, rtol=1e-9, atol=1e-12)
        if "P_drop" in run.outputs:
            z = dense_dropout(P.shape, call.extras)
            np.testing.assert_allclose(run.outputs["P_drop"], P * z, rtol=1e-9, atol=1e-12)
            np.testing.assert_array_equal(run.outputs["dropout_mask"], z > 0)
    elif name != "tiled_query":
        np.testing.assert_allclose(run.outputs["LSE"], lse, rtol=1e-9, atol=1e-11)
    if name == "flash1":
        l, m = run.outputs["l"], run.outputs["m"]
        np.testing.assert_allclose(l * np.exp(m), np.exp(lse), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FEATURED)
@given(data=st.data())
def test_it_runs_at_its_own_peak_and_not_below_with_any_features(name: str, data: st.DataObject) -> None:
    call, chosen = data.draw(calls(name)), data.draw(options(name))
    run = call.run(name, **chosen)
    again = call.run(name, **chosen, capacity=run.sram_peak)
    assert (again.reads, again.writes) == (run.reads, run.writes)
    with pytest.raises(SRAMOverflowError):
        call.run(name, **chosen, capacity=run.sram_peak - 1)


@pytest.mark.parametrize("name", ALGORITHMS)
@given(data=st.data(), q_len=length, kv_len=length)
def test_a_mask_can_be_given_element_by_element(name: str, data: st.DataObject, q_len: int, kv_len: int) -> None:
    shape = Shape(q_len, kv_len, 2, 3, group=2, mask={"left": data.draw(bound), "right": data.draw(bound)})
    chosen = data.draw(options(name))
    assume(name != "eager" or shape.mask != {"left": None, "right": None})  # no mask at all is not added
    window = shape.run(name, **chosen)
    explicit: Run = ALGORITHMS[name].run(*shape.tensors(), seen=shape.visible(), **chosen)
    for what in ["reads", "writes", "flops", "exps", "sram_states", "hbm_states"]:
        assert getattr(explicit, what) == getattr(window, what)
    np.testing.assert_array_equal(explicit.O, window.O)
    bits = data.draw(st.lists(st.booleans(), min_size=q_len * kv_len, max_size=q_len * kv_len))
    seen = np.reshape(bits, (q_len, kv_len))
    anything: Run = ALGORITHMS[name].run(*shape.tensors(), seen=seen, **chosen)
    np.testing.assert_allclose(anything.O, dense(shape.tensors(), seen, Extras(), 0)[0], rtol=1e-9, atol=1e-11)


# Two heads share one key head; 3 queries, 5 keys, causal: query i sees keys to i + 2. In tiles of 2 rows and
# 2 keys, key tiles 0-1, 2-3 and 4. Plain, for each of 2 heads: queries 0-1 visit two key tiles, query 2 three.
# Packed, one query a tile: queries 0 and 1 visit two key tiles each, query 2 three.
SMALL = Shape(3, 5, 2, 3, group=2, mask={"right": 0})
TILES: dict[str, dict[str, Any]] = {
    name: {"block_q": 2, "block_kv": 2} for name in ["flash1", "flash2", "flash3", "split_kv", "tiled_query"]
}
# Standard attention has 2 x 2 tiles of each product for a head, 3 x 2 packed.
TILES["standard"] = {"gemm1_m": 2, "gemm1_n": 3, "gemm2_m": 2, "gemm2_n": 2}
TILES["split_kv"]["splits"] = 2  # key tiles 0-1 and 2-3; key tile 4
TILES["ideal"] = {}
PAIRS = {False: 2 * (2 * 4 + 1 * 5), True: 2 * 4 + 2 * 4 + 2 * 5}  # elements of the tiles of S
KEYS = {False: 2 * (4 + 5), True: 4 + 4 + 5}  # keys of the key tiles visited


TILED = ["flash1", "flash2", "flash3", "split_kv"]  # where K and V are on chip together


def small(name: str, packed: bool, *names: str, shape: Shape = SMALL, **more: Any) -> Run:
    extras = replace(features(shape, *names), **more)
    return Call(shape, extras).run(name.replace("ideal", "standard"), packed=packed, **TILES[name])


def test_what_the_features_cost_is_beside_the_rest() -> None:
    """No feature but pages and a latent cache changes what is moved otherwise."""
    for name in TILES:
        for packed in (False, True):
            plain = small(name, packed)
            for features in (["bias"], ["softcap"], ["alibi"], ["sinks"], ["dropout"], ["dtype", "head"], ["token"]):
                run = small(name, packed, *features)
                for tensor, count in (plain.reads + plain.writes).items():
                    assert run.reads[tensor] + run.writes[tensor] == count, (name, features, tensor)
                assert run.flops == plain.flops
                new = {"bias", "slopes", "sinks", "R", "K_scale", "V_scale"}
                assert set(run.reads) | set(run.writes) <= set(plain.reads) | set(plain.writes) | new


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", TILES)
def test_bias_and_softcap_by_hand(name: str, packed: bool) -> None:
    plain, run = small(name, packed), small(name, packed, "bias", "softcap")
    pairs = 2 * 15 if name in {"standard", "ideal"} else PAIRS[packed]  # S is whole without tiles of it
    assert (run.reads["bias"], run.tanhs) == (pairs, pairs)
    assert (run.exps, plain.tanhs) == (plain.exps, 0)
    assert run.hbm_peak - plain.hbm_peak == 30
    # The bias has the size of a tile of S; in tiled_query it takes the place of a V tile of 2 x 3 with K, 2 x 2;
    # in standard attention it is beside S 2 x 3, Q 2 and K 3; whole, beside the 6 x 5 of S, or the 3 x 5 of one head.
    rows = 6 if packed else 3
    kernel1 = {"standard": 6 + 2 + 3 + 6, "ideal": rows * (2 + 5 + 5) + 10}
    added = {**dict.fromkeys(TILED, 4), "tiled_query": 4 + 4 - 6}
    assert run.sram_peak == kernel1.get(name, plain.sram_peak + added.get(name, 0))
    if name in TILED:
        assert run.sram_bytes(2) - plain.sram_bytes(2) == 4 * 2


@pytest.mark.parametrize(
    ("name", "slopes", "sinks"),
    [  # plain and packed; packed, every load is of two heads
        ("flash2", (2 * 2, 3 * 2), (2 * 2, 3 * 2)),
        ("flash3", (2 * 2, 3 * 2), (2 * 2, 3 * 2)),
        ("tiled_query", (2 * 2, 3 * 2), (2 * 2, 3 * 2)),
        ("flash1", (2 * 3, 3 * 2), (2 * 2, 3 * 2)),  # the slopes for each of three key tiles
        ("split_kv", (2 * (1 + 2), (1 + 1 + 2) * 2), (6, 6)),  # for each split that a tile sees; each row
        ("standard", (2 * 4, 6 * 2), (6, 6)),  # each tile of S; each row
        ("ideal", (2, 2), (2, 2)),
    ],
)
def test_what_is_loaded_once_a_head_by_hand(name: str, slopes: tuple[int, int], sinks: tuple[int, int]) -> None:
    for packed in (False, True):
        plain, run = small(name, packed), small(name, packed, "alibi", "sinks")
        assert (run.reads["slopes"], run.reads["sinks"]) == (slopes[packed], sinks[packed])
        assert run.exps - plain.exps == (0 if name == "flash1" else 6)
        assert (run.widths["slopes"], run.widths["sinks"]) == ("fp32", "io")
        assert run.hbm_peak - plain.hbm_peak == 4
        heads = 1 + packed
        added = {"flash1": heads, "split_kv": heads}
        added |= dict.fromkeys(["flash2", "flash3", "tiled_query"], 2 * heads)
        if name in added:  # flash1 and split_kv read the sinks in a phase of their own
            assert run.sram_peak - plain.sram_peak == added[name]
            sinks_here = added[name] - heads
            assert run.sram_bytes(2) - plain.sram_bytes(2) == heads * 4 + sinks_here * 2


def test_sinks_are_read_by_tiles_that_see_nothing() -> None:
    # As in the tests without features: of query tiles 0-1, 2-3 and 4, the first sees nothing.
    shape = Shape(5, 2, 1, 1, mask={"right": 0})
    for name in ["flash2", "flash3", "tiled_query", "split_kv"]:
        call = Call(shape, features(shape, "sinks", "alibi", "head"))
        chosen = {"splits": 1} if name == "split_kv" else {}
        run = call.run(name, block_q=2, block_kv=1, **chosen)
        plain = Call(shape, Extras()).run(name, block_q=2, block_kv=1, **chosen)
        assert (run.reads["sinks"], run.reads["slopes"], run.reads["K_scale"], run.reads["V_scale"]) == (3, 2, 2, 2)
        assert run.exps - plain.exps == 5
        np.testing.assert_array_equal(run.O[0, 0, :3], 0.0)
        if run.LSE is not None:
            assert call.extras.sinks is not None
            np.testing.assert_allclose(run.LSE[0, 0, :3], call.extras.sinks[0])


def test_standard_softmax_holds_a_sink_beside_its_rows() -> None:
    shape = Shape(3, 9, 1, 1, group=2)
    for packed, rows, sinks in [(False, 1, 1), (True, 1, 1)]:
        tiles = {"gemm1_m": 1, "gemm1_n": 1, "gemm2_m": 1, "gemm2_n": 1}
        run = Call(shape, features(shape, "sinks")).run("standard", packed=packed, **tiles)
        assert run.sram_states >= {(sinks, 0, rows * 9, 0, 0, 0)}
    for packed, rows, sinks in [(False, 3, 1), (True, 6, 2)]:
        run = Call(shape, features(shape, "sinks")).run("standard", packed=packed)
        assert run.sram_states >= {(sinks, 0, rows * 9, 0, 0, 0)}


def test_buffers_are_full_tiles_however_small_the_shape() -> None:
    tiles = {"gemm1_m": 4, "gemm1_n": 8, "gemm2_m": 1, "gemm2_n": 1}
    run = Call(SMALL, features(SMALL, "bias", "token")).run("standard", **tiles)
    assert run.sram_peak == 4 * 8 + 4 + 8 + 4 * 8 + 8  # S, Q, K, bias, scales
    run = Call(SMALL, features(SMALL, "bias", "token")).run("flash2", block_q=4, block_kv=8)
    assert run.sram_peak == 4 * (2 + 3 + 1 + 1) + 8 * (2 + 3 + 1 + 1) + 2 * 4 * 8


@pytest.mark.parametrize("name", TILES)
def test_a_sink_of_any_size_overflows_nothing(name: str) -> None:
    plain = small(name, False)
    np.testing.assert_allclose(small(name, False, sinks=np.full(2, -1e4)).O, plain.O, rtol=1e-12)
    drained = small(name, False, sinks=np.full(2, 1e4))
    np.testing.assert_array_equal(drained.O, 0.0)
    if drained.LSE is not None:
        np.testing.assert_array_equal(drained.LSE, 1e4)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", TILES)
def test_dropout_by_hand(name: str, packed: bool) -> None:
    plain, run = small(name, packed), small(name, packed, "dropout")
    # Standard attention masks P as it multiplies by V: whole, or for each of two column tiles of O.
    assert run.randoms == {"standard": 2 * 30, "ideal": 30}.get(name, PAIRS[packed])
    assert (run.writes["R"], run.reads["R"], run.widths["R"]) == (2, 0, "int64")
    assert run.sram_states == plain.sram_states
    assert run.hbm_peak_bytes(2) - plain.hbm_peak_bytes(2) == 16
    if run.LSE is not None and plain.LSE is not None:
        np.testing.assert_array_equal(run.LSE, plain.LSE)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["standard", "ideal"])
def test_dropout_in_a_pass_of_its_own_by_hand(name: str, packed: bool) -> None:
    """Each of 2 x 3 x 5 elements of P is drawn once, in whatever tiles O is made, and no state is left."""
    shape = replace(SMALL, mask={})
    call = Call(shape, features(shape, "dropout"))
    run = call.run(name.replace("ideal", "standard"), packed=packed, dropout_pass=True, **TILES[name])
    np.testing.assert_allclose(run.O, call.dense()[0], rtol=1e-9, atol=1e-11)
    assert (run.randoms, run.writes["dropout_mask"], run.writes["P_drop"], run.reads["P"]) == (30, 30, 30, 30)
    assert "R" not in run.writes
    assert run.widths["dropout_mask"] == "bool"


def test_dropout_keeps_its_share_everywhere() -> None:
    extras = Extras(dropout=0.3, seed=7)
    at = [np.arange(n) for n in (8, 32, 64)]
    z = np.stack([keep_mask(extras, b, at[0][:, None, None], at[1][:, None], at[2]) for b in range(4)])
    assert abs(z.mean() - 0.7) < 0.01
    for axis in range(4):  # neighbours along any axis agree no more often than independent ones would
        pairs = np.diff(z.astype(int), axis=axis) == 0
        assert abs(pairs.mean() - (0.7**2 + 0.3**2)) < 0.01
    other = keep_mask(replace(extras, seed=8), 0, at[0][:, None, None], at[1][:, None], at[2])
    assert abs((other == z[0]).mean() - 0.58) < 0.02


@pytest.mark.parametrize(
    ("name", "head", "token"),
    [  # plain and packed, of K and of V alike
        ("flash2", (2 * 2, 3), (KEYS[False], KEYS[True])),
        ("flash3", (2 * 2, 3), (KEYS[False], KEYS[True])),
        ("tiled_query", (2 * 2, 3), (KEYS[False], KEYS[True])),
        ("flash1", (2 * 3, 3), (2 * 5, 5)),
        ("split_kv", (2 * (1 + 2), 1 + 1 + 2), (KEYS[False], KEYS[True])),
        ("standard", (2 * 4, 6), (2 * 2 * 5, 3 * 5)),  # V_scale for each of two column tiles as well
        ("ideal", (2, 1), (2 * 5, 5)),
    ],
)
def test_scales_by_hand(name: str, head: tuple[int, int], token: tuple[int, int]) -> None:
    for packed in (False, True):
        plain = small(name, packed)
        run = small(name, packed, "dtype", "head")
        assert (run.reads["K_scale"], run.reads["V_scale"]) == (head[packed], head[packed])
        assert (run.widths["K"], run.widths["V"], run.widths["K_scale"]) == ("kv", "kv", "fp32")
        assert run.hbm_peak_bytes(2, 1) == plain.hbm_peak_bytes(2) - 5 * (2 + 3) + 2 * 4
        moved = plain.reads["K"] + plain.reads["V"]
        assert run.hbm_bytes(2, 1) == plain.hbm_bytes(2) - moved + 4 * 2 * head[packed]
        if name in TILED:
            assert run.sram_peak - plain.sram_peak == 2
            assert run.sram_bytes(2, 1) == plain.sram_bytes(2) - 2 * (2 + 3) + 2 * 4
        run = small(name, packed, "token")
        columns = 2 if name == "standard" else 1
        assert (run.reads["K_scale"], run.reads["V_scale"]) == (token[packed], token[packed] * columns)
        assert run.hbm_peak - plain.hbm_peak == 2 * 5
        # A scale a key of a tile: of K and V, or, where these are not on chip together, of V, the larger.
        added = {**dict.fromkeys(TILED, 4), "tiled_query": 2}
        if name in added:
            assert run.sram_peak - plain.sram_peak == added[name]
            assert run.sram_bytes(2) - plain.sram_bytes(2) == 4 * added[name]


def test_standard_holds_scales_beside_its_operands() -> None:
    # Tiled: S 2*3, Q 2, K 3; a row of 5; O 2*2, P 2, V 2. The scales of a tile of S, and one for a slice of V.
    assert small("standard", False, "head").sram_states >= {(5, 0, 6 + 1, 0, 0, 0), (4, 0, 4 + 1, 0, 0, 0)}
    assert small("standard", False, "token").sram_states >= {(5, 0, 6 + 3, 0, 0, 0), (4, 0, 4 + 1, 0, 0, 0)}
    assert small("standard", False, "dtype", "token").sram_states >= {(2, 3, 9, 0, 0, 0), (2, 2, 5, 0, 0, 0)}
    # Whole: Q 3*2, K 5*2, S 3*5; P 3*5, V 5*3, O 3*3.
    assert small("ideal", False, "dtype", "head").sram_states >= {(6, 10, 16, 0, 0, 0), (15, 15, 10, 0, 0, 0)}
    assert small("ideal", False, "dtype", "token").sram_states >= {(6, 10, 20, 0, 0, 0), (15, 15, 14, 0, 0, 0)}


PAGED = {  # page size: block_table entries and keys moved, plain and packed, and keys in memory
    # A page a key: nothing is beside the last one.
    1: ((2 * (4 + 5), 4 + 4 + 5), (KEYS[False], KEYS[True]), 5),
    # A tile a page; the last page has a sixth key.
    2: ((2 * (2 + 3), 2 + 2 + 3), (2 * (4 + 6), 4 + 4 + 6), 6),
    # Keys 0-2 and 3-5: the second key tile is in both pages.
    3: ((2 * (3 + 4), 3 + 3 + 4), (2 * (4 + 6), 4 + 4 + 6), 6),
    4: ((2 * (2 + 3), 2 + 2 + 3), (2 * (4 + 6), 4 + 4 + 6), 8),
    5: ((2 * (2 + 3), 2 + 2 + 3), (KEYS[False], KEYS[True]), 5),
    8: ((2 * (2 + 3), 2 + 2 + 3), (2 * (4 + 6), 4 + 4 + 6), 8),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", PAGED)
def test_pages_by_hand(size: int, packed: bool) -> None:
    entries, keys, held = (part[packed] if isinstance(part, tuple) else part for part in PAGED[size])
    for name in ["flash2", "flash3", "split_kv", "tiled_query"]:
        plain, run = small(name, packed), small(name, packed, page_size=size)
        # The second pass of tiled_query looks the pages up again.
        assert run.reads["block_table"] == entries * (1 + (name == "tiled_query"))
        assert (run.reads["K"], run.reads["V"], run.widths["block_table"]) == (keys * 2, keys * 3, "int32")
        assert (run.flops, run.exps, run.sram_states) == (plain.flops, plain.exps, plain.sram_states)
        assert run.hbm_peak - plain.hbm_peak == (held - 5) * (2 + 3) + -(-5 // size)
    flash1 = small("flash1", packed, page_size=size)
    once = [slice(0, 2), slice(2, 4), slice(4, min(6, held))]
    pages = sum(len({key // size for key in range(keys.start, min(keys.stop, 5))}) for keys in once)
    heads = 1 if packed else 2
    assert flash1.reads["block_table"] == heads * pages
    assert flash1.reads["K"] == heads * 2 * sum(keys.stop - keys.start for keys in once)


def test_pages_smaller_than_a_tile_by_hand() -> None:
    # Keys 0-3 and 4; pages of 3. The first tile is in pages 0 and 1, the second in page 1 with key 5 beside key 4.
    call = Call(Shape(1, 5, 1, 1, batch=2, kv_heads=2), Extras(page_size=3, page_seed=2))
    run = call.run("flash2", block_q=1, block_kv=4)
    assert run.reads == {"Q": 4, "K": 4 * 6, "V": 4 * 6, "block_table": 4 * 3}
    # Two pages of 3 for each of two sequences, of both heads; their addresses are those of K and of V.
    assert run.hbm_peak == 4 + 2 * (2 * 2 * 3 * 2) + 2 * 2 + 4 + 4


def test_a_page_ends_the_last_tile_or_the_tile_itself_does() -> None:
    # 5 keys in one page of 16: the second tile of 4 has key 4 and three more of the page, which are moved.
    run = Call(Shape(1, 5, 1, 1), Extras(page_size=16)).run("flash1", block_q=1, block_kv=4)
    assert (run.reads["K"], run.reads["V"], run.reads["block_table"], run.flops) == (8, 8, 2, 2 * 5 * 2)


@pytest.mark.parametrize("packed", [False, True])
def test_latent_by_hand(packed: bool) -> None:
    shape = replace(SMALL, d=3, d_v=2)
    for name in TILES:
        plain, run = small(name, packed, shape=shape), small(name, packed, "latent", shape=shape)
        alone = name in {"tiled_query", "standard", "ideal"}  # there V is loaded without K
        assert run.reads["V"] == (plain.reads["V"] if alone else 0)
        assert (run.reads["K"], run.flops, run.widths["V"]) == (plain.reads["K"], plain.flops, "io")
        assert plain.hbm_peak - run.hbm_peak == 5 * 2
        held = alone or name == "flash3"  # there K holds the next tile already
        assert plain.sram_peak - run.sram_peak == (0 if held else 2 * 2)  # of a tile of V


def test_what_a_kernel_does_not_compute_it_refuses() -> None:
    with pytest.raises(ValueError, match="no pages"):
        small("standard", False, "paged")
    with pytest.raises(ValueError, match="plain"):
        Call(SMALL, Extras(softcap=1.0)).run("small_cache", block_q=2, block_kv=2)
    Q, K, V = SMALL.tensors()
    with pytest.raises(ValueError, match="latent"):
        ALGORITHMS["flash2"].run(Q, K, V, extras=Extras(latent=True), block_q=2, block_kv=2)
