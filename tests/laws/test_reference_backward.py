"""The backward reference kernels compute gradients, within the memory they declare, at counts worked out by hand."""

import ast
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from iomodel.testing.machine import HBM, Run, SRAMOverflowError
from tests.reference.backward.dense import dense_gradients, forward_saved
from tests.reference.extras import NONE, Extras
from tests.reference.masks import dense_attention, visible

ALGORITHMS = ["standard", "eager", "flash1", "flash2", "flash3", "two_pass", "two_products"]
TILED = [name for name in ALGORITHMS if name not in {"standard", "eager", "two_products"}]
KERNELS = {name: import_module(f"tests.reference.backward.{name}").run for name in ALGORITHMS}
GEMM_TILES = [f"gemm{number}_{side}" for number in (3, 4, 5, 6) for side in "mn"]
FILES = sorted((Path(__file__).parents[1] / "reference" / "backward").glob("*.py"))
CAUSAL = {"right": 0}
DIAGONAL = {"left": 0, "right": 0}


@dataclass(frozen=True)
class Shape:
    q_len: int
    kv_len: int
    d: int
    d_v: int
    batch: int = 1
    kv_heads: int = 1
    group: int = 1
    mask: dict[str, Any] = field(default_factory=dict)
    extras: Extras = NONE

    @property
    def heads(self) -> int:
        return self.kv_heads * self.group

    def tensors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        draw = np.random.default_rng(0).standard_normal
        return (
            draw((self.batch, self.heads, self.q_len, self.d)),
            draw((self.batch, self.kv_heads, self.kv_len, self.d)),
            draw((self.batch, self.kv_heads, self.kv_len, self.d_v)),
            draw((self.batch, self.heads, self.q_len, self.d_v)),
        )

    @property
    def align(self) -> str:
        return str(self.mask.get("align", "bottom-right"))

    def visible(self) -> np.ndarray:
        if "seen" in self.mask:
            return np.asarray(self.mask["seen"])
        return visible(self.q_len, self.kv_len, self.mask.get("left"), self.mask.get("right"), self.align)

    def saved(self) -> dict[str, np.ndarray]:
        return forward_saved(*self.tensors()[:3], seen=self.visible(), align=self.align, extras=self.extras)

    def gradients(self) -> dict[str, np.ndarray]:
        return dense_gradients(*self.tensors(), seen=self.visible(), align=self.align, extras=self.extras)

    def run(self, name: str, **options: Any) -> Run:
        run: Run = KERNELS[name](*self.tensors(), self.saved(), **self.mask, extras=self.extras, **options)
        return run


length, depth, tile = st.integers(1, 12), st.integers(1, 5), st.integers(1, 14)
bound = st.none() | st.integers(0, 8)
windows = st.fixed_dictionaries({"left": bound, "right": bound, "align": st.sampled_from(["bottom-right", "top-left"])})


def random_mask(q_len: int, kv_len: int, seed: int, density: float) -> np.ndarray:
    return np.random.default_rng(seed).random((q_len, kv_len)) < density


@st.composite
def features(draw: Callable[..., Any], shape: Shape) -> Extras:
    """Any of the terms of the scores, a sink and dropout."""
    normal = np.random.default_rng(1).standard_normal
    return Extras(
        bias=normal((shape.batch, shape.heads, shape.q_len, shape.kv_len)) if draw(st.booleans()) else None,
        softcap=draw(st.sampled_from([None, 0.7, 3.0])),
        slopes=normal(shape.heads) / 4 if draw(st.booleans()) else None,
        sinks=normal(shape.heads) if draw(st.booleans()) else None,
        dropout=draw(st.sampled_from([None, 0.25, 0.6])),
        seed=draw(st.integers(0, 5)),
    )


@st.composite
def shapes(draw: Callable[..., Any], length: Any = length, depth: Any = depth) -> Shape:
    counts = [draw(length), draw(length), draw(depth), draw(depth)]
    shape = Shape(*counts, draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(windows))
    if draw(st.booleans()):
        seen = random_mask(*counts[:2], draw(st.integers(0, 99)), draw(st.sampled_from([0.1, 0.5, 0.9])))
        shape = replace(shape, mask={"seen": seen, "align": shape.align})
    return replace(shape, extras=draw(st.just(NONE) | features(shape)))


def suited(name: str, shape: Shape) -> Shape:
    """Standard attention has no softcap, two products no feature."""
    if name == "two_products":
        return replace(shape, extras=NONE)
    unfused = name in {"standard", "eager"}
    return replace(shape, extras=replace(shape.extras, softcap=None)) if unfused else shape


@st.composite
def options(draw: Callable[..., Any], name: str) -> dict[str, Any]:
    chosen: dict[str, Any] = {"packed": draw(st.booleans())}
    if name == "eager":
        return chosen | {"dropout_pass": draw(st.booleans())}
    if name == "standard":
        chosen["dropout_pass"] = draw(st.booleans())
        return chosen | (draw(st.none() | st.fixed_dictionaries(dict.fromkeys(GEMM_TILES, tile))) or {})
    if name == "two_products":
        return chosen | {gemm: draw(tile) for gemm in GEMM_TILES}
    chosen |= {"block_q": draw(tile), "block_kv": draw(tile)}
    if name in {"flash2", "flash3"}:
        chosen |= {"deterministic": draw(st.booleans())}
    if name == "flash2":
        chosen |= {"dq_buffers": draw(st.integers(1, 4))}
    if name == "two_pass":
        chosen |= {"dq_block_q": draw(st.none() | tile), "dq_block_kv": draw(st.none() | tile)}
    if name in {"flash2", "two_pass"}:
        chosen |= {"accumulate": draw(st.booleans())}
    return chosen


@given(shape=shapes(st.integers(1, 4), st.integers(1, 2)))
def test_the_dense_gradients_are_those_of_the_dense_forward(shape: Shape) -> None:
    *inputs, dO = shape.tensors()
    kwargs = {"seen": shape.visible(), "align": shape.align, "extras": shape.extras}
    step = 1e-5
    for which, gradient in enumerate(shape.gradients().values()):
        found = np.zeros_like(inputs[which])
        for place in np.ndindex(found.shape):
            losses = []
            for change in (step, -step):
                moved = [x.copy() for x in inputs]
                moved[which][place] += change
                losses.append((dO * forward_saved(*moved, **kwargs)["O"]).sum())
            found[place] = (losses[0] - losses[1]) / (2 * step)
        np.testing.assert_allclose(gradient, found, rtol=1e-6, atol=1e-7)


@given(shape=shapes())
def test_what_the_forward_pass_leaves(shape: Shape) -> None:
    saved = shape.saved()
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(saved["LSE"], saved["m"] + np.log(saved["l"]), rtol=1e-12)
    flash2 = import_module("tests.reference.flash2").run(
        *shape.tensors()[:3], **shape.mask, extras=shape.extras, block_q=3, block_kv=4
    )
    np.testing.assert_allclose(flash2.O, saved["O"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(flash2.LSE, saved["LSE"], rtol=1e-9, atol=1e-12)
    if shape.extras is NONE:
        output, lse = dense_attention(*shape.tensors()[:3], shape.visible())
        np.testing.assert_allclose(saved["O"], output, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(saved["LSE"], lse, rtol=1e-9, atol=1e-12)
    if shape.extras.sinks is None:
        sees = np.broadcast_to(shape.visible().any(axis=1), saved["LSE"].shape)
        np.testing.assert_allclose(saved["P"].sum(axis=-1), sees, rtol=1e-12)
        np.testing.assert_array_equal(np.isneginf(saved["LSE"]), ~sees)


@pytest.mark.parametrize("name", ALGORITHMS)
@given(data=st.data(), shape=shapes())
def test_it_computes_the_gradients(name: str, data: st.DataObject, shape: Shape) -> None:
    shape = suited(name, shape)
    run = shape.run(name, **data.draw(options(name)))
    # HBM starts as NaN, so equality also says that every element was stored.
    for output, gradient in shape.gradients().items():
        np.testing.assert_allclose(run.outputs[output], gradient, rtol=1e-9, atol=1e-11)
    blind = ~shape.visible().any(axis=1)
    assert not run.outputs["dQ"][:, :, blind].any()


@pytest.mark.parametrize("name", ALGORITHMS)
@given(data=st.data(), shape=shapes())
def test_it_runs_at_its_own_peak_and_not_below(name: str, data: st.DataObject, shape: Shape) -> None:
    shape, chosen = suited(name, shape), data.draw(options(name))
    run = shape.run(name, **chosen)
    again = shape.run(name, **chosen, capacity=run.sram_peak)
    assert (again.reads, again.writes) == (run.reads, run.writes)
    with pytest.raises(SRAMOverflowError):
        shape.run(name, **chosen, capacity=run.sram_peak - 1)


@dataclass(frozen=True)
class Cut:
    """What the tiles with a visible pair come to: sums over visits, and over tiles of keys and of rows seen."""

    visits: int
    pairs: int
    rows: int
    keys: int
    seen_rows: int
    seen_keys: int
    row_tiles: int
    key_tiles: int
    row_heads: int

    @classmethod
    def of(cls, seen: np.ndarray, block_q: int, block_kv: int, heads: int = 1) -> "Cut":
        rows, keys = np.arange(0, seen.shape[0], block_q), np.arange(0, seen.shape[1], block_kv)
        met = np.logical_or.reduceat(np.logical_or.reduceat(seen, rows, axis=0), keys, axis=1)
        n = np.diff(rows, append=seen.shape[0])
        n_k = np.diff(keys, append=seen.shape[1])
        sums = met.sum(), n @ met @ n_k, (n @ met).sum(), (met @ n_k).sum(), n @ met.any(axis=1), met.any(axis=0) @ n_k
        in_tiles = np.minimum(n, heads) @ met.any(axis=1)  # the heads of a tile of packed rows, which alternate
        return cls(*map(int, (*sums, met.any(axis=1).sum(), met.any(axis=0).sum(), in_tiles)))


@pytest.mark.parametrize("name", TILED)
@given(data=st.data(), shape=shapes())
def test_counts_follow_from_the_tiles_with_a_visible_pair(name: str, data: st.DataObject, shape: Shape) -> None:
    chosen = data.draw(options(name))
    run = shape.run(name, **chosen)
    packed, d, d_v = chosen["packed"], shape.d, shape.d_v
    seen = np.repeat(shape.visible(), shape.group if packed else 1, axis=0)
    programs = shape.batch * (shape.kv_heads if packed else shape.heads)
    heads_each = shape.group if packed else 1
    rows, keys = shape.batch * shape.heads * shape.q_len, shape.batch * shape.kv_heads * shape.kv_len
    cut = Cut.of(seen, chosen["block_q"], chosen["block_kv"])
    reads = Counter(Q=d * cut.rows, dO=d_v * cut.rows, K=d * cut.seen_keys, V=d_v * cut.seen_keys)
    writes: Counter[str] = Counter()
    stationary, made, atomics, slopes = cut.key_tiles, cut.pairs, 0, cut.key_tiles * heads_each
    products = cut.pairs * (3 * d + 2 * d_v)
    if name == "flash1":
        reads += Counter(O=d_v * cut.rows, dQ=d * cut.rows, l=cut.rows, m=cut.rows)
    elif name == "flash3":
        reads += Counter(LSE_log2=cut.rows, D=cut.rows)
    else:
        reads += Counter(LSE=cut.rows, D=cut.rows)
    if name in {"flash2", "flash3"}:
        reads += Counter(dQ_acc=d * cut.rows)
        atomics = 0 if chosen.get("deterministic") else d * cut.rows
    if name == "two_pass":
        dq_tiles = chosen["dq_block_q"] or chosen["block_q"], chosen["dq_block_kv"] or chosen["block_kv"]
        second = Cut.of(seen, *dq_tiles, heads_each)
        slopes += second.row_heads
        reads += Counter(Q=d * second.seen_rows, dO=d_v * second.seen_rows, LSE=second.seen_rows, D=second.seen_rows)
        reads += Counter(K=d * second.keys, V=d_v * second.keys)
        stationary, made = stationary + second.row_tiles, made + second.pairs
        products = cut.pairs * (2 * d + 2 * d_v) + second.pairs * (2 * d + d_v)
    if shape.extras.bias is not None:
        reads["bias"] = made
    if shape.extras.slopes is not None:
        reads["slopes"] = slopes
    if shape.extras.dropout is not None:
        reads["R"] = stationary * 2
    reads = Counter({tensor: programs * count for tensor, count in reads.items()})
    atomics *= programs

    if name != "flash1":
        reads += Counter(O=rows * d_v, dO=rows * d_v)
        writes += Counter(D=rows, dQ=rows * d)
    if name == "flash1":
        writes += Counter(dQ=rows * d + reads["dQ"])
    if name == "flash3":
        reads += Counter(LSE=rows)
        writes += Counter(LSE_log2=rows)
    if name in {"flash2", "flash3"}:
        slabs = chosen.get("dq_buffers", 1) if chosen.get("deterministic") else 1
        writes += Counter(dQ_acc=slabs * rows * d + reads["dQ_acc"])
        reads += Counter(dQ_acc=slabs * rows * d)
    split = shape.group > 1 and not packed
    suffix = "" if not split else "_acc" if chosen.get("accumulate", name == "flash3") else "_expanded"
    for tensor, size in (("dK", d), ("dV", d_v)):
        every, met = keys * (shape.group if split else 1) * size, programs * cut.seen_keys * size
        if suffix == "_acc":
            reads[tensor + suffix] = met + keys * size
            writes[tensor + suffix] = keys * size + met
            atomics += met
        else:
            writes[tensor + suffix] = every + (met if name == "flash1" else 0)
        if suffix == "_expanded":
            reads[tensor + suffix] = every
        if suffix:
            writes[tensor] = keys * size
    assert +run.reads == +reads
    assert +run.writes == +writes
    assert run.atomics == atomics
    assert (run.flops, run.exps) == (2 * programs * products, programs * made)
    assert run.tanhs == (0 if shape.extras.softcap is None else run.exps)
    assert run.randoms == (0 if shape.extras.dropout is None else run.exps)


@given(data=st.data(), shape=shapes())
def test_standard_counts_follow_from_the_tiles_of_its_products(data: st.DataObject, shape: Shape) -> None:
    shape, chosen = suited("standard", shape), data.draw(options("standard"))
    run = shape.run("standard", **chosen)
    together = shape.group if chosen["packed"] else 1
    programs, m, n = shape.batch * shape.heads // together, shape.q_len * together, shape.kv_len
    d, d_v = shape.d, shape.d_v

    def times(tile: str, length: int) -> int:
        return -(-length // chosen.get(tile, length))

    apart = chosen["dropout_pass"]
    dropped = "P_drop" if apart else "P"
    reads = Counter(
        P=m * n,
        dO=m * d_v * (times("gemm3_m", n) + times("gemm4_n", n)),
        V=n * d_v * times("gemm4_m", m),
        dP=m * n,
        dS=m * n * (times("gemm5_n", d) + times("gemm6_n", d)),
        K=n * d * times("gemm5_m", m),
        Q=m * d * times("gemm6_m", n),
        dK_expanded=n * d if together < shape.group else 0,
        dV_expanded=n * d_v if together < shape.group else 0,
    )
    reads[dropped] += m * n * times("gemm3_n", d_v)
    writes = Counter(dP=m * n, dS=m * n, dQ=m * d)
    if apart:
        reads.update(dP_drop=m * n, dropout_mask=m * n)
        writes["dP_drop"] = m * n
    drawn_again = shape.extras.dropout is not None and not apart
    if drawn_again:
        states = times("gemm3_m", n) * times("gemm3_n", d_v) + times("gemm4_m", m) * times("gemm4_n", n)
        reads["R"] = 2 * states
    for tensor, size in (("dK", d), ("dV", d_v)):
        writes[tensor] = n * size
        if together < shape.group:
            writes[f"{tensor}_expanded"] = n * size
    expected = {tensor: programs * count for tensor, count in writes.items()}
    for tensor in ("dK", "dV"):
        expected[tensor] = shape.batch * shape.kv_heads * writes[tensor]
    assert +run.reads == Counter({tensor: programs * count for tensor, count in reads.items() if count})
    assert run.writes == expected
    assert (run.flops, run.exps, run.atomics) == (4 * programs * m * n * (d + d_v), 0, 0)
    drawn = (1 + times("gemm3_n", d_v)) * programs * m * n  # P anew for each tile of columns of dV
    assert run.randoms == (drawn if drawn_again else 0)
    stationary = {tile: chosen.get(tile, 0) for tile in GEMM_TILES}
    if all(stationary.values()):
        sizes = [(stationary[f"gemm{g}_m"], stationary[f"gemm{g}_n"]) for g in (3, 4, 5, 6)]
        state = [2 * drawn_again] * 2 + [0, 0]
        held = [a * b + a + b + r for (a, b), r in zip(sizes, state, strict=True)] + [2 * n]
        assert run.sram_peak == max(*held, 2 * max(d, d_v) if together < shape.group else 0)


@given(data=st.data(), shape=shapes())
def test_packing_one_head_changes_nothing(data: st.DataObject, shape: Shape) -> None:
    assume(shape.group == 1)
    for name in ALGORITHMS:
        chosen = data.draw(options(name)) | {"packed": False}
        plain, packed = (suited(name, shape).run(name, **chosen | {"packed": packed}) for packed in (False, True))
        assert replace(plain, outputs={}) == replace(packed, outputs={})


@pytest.mark.parametrize("mask", [{}, CAUSAL, {"seen": np.eye(3, 4, dtype=np.bool_)}])
def test_standard_ideal_by_hand(mask: dict[str, Any]) -> None:
    run = Shape(3, 4, 2, 5, mask=mask).run("standard")
    # P, dP and dS are 3 x 4 whatever the mask.
    assert run.reads == {"P": 24, "dO": 30, "V": 20, "dP": 12, "dS": 24, "K": 8, "Q": 6}
    assert run.writes == {"dV": 20, "dP": 12, "dS": 12, "dQ": 6, "dK": 8}
    assert (run.flops, run.exps, run.atomics) == (2 * 12 * (5 + 5 + 2 + 2), 0, 0)
    # Kernels: P 12, dO 15, dV 20; dO 15, V 20, dP 12; P and dP 12; then less.
    assert (run.sram_peak, run.sram_bytes(2)) == (47, 2 * 27 + 4 * 20)
    # Q, K, V, dO, P 61, dV 20, dP and dS 24; at last dS 12, dQ 6 and dK 8, for dP has gone.
    assert run.hbm_peak == 61 + 20 + 12 + 6 + 8


def test_standard_moves_8nd_and_7nn() -> None:
    run = Shape(8, 8, 2, 2).run("standard")
    assert sum(run.reads.values()) + sum(run.writes.values()) == 8 * 16 + 7 * 64


def test_standard_tiled_by_hand() -> None:
    tiles = {"gemm3_m": 2, "gemm3_n": 3, "gemm4_m": 2, "gemm4_n": 3} | {"gemm5_m": 2, "gemm5_n": 1}
    run = Shape(3, 4, 2, 5).run("standard", **tiles, gemm6_m=4, gemm6_n=2)
    # dV has 2 x 2 tiles: P and dO go twice. dP has 2 x 2: dO and V. dQ has 2 x 2: dS and K. dK has one.
    assert run.reads == {"P": 24 + 12, "dO": 30 + 30, "V": 40, "dP": 12, "dS": 24 + 12, "K": 16, "Q": 6}
    assert run.writes == {"dV": 20, "dP": 12, "dS": 12, "dQ": 6, "dK": 8}
    # dV 2*3 with 2 and 3; dP the same; a row of P and one of dP; dQ 2*1 with 2 and 1; dK 4*2 with 4 and 2.
    assert (run.sram_peak, run.sram_bytes(2)) == (14, 4 * 8 + 2 * 6)
    assert run.sram_states >= {(5, 0, 6, 0, 0, 0), (4, 0, 4, 0, 0, 0), (3, 0, 2, 0, 0, 0)}


def test_standard_groups_by_hand() -> None:
    shape, ones = Shape(3, 1, 5, 2, group=2), dict.fromkeys(GEMM_TILES, 1)
    run = shape.run("standard", **ones)
    # Each head has a row of 5 and one of 2; the kernel that sums has dK's row in fp32 and one of dK_expanded.
    assert (run.reads["dK_expanded"], run.reads["dV_expanded"]) == (10, 4)
    assert (run.writes["dK_expanded"], run.writes["dV_expanded"], run.writes["dK"], run.writes["dV"]) == (10, 4, 5, 2)
    assert (run.sram_peak, run.sram_bytes(2)) == (10, 4 * 5 + 2 * 5)
    packed = shape.run("standard", **ones, packed=True)
    assert (packed.writes["dK"], packed.writes["dV"], packed.reads["dK_expanded"]) == (5, 2, 0)
    assert packed.sram_peak == 3
    # Q 30, K 5, V 2, dO 12, P 6: 55. Then dV_expanded 4, dP and dS 12; later dS 6, dQ 30, dK_expanded 10 beside
    # 55 and dV_expanded 4; at last 55, dQ 30, dV_expanded 4, dK_expanded 10 and dK 5.
    assert run.hbm_peak == 55 + 4 + 6 + 30 + 10


def test_standard_wants_all_tiles_or_none_and_no_softcap() -> None:
    with pytest.raises(ValueError, match="all eight"):
        Shape(3, 4, 2, 5).run("standard", gemm3_m=2)
    with pytest.raises(ValueError, match="softcap"):
        Shape(3, 4, 2, 5, extras=Extras(softcap=1.0)).run("standard")
    with pytest.raises(ValueError, match="as they are"):
        Shape(3, 4, 2, 2, extras=Extras(latent=True)).run("flash2", block_q=1, block_kv=1)


def test_standard_dropout_by_hand() -> None:
    shape = Shape(3, 4, 2, 5, extras=Extras(dropout=0.5, slopes=np.ones(1)))
    ideal = shape.run("standard")
    # The state is loaded for dV and for dP, and P's 12 numbers are drawn in both; P contains the slopes.
    assert (ideal.reads["R"], ideal.randoms, ideal.reads["slopes"]) == (4, 24, 0)
    assert ideal.sram_peak == 47 + 2
    tiled = shape.run("standard", **dict.fromkeys(GEMM_TILES, 2))
    assert (tiled.reads["R"], tiled.randoms) == (2 * (2 * 3 + 2 * 2), 3 * 12 + 12)


@pytest.mark.parametrize("extras", [NONE, Extras(dropout=0.5)])
def test_standard_dropout_pass_by_hand(extras: Extras) -> None:
    run = Shape(3, 4, 2, 5, mask=CAUSAL, extras=extras).run("standard", dropout_pass=True)
    # dV takes P_drop 12; dP_drop 12 and the mask 12 make dP 12; then as ever. Nothing is drawn again.
    assert run.reads == {
        "P_drop": 12, "dO": 30, "V": 20, "dP_drop": 12, "dropout_mask": 12, "P": 12, "dP": 12, "dS": 24, "K": 8, "Q": 6
    }  # fmt: skip
    assert run.writes == {"dV": 20, "dP_drop": 12, "dP": 12, "dS": 12, "dQ": 6, "dK": 8}
    assert (run.flops, run.randoms, run.widths["dropout_mask"]) == (2 * 12 * (5 + 5 + 2 + 2), 0, "bool")
    assert run.sram_states >= {(12, 0, 0, 0, 0, 12)}
    # Q, K, V, dO 49; P, P_drop and the mask 36; dV 20, dP_drop and dP 24. Or at last dS 12, dQ 6 and dK 8.
    assert run.hbm_peak == max(49 + 36 + 20 + 24, 49 + 36 + 20 + 12 + 6 + 8)


def test_flash1_full_by_hand() -> None:
    run = Shape(8, 8, 2, 2).run("flash1", block_q=4, block_kv=2)
    # N d (7 + 5 T_c) + 2 N T_c, with N d = 16 and T_c = 4.
    assert sum(run.reads.values()) + sum(run.writes.values()) == 16 * 27 + 2 * 8 * 4


def test_flash1_causal_by_hand() -> None:
    run = Shape(8, 8, 2, 2, mask=CAUSAL).run("flash1", block_q=4, block_kv=2)
    # Key tiles 0 and 1 are seen by both row tiles, 2 and 3 by the second: six visits of 4 rows.
    assert run.reads == {"Q": 48, "K": 16, "V": 16, "O": 48, "dO": 48, "dQ": 48, "l": 24, "m": 24}
    assert run.writes == {"dQ": 16 + 48, "dK": 32, "dV": 32}
    assert (run.flops, run.exps, run.atomics) == (6 * 5 * 2 * 4 * 2 * 2, 6 * 4 * 2, 0)
    # K, V 4 and Q, O, dO 8 in the io type; dK, dV 4, dQ 8, l, m 4, S, dP 8 in fp32.
    assert run.sram_states >= {(32, 0, 40, 0, 0, 0)}
    assert (run.sram_peak, run.sram_bytes(2)) == (72, 2 * 32 + 4 * 40)
    # Q, K, V, O, dO, dQ, dK, dV 16 each, l and m 8.
    assert (run.hbm_peak, run.hbm_peak_bytes(2)) == (8 * 16 + 16, 8 * 32 + 64)


def test_flash1_keys_nobody_sees_by_hand() -> None:
    run = Shape(2, 6, 1, 1, mask=DIAGONAL).run("flash1", block_q=2, block_kv=2)
    # Queries 0 and 1 see keys 4 and 5: the last of the three key tiles.
    assert run.reads == dict.fromkeys(["Q", "K", "V", "O", "dO", "dQ", "l", "m"], 2)
    assert run.writes == {"dQ": 2 + 2, "dK": 6 + 2, "dV": 6 + 2}


def test_flash1_groups_by_hand() -> None:
    run = Shape(3, 3, 1, 1, group=2).run("flash1", block_q=3, block_kv=2)
    # Two heads with two visits of 3 rows each; zeros, gradients and sums go by way of the expanded tensors.
    assert run.reads == dict.fromkeys(["Q", "O", "dO", "dQ", "l", "m"], 12) | dict.fromkeys(
        ["K", "V", "dK_expanded", "dV_expanded"], 6
    )
    assert run.writes == {"dQ": 6 + 12, "dK_expanded": 6 + 6, "dV_expanded": 6 + 6, "dK": 3, "dV": 3}
    # Q, O, dO, l, m, dQ 36, K and V 6, expanded 12; then dK comes beside.
    assert run.hbm_peak == 54 + 3


def test_flash2_causal_by_hand() -> None:
    run = Shape(8, 8, 2, 2, mask=CAUSAL).run("flash2", block_q=4, block_kv=2)
    # Six visits of 4 rows, as for flash1; the kernels around it read O, dO and dQ_acc once more.
    assert run.reads == {"O": 16, "dO": 16 + 48, "Q": 48, "K": 16, "V": 16, "LSE": 24, "D": 24, "dQ_acc": 48 + 16}
    assert run.writes == {"D": 8, "dQ_acc": 16 + 48, "dK": 16, "dV": 16, "dQ": 16}
    assert (run.flops, run.exps, run.atomics) == (6 * 5 * 2 * 4 * 2 * 2, 6 * 4 * 2, 48)
    # K, V 4 and Q, dO 8 in the io type; dK, dV 4, LSE, D 4, dQ 8, S, dP 8 in fp32.
    assert run.sram_states >= {(24, 0, 40, 0, 0, 0)}
    assert (run.sram_peak, run.sram_bytes(2)) == (64, 2 * 24 + 4 * 40)
    # Q, K, V, O, dO 80, LSE 8, dQ_acc 16, dK, dV 32, and D 8, which goes before dQ 16 comes.
    assert (run.hbm_peak, run.hbm_peak_bytes(2)) == (80 + 8 + 16 + 32 + 16, 2 * (80 + 32 + 16) + 4 * (8 + 16))


def test_flash2_deterministic_by_hand() -> None:
    shape, tiles = Shape(8, 8, 2, 2, mask=CAUSAL), {"block_q": 4, "block_kv": 2}
    run = shape.run("flash2", **tiles, deterministic=True, dq_buffers=3)
    # Three slabs are zeroed and read at the end, 16 each; the 48 additions stay, and are not atomic.
    assert (run.writes["dQ_acc"], run.reads["dQ_acc"], run.atomics) == (48 + 48, 48 + 48, 0)
    assert run.hbm_peak == 80 + 8 + 48 + 32 + 16
    alone = shape.run("flash2", **tiles, deterministic=True)
    assert (alone.writes["dQ_acc"], alone.reads["dQ_acc"], alone.atomics) == (16 + 48, 16 + 48, 0)
    assert shape.run("flash2", **tiles, dq_buffers=3).reads == alone.reads


def test_flash2_key_tiles_take_turns_at_the_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    slabs, add = [], HBM.add

    def note(hbm: HBM, name: str, index: Any, *args: Any, **kwargs: Any) -> None:
        slabs.append(index[0])
        add(hbm, name, index, *args, **kwargs)

    monkeypatch.setattr(HBM, "add", note)
    shape, tiles = Shape(4, 8, 1, 1, mask=CAUSAL), {"block_q": 2, "block_kv": 2, "dq_buffers": 3}
    shape.run("flash2", **tiles, deterministic=True)
    # Rows 0-1 see keys 0-5, rows 2-3 all: key tiles 0, 1 and 2 are visited twice, tile 3 once.
    assert slabs == [0, 0, 1, 1, 2, 2, 0]
    slabs.clear()
    shape.run("flash2", **tiles)
    assert slabs == [0] * 7


def test_flash2_keys_nobody_sees_by_hand() -> None:
    run = Shape(2, 6, 1, 1, mask=DIAGONAL).run("flash2", block_q=2, block_kv=2)
    # The first two key tiles load nothing and write zeros.
    assert run.reads == {"O": 2, "dO": 2 + 2, "Q": 2, "K": 2, "V": 2, "LSE": 2, "D": 2, "dQ_acc": 2 + 2}
    assert run.writes == {"D": 2, "dQ_acc": 2 + 2, "dK": 6, "dV": 6, "dQ": 2}
    grouped = Shape(2, 6, 1, 1, group=2, mask=DIAGONAL).run("flash2", block_q=2, block_kv=2, accumulate=True)
    # Each of two heads adds one tile of 2 keys, and nothing elsewhere; 6 are zeroed, and 6 converted.
    assert (grouped.writes["dK_acc"], grouped.reads["dK_acc"], grouped.writes["dK"]) == (6 + 4, 4 + 6, 6)
    assert grouped.atomics == 4 + 4 + 4


def test_flash2_groups_by_hand() -> None:
    shape, tiles = Shape(3, 3, 1, 1, group=2), {"block_q": 3, "block_kv": 2}
    around = {"O": 6, "dO": 6 + 12, "Q": 12, "LSE": 12, "D": 12, "dQ_acc": 12 + 6}
    # Two heads, or two packed tiles of 3 rows, with two visits of 3 rows each.
    expanded = shape.run("flash2", **tiles)
    assert expanded.reads == around | dict.fromkeys(["K", "V", "dK_expanded", "dV_expanded"], 6)
    assert expanded.writes == {
        "D": 6, "dQ_acc": 6 + 12, "dQ": 6, "dK_expanded": 6, "dV_expanded": 6, "dK": 3, "dV": 3
    }  # fmt: skip
    assert expanded.atomics == 12
    # Q, O, dO, LSE 24, K, V 6, dQ_acc 6, expanded 12, and D or dQ 6.
    assert expanded.hbm_peak == 54
    added = shape.run("flash2", **tiles, accumulate=True)
    assert added.reads == around | {"K": 6, "V": 6, "dK_acc": 6 + 3, "dV_acc": 6 + 3}
    assert added.writes == {"D": 6, "dQ_acc": 6 + 12, "dQ": 6, "dK_acc": 3 + 6, "dV_acc": 3 + 6, "dK": 3, "dV": 3}
    assert (added.atomics, added.hbm_peak) == (12 + 6 + 6, 48)
    packed = shape.run("flash2", **tiles, packed=True, accumulate=True)
    assert packed.reads == around | {"K": 3, "V": 3}
    assert packed.writes == {"D": 6, "dQ_acc": 6 + 12, "dQ": 6, "dK": 3, "dV": 3}
    assert packed.atomics == 12


def test_flash3_causal_by_hand() -> None:
    run = Shape(8, 8, 2, 2, mask=CAUSAL).run("flash3", block_q=4, block_kv=2)
    # As flash2, six visits of 4 rows; the log-sum-exp is read once and written in base 2, in which it is streamed.
    assert run.reads == {
        "O": 16, "dO": 16 + 48, "LSE": 8, "Q": 48, "K": 16, "V": 16, "LSE_log2": 24, "D": 24, "dQ_acc": 48 + 16
    }  # fmt: skip
    assert run.writes == {"D": 8, "LSE_log2": 8, "dQ_acc": 16 + 48, "dK": 16, "dV": 16, "dQ": 16}
    assert (run.flops, run.exps, run.atomics) == (6 * 5 * 2 * 4 * 2 * 2, 6 * 4 * 2, 48)
    # K, V 4 and Q, dO 8 in the io type; dK, dV 4, LSE_log2, D 4, dQ 8, S, dP 8 in fp32.
    assert run.sram_states >= {(24, 0, 40, 0, 0, 0)}
    # Q, K, V, O, dO 80, LSE 8, dQ_acc 16, dK, dV 32; D and LSE_log2 16, which go before dQ 16 comes.
    assert (run.hbm_peak, run.hbm_peak_bytes(2)) == (80 + 8 + 16 + 32 + 16, 2 * (80 + 32) + 4 * (8 + 16 + 16))


def test_flash3_groups_by_hand() -> None:
    shape, tiles = Shape(3, 3, 1, 1, group=2), {"block_q": 3, "block_kv": 2}
    run = shape.run("flash3", **tiles)
    # Two heads with two visits of 3 rows each add to sums of 3 keys, which are zeroed before and converted after.
    around = {"O": 6, "dO": 6 + 12, "LSE": 6, "Q": 12, "LSE_log2": 12, "D": 12, "dQ_acc": 12 + 6}
    assert run.reads == around | {"K": 6, "V": 6, "dK_acc": 6 + 3, "dV_acc": 6 + 3}
    assert run.writes == {
        "D": 6, "LSE_log2": 6, "dQ_acc": 6 + 12, "dQ": 6, "dK_acc": 3 + 6, "dV_acc": 3 + 6, "dK": 3, "dV": 3
    }  # fmt: skip
    # Q, O, dO, LSE 24, K, V 6, the sums of dK and dV 6, of dQ 6, D and LSE_log2 12.
    assert (run.atomics, run.hbm_peak) == (12 + 6 + 6, 54)
    packed = shape.run("flash3", **tiles, packed=True)
    assert packed.writes == {"D": 6, "LSE_log2": 6, "dQ_acc": 6 + 12, "dQ": 6, "dK": 3, "dV": 3}
    assert packed.atomics == 12


@given(data=st.data(), shape=shapes())
def test_flash3_is_flash2_with_another_statistic(data: st.DataObject, shape: Shape) -> None:
    chosen = data.draw(options("flash3"))
    flash2, flash3 = shape.run("flash2", **chosen, accumulate=True), shape.run("flash3", **chosen)
    rows = shape.batch * shape.heads * shape.q_len
    assert flash3.reads["LSE"] == flash3.writes["LSE_log2"] == rows
    assert flash3.reads["LSE_log2"] == flash2.reads["LSE"]
    for side in ("reads", "writes"):
        apart = dict.fromkeys(["LSE", "LSE_log2"], 0)
        assert getattr(flash3, side) | apart == getattr(flash2, side) | apart
    for what in ("flops", "exps", "tanhs", "randoms", "atomics", "sram_peak"):
        assert getattr(flash2, what) == getattr(flash3, what)


def test_two_pass_ragged_by_hand() -> None:
    run = Shape(5, 7, 1, 3).run("two_pass", block_q=4, block_kv=3, dq_block_q=2, dq_block_kv=5)
    # D; then three key tiles that each load all 5 queries; then three query tiles that each load all 7 keys.
    assert run.reads == {
        "O": 15, "dO": 15 + 45 + 15, "Q": 15 + 5, "LSE": 15 + 5, "D": 15 + 5, "K": 7 + 21, "V": 21 + 63
    }  # fmt: skip
    assert run.writes == {"D": 5, "dK": 7, "dV": 21, "dQ": 5}
    assert (run.flops, run.exps, run.atomics) == (2 * 35 * (1 + 3 + 3 + 1) + 2 * 35 * (1 + 3 + 1), 70, 0)
    # Second kernel: K 3, V 9, Q 4, dO 12; dK 3, dV 9, LSE, D 4, S, dP 12. Third: Q 2, dO 6, K 5, V 15;
    # dQ, LSE, D 2, S, dP 10.
    assert run.sram_states >= {(28, 0, 44, 0, 0, 0), (28, 0, 26, 0, 0, 0)}
    assert (run.sram_peak, run.sram_bytes(2)) == (72, 2 * 28 + 4 * 44)
    # Q 5, K 7, V 21, dO, O 15, LSE 5; D 5, dK 7, dV 21, dQ 5.
    assert run.hbm_peak == 68 + 38


def test_two_pass_rows_that_see_nothing_by_hand() -> None:
    run = Shape(5, 2, 1, 1, mask=CAUSAL).run("two_pass", block_q=2, block_kv=1)
    # Query i sees keys up to i - 3. Key 0 is seen by rows 2-3 and 4, key 1 by row 4; rows 0-1 load nothing.
    assert run.reads == {"O": 5, "dO": 5 + 4 + 3, "Q": 4 + 3, "LSE": 4 + 3, "D": 4 + 3, "K": 2 + 3, "V": 2 + 3}
    assert run.writes == {"D": 5, "dK": 2, "dV": 2, "dQ": 5}
    assert (run.flops, run.exps) == (4 * 2 * 4 + 3 * 2 * 4, 4 + 4)
    np.testing.assert_array_equal(run.outputs["dQ"][0, 0, :3], 0.0)


def test_two_pass_groups_by_hand() -> None:
    shape, tiles = Shape(3, 3, 1, 1, group=2), {"block_q": 3, "block_kv": 2}
    expanded, added = shape.run("two_pass", **tiles), shape.run("two_pass", **tiles, accumulate=True)
    assert (expanded.reads["dK_expanded"], expanded.writes["dK_expanded"], expanded.writes["dK"]) == (6, 6, 3)
    assert (added.reads["dK_acc"], added.writes["dK_acc"], added.writes["dK"]) == (6 + 3, 3 + 6, 3)
    assert (expanded.atomics, added.atomics) == (0, 6 + 6)
    # Q, O, dO, LSE 24, K, V 6, D 6 and dQ 6, with expanded 12 or the sums 6.
    assert (expanded.hbm_peak, added.hbm_peak) == (54, 48)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", TILED)
def test_features_by_hand(name: str, packed: bool) -> None:
    shape = Shape(3, 4, 2, 1, group=2, mask=CAUSAL)
    plain = shape.run(name, packed=packed, block_q=3, block_kv=3)
    draw = np.random.default_rng(0).standard_normal
    extras = Extras(draw((1, 2, 3, 4)), softcap=1.0, slopes=draw(2), sinks=draw(2), dropout=0.5)
    run = replace(shape, extras=extras).run(name, packed=packed, block_q=3, block_kv=3)
    # Unpacked, each of two heads has a row tile and two key tiles, of 3 keys and of 1, both visited. Packed, rows
    # are queries 0 0 1 | 1 2 2, of which the first three see keys 0-2.
    pairs, stationary = (2 * 12, 2 * 2) if not packed else (3 * 3 + 3 * 4, 2)
    if name == "two_pass":  # again, and for each row tile
        pairs, stationary = 2 * pairs, stationary + 2
    assert run.reads - plain.reads == Counter(bias=pairs, slopes=stationary * (2 if packed else 1), R=stationary * 2)
    assert run.writes == plain.writes
    assert (run.exps, run.tanhs, run.randoms, run.flops) == (pairs, pairs, pairs, plain.flops)
    # On chip a tile of the bias, the slope of each head, and the state; in HBM all but the sinks.
    assert run.sram_peak - plain.sram_peak == 9 + (2 if packed else 1) + 2
    assert run.hbm_peak - plain.hbm_peak == 24 + 2 + 2


@pytest.mark.parametrize("name", ALGORITHMS)
@given(data=st.data(), shape=shapes())
def test_statistics_and_sums_are_in_fp32(name: str, data: st.DataObject, shape: Shape) -> None:
    run = suited(name, shape).run(name, **data.draw(options(name)))
    single = {"l", "m", "LSE", "LSE_log2", "D", "dQ_acc", "dK_acc", "dV_acc", "slopes"}
    for tensor, width in run.widths.items():
        assert width == (
            "fp32" if tensor in single else "int64" if tensor == "R" else "bool" if tensor == "dropout_mask" else "io"
        )


def test_a_plain_addition_is_not_atomic() -> None:
    hbm = HBM()
    hbm.alloc("dQ_acc", (4, 3), np.zeros((4, 3)))
    hbm.add("dQ_acc", slice(2), np.ones((2, 3)))
    hbm.add("dQ_acc", slice(1), np.ones((1, 3)), atomic=False)
    assert (hbm.reads, hbm.writes, hbm.atomics) == ({"dQ_acc": 9}, {"dQ_acc": 9}, 6)
    np.testing.assert_array_equal(hbm.arrays["dQ_acc"][:, 0], [2, 1, 0, 0])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_shares_nothing_with_the_library_but_the_counting_memory(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level and node.module != "iomodel.testing.machine":
            names = [node.module or ""]
        for name in names:
            assert name.partition(".")[0] in {"collections", "dataclasses", "numpy", "typing"}
    # Nor by a path the syntax tree does not show.
    assert "iomodel" not in text.replace("from iomodel.testing.machine import", "", 1)
