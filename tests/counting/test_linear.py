"""Counts of linear layers and elementwise kernels: what a kernel counts is what the nests say."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iomodel import InputError, Linear, UnknownNameError, solve
from iomodel.algorithms import algorithm
from iomodel.counting.bounds import lower_bounds
from iomodel.counting.cost import Cost, cost, linear_cost, pointwise_cost
from iomodel.counting.cost import cost as counted
from iomodel.counting.expressions import expressions
from iomodel.testing import Run
from tests.reference import linear as reference
from tests.reference import pointwise as kernels
from tests.support.inside import WEIGHT_QUARTERS, Elementwise

small, tile = st.integers(1, 9), st.integers(1, 7)
DRAW = np.random.default_rng(0).standard_normal


@dataclass(frozen=True)
class Case:
    layer: Linear
    tiles: dict[str, int]

    def weights(self) -> reference.Weights:
        layer = self.layer
        names = ["W_gate", "W_up"] if layer.gated else ["W"]
        shape = (layer.groups, layer.in_features, layer.out_features)
        scales = {}
        if layer.scale_block is not None:
            blocks = ceil(layer.in_features / layer.scale_block)
            scales = {name: DRAW((layer.groups, blocks, layer.out_features)) for name in names}
        bias = DRAW((layer.groups, layer.out_features)) if layer.bias else None
        return reference.Weights({name: DRAW(shape) for name in names}, scales, layer.scale_block or 1, bias)


def slopes(function: Callable[[np.ndarray], np.ndarray], at: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Derive sum(given * function) by central differences, element by element."""
    made = np.empty_like(at)
    for place in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[place] = 1e-6
        made[place] = np.sum(given * (function(at + step) - function(at - step))) / 2e-6
    return made


@st.composite
def cases(draw: Callable[..., Any]) -> Case:
    block_k, terms = draw(tile), draw(small)
    scale_block = draw(st.none() | st.integers(1, 3).map(lambda many: many * block_k))
    kind = draw(st.sampled_from(["plain", "gated", "bias"]))
    unit = block_k if scale_block is None else scale_block
    layer = Linear(
        rows=draw(small),
        in_features=terms,
        out_features=draw(small),
        groups=draw(st.integers(1, 3)),
        dtype=draw(st.sampled_from(["bf16", "fp32"])),
        weight_dtype=draw(st.sampled_from(["bf16", "fp8", "fp32"])),
        scale_block=scale_block,
        gated=kind == "gated",
        bias=kind == "bias",
    )
    splits = draw(st.integers(1, ceil(terms / unit)))
    return Case(layer, {"block_m": draw(tile), "block_n": draw(tile), "block_k": block_k, "splits": splits})


def expected(case: Case, x: np.ndarray, weights: reference.Weights) -> np.ndarray:
    products = []
    for name, w in weights.values.items():
        if weights.scales:
            w = w * np.repeat(weights.scales[name], weights.scale_block, axis=1)[:, : w.shape[1]]
        products.append(x @ w)
    y = products[-1]
    if case.layer.gated:
        y = products[0] / (1 + np.exp(-products[0])) * y
    return y if weights.bias is None else y + weights.bias[:, None]


def rms_norm(x: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    found: np.ndarray = x / np.sqrt(np.mean(x**2, axis=1, keepdims=True)) * gamma
    return found


def silu(x: np.ndarray) -> np.ndarray:
    found: np.ndarray = x / (1 + np.exp(-x))
    return found


def same(cost: Cost, run: Run, sizes: dict[str, int], kv_size: int) -> None:
    """Everything that a kernel counted is what the cost says; `sizes` are those of an element, by width."""
    assert {name: n for name, n in cost.reads.items() if n} == {name: n for name, n in run.reads.items() if n}
    assert {name: n for name, n in cost.writes.items() if n} == {name: n for name, n in run.writes.items() if n}
    moved = sum(n * sizes[run.widths[name]] for side in (run.reads, run.writes) for name, n in side.items())
    assert cost.hbm_bytes == moved
    assert (cost.flops, cost.exps) == (run.flops, run.exps)
    assert cost.footprint_elements == run.sram_peak
    assert cost.footprint_bytes == run.sram_bytes(sizes["io"], kv_size)


@given(cases())
def test_the_counts_are_those_of_a_kernel_that_counts(case: Case) -> None:
    layer, weights = case.layer, case.weights()
    x = DRAW((layer.groups, layer.rows, layer.in_features))
    run = reference.gemm(x, weights, **case.tiles)
    np.testing.assert_allclose(run.outputs["Y"], expected(case, x, weights), rtol=1e-9, atol=1e-9)
    size, of_weights = WEIGHT_QUARTERS[layer.dtype] // 32, WEIGHT_QUARTERS[layer.weight_dtype] // 32
    same(linear_cost(layer, case.tiles), run, {"io": size, "kv": of_weights, "fp32": 4}, of_weights)


@given(cases())
def test_edges_that_wrap_are_those_of_a_kernel_that_counts(case: Case) -> None:
    """Tiles at the edge of Y load whole tiles of X and W, the first rows and columns again."""
    layer, weights = case.layer, case.weights()
    x = DRAW((layer.groups, layer.rows, layer.in_features))
    run = reference.gemm(x, weights, **case.tiles, wrapped_edges=True)
    np.testing.assert_allclose(run.outputs["Y"], expected(case, x, weights), rtol=1e-9, atol=1e-9)
    size, of_weights = WEIGHT_QUARTERS[layer.dtype] // 32, WEIGHT_QUARTERS[layer.weight_dtype] // 32
    sizes = {name: case.tiles[name] for name in ("block_m", "block_n", "block_k")}
    found = cost("gemm", layer, sizes, splits=case.tiles["splits"], wrapped_edges=True)
    same(found, run, {"io": size, "kv": of_weights, "fp32": 4}, of_weights)
    assert found.peak_hbm_bytes == linear_cost(layer, case.tiles).peak_hbm_bytes


@given(small, small, small, st.sampled_from(["bf16", "fp8"]))
def test_elementwise_kernels_move_what_they_count(rows: int, channels: int, others: int, kv_dtype: str) -> None:
    shape = (rows, channels)
    kv = WEIGHT_QUARTERS[kv_dtype] // 32
    sizes = {"io": 2, "kv": kv, "fp32": 4, "int64": 8}

    def cost(name: str) -> Cost:
        return pointwise_cost(name, rows=rows, channels=channels, others=others, kv_dtype=kv_dtype)

    def judged(name: str, run: Run, **expected: np.ndarray) -> None:
        for output, values in expected.items():
            np.testing.assert_allclose(run.outputs[output], values, rtol=1e-9)
        same(cost(name), run, sizes, kv)

    x, y, gamma = DRAW(shape), DRAW(shape), DRAW(channels)
    judged("copy", kernels.copy(x), y=x)
    judged("add", kernels.add(x, y), y=x + y)
    judged("softmax", kernels.softmax(x), y=np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True))
    judged("norm", kernels.norm(x, gamma), y=x / np.sqrt(np.mean(x**2, axis=1, keepdims=True)) * gamma)
    shift = DRAW(channels)
    centred = x - np.mean(x, axis=1, keepdims=True)
    deviation = np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + 1e-5)
    judged("layer_norm", kernels.layer_norm(x, gamma, shift), y=centred / deviation * gamma + shift)
    places = np.random.default_rng(2).permutation(rows).tolist()
    judged("gather_rows", kernels.gather_rows(places, x), y=x[places])
    both = x + y
    normed = both / np.sqrt(np.mean(both**2, axis=1, keepdims=True)) * gamma
    judged("add_norm", kernels.add_norm(x, y, gamma), residual=both, y=normed)
    judged("gated_activation", kernels.gated_activation(x, y), hidden=silu(x) * y)
    judged("activation", kernels.activation(x), hidden=silu(x))
    slots = list(np.random.default_rng(1).permutation(2 * rows)[:rows])
    v = DRAW((rows, others))
    appended = kernels.append(slots, 2 * rows, K=x, V=v)
    judged("append", appended)
    latent = kernels.append(slots, 2 * rows, K=x)
    judged("append_latent", latent)
    for found, given_rows in ((appended.outputs["K"], x), (appended.outputs["V"], v), (latent.outputs["K"], x)):
        np.testing.assert_array_equal(found[slots], given_rows)
    table = DRAW((3 * rows, channels))
    judged("embedding", kernels.embedding(slots, table), x=table[slots])
    a, b = DRAW((2, rows))
    weights = np.exp(np.stack([a, b]))
    judged(
        "merge_states",
        kernels.merge_states(x, a, y, b),
        O=np.einsum("kr,krc->rc", weights / weights.sum(0), np.stack([x, y])),
        LSE=np.log(weights.sum(0)),
    )
    every, shares = DRAW((rows, others, channels)), DRAW((rows, others))
    judged("combine_experts", kernels.combine_experts(every, shares), y=np.einsum("te,tec->tc", shares, every))


@given(st.integers(1, 5), st.integers(1, 4), st.data())
def test_backward_passes_move_what_they_count(rows: int, channels: int, data: st.DataObject) -> None:
    shape, sizes = (rows, channels), {"io": 2, "kv": 2, "fp32": 4, "int64": 8}
    splits, keeps = data.draw(st.integers(1, rows)), data.draw(st.booleans())

    def judged(name: str, run: Run, direction: str, expected: dict[str, np.ndarray], **options: Any) -> None:
        for output, values in expected.items():
            np.testing.assert_allclose(run.outputs[output], values, rtol=1e-5, atol=1e-6)
        same(cost(name, Elementwise(rows=rows, channels=channels, direction=direction), **options), run, sizes, 2)

    x, given_y, up, gamma = DRAW(shape), DRAW(shape), DRAW(shape), DRAW(channels)
    forward = {"y": rms_norm(x, gamma)} | ({"rstd": 1 / np.sqrt(np.mean(x**2, axis=1))} if keeps else {})
    judged("norm", kernels.norm(x, gamma, keeps), "forward", forward, keeps_rstd=keeps)
    of_norm = {
        "dx": slopes(lambda at: rms_norm(at, gamma), x, given_y),
        "dgamma": slopes(lambda at: rms_norm(x, at), gamma, given_y),
    }
    judged("norm", kernels.norm_backward(x, gamma, given_y, splits), "backward", of_norm, splits=splits)
    alone = {"dgate": slopes(silu, x, given_y)}
    judged("activation", kernels.activation_backward(x, given_y), "backward", alone)
    gated = {
        "dgate": slopes(lambda at: silu(at) * up, x, given_y),
        "dup": slopes(lambda at: silu(x) * at, up, given_y),
    }
    judged("gated_activation", kernels.activation_backward(x, given_y, up), "backward", gated)


@given(small, st.integers(1, 3), st.integers(1, 3))
def test_a_rotation_moves_what_it_counts(rows: int, heads: int, half: int) -> None:
    """Pairs of a head are complex numbers that are turned."""
    turned = DRAW((rows, heads, half)) + 1j * DRAW((rows, heads, half))
    by = np.exp(1j * DRAW((rows, half)))
    flat = np.concatenate([turned.real, turned.imag], axis=2).reshape(rows, -1)
    run = kernels.rotary(flat, np.concatenate([by.real, by.imag], axis=1))
    found = turned * by[:, None]
    expected = np.concatenate([found.real, found.imag], axis=2).reshape(rows, -1)
    np.testing.assert_allclose(run.outputs["Q"], expected, rtol=1e-9, atol=1e-12)
    cost = pointwise_cost("rotary", rows=rows, channels=flat.shape[1], others=2 * half)
    same(cost, run, {"io": 2, "kv": 2, "fp32": 4, "int64": 8}, 2)
    # The angles of a backward pass turn the other way.
    turned_back = kernels.rotary(run.outputs["Q"], np.concatenate([by.real, -by.imag], axis=1), "dQ")
    lengths = np.concatenate([np.abs(by) ** 2] * 2, axis=1)
    np.testing.assert_allclose(turned_back.outputs["dQ"], flat * np.tile(lengths, (1, heads)), rtol=1e-9, atol=1e-12)
    call = Elementwise(rows=rows, channels=flat.shape[1], others=2 * half, direction="backward")
    same(counted("rotary", call), turned_back, {"io": 2, "kv": 2, "fp32": 4, "int64": 8}, 2)


@given(small, st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(1, 3), st.sampled_from(["bf16", "fp8"]))
def test_a_rotation_that_appends_moves_what_it_counts(
    rows: int, heads: tuple[int, int], half: int, kv_dtype: str
) -> None:
    """Rotated rows are those of the kernel that only rotates; the caches hold them at their slots."""
    width = 2 * half
    angles = DRAW((rows, width))
    q, k, v = (DRAW((rows, many * width)) for many in (*heads, heads[1]))
    slots = list(np.random.default_rng(3).permutation(2 * rows)[:rows])
    sizes = {"io": 2, "kv": WEIGHT_QUARTERS[kv_dtype] // 32, "fp32": 4, "int64": 8}
    latent = np.concatenate([DRAW((rows, 5)), k[:, :width]], axis=1)
    for name, run in (
        ("rotary_append", kernels.rotary_append(q, angles, slots, 2 * rows, k, v)),
        ("rotary_append_latent", kernels.rotary_append(q, angles, slots, 2 * rows, latent)),
    ):
        new = k if name == "rotary_append" else latent
        call = Elementwise(
            rows=rows, channels=q.shape[1], others=new.shape[1], angles=width, kv_dtype=kv_dtype
        )  # fmt: skip
        same(counted(name, call), run, sizes, sizes["kv"])
        np.testing.assert_array_equal(run.outputs["Q"], kernels.rotary(q, angles).outputs["Q"])
        rotated = kernels.rotary(k[:, : new.shape[1]] if new is k else k[:, :width], angles).outputs["Q"]
        np.testing.assert_array_equal(run.outputs["K"][slots][:, -rotated.shape[1] :], rotated)
        if new is k:
            np.testing.assert_array_equal(run.outputs["V"][slots], v)


def test_a_pass_and_its_gradient_are_the_sum_of_both() -> None:
    forward, backward, both = (
        counted("norm", Elementwise(rows=7, channels=5, direction=direction), **options)
        for direction, options in (
            ("forward", {"keeps_rstd": True}),
            ("backward", {"splits": 2}),
            ("both", {"splits": 2}),
        )
    )
    assert both.hbm_bytes == forward.hbm_bytes + backward.hbm_bytes
    with pytest.raises(InputError, match="keeps_rstd: False given; allowed: True, because the backward pass needs it"):
        counted("norm", Elementwise(rows=7, channels=5, direction="both"), keeps_rstd=False)
    with pytest.raises(InputError, match="splits: 8 given; allowed: up to 7, the rows"):
        counted("norm", Elementwise(rows=7, channels=5, direction="backward"), splits=8)


def test_the_formulas_are_those_of_a_tiled_product() -> None:
    whole, split = (expressions("gemm", splits=splits).subs(groups=1) for splits in (1, 3))
    assert str(whole.reads["X"]) == "C_in*T*ceiling(C_out/B_n)"
    assert str(whole.footprint) == "B_k*B_m + B_k*B_n + B_m*B_n"
    assert str(split.writes["Y_acc"]) == "3*C_out*T"


@pytest.mark.parametrize("memory", [1024, 4096, 16_384, 65_536])
@pytest.mark.parametrize("sides", [(4096, 4096, 4096), (8192, 512, 8192)])
def test_the_bound_of_a_product_is_just_below_its_best_tile(memory: int, sides: tuple[int, int, int]) -> None:
    """2 m n k / sqrt(M) elements less two memories: a square tile reaches it but for its own rows and the result."""
    layer = Linear(rows=sides[0], in_features=sides[1], out_features=sides[2])
    bound = lower_bounds(layer, algorithm="gemm", sram_elements=memory)["product"]
    best = solve("gemm", layer, sram_elements=memory).cost.hbm_elements
    once = sides[0] * sides[2]
    assert best - once <= 1.2 * bound.elements <= 1.2 * best


def test_half_bytes_add_up() -> None:
    tiles = {"block_m": 1, "block_n": 1, "block_k": 1}
    three = Linear(rows=1, in_features=3, out_features=1, dtype="bf16", weight_dtype="int4")
    assert linear_cost(three, tiles).hbm_bytes == 3 * 2 + 2 + 2  # X, three half bytes rounded up, Y
    fp4 = Linear(rows=1, in_features=64, out_features=2, weight_dtype="mxfp4")
    assert linear_cost(fp4, {**tiles, "block_n": 2}).hbm_bytes == 64 * 2 + 64 * 2 * 17 // 32 + 2 * 2


@given(small, small, small, st.sampled_from(["bf16", "fp8", "int4"]))
def test_one_tile_moves_each_operand_once(rows: int, terms: int, columns: int, dtype: str) -> None:
    layer = Linear(rows=rows, in_features=terms, out_features=columns, weight_dtype=dtype)
    cost = linear_cost(layer, {"block_m": 9, "block_n": 9, "block_k": 9})
    assert cost.hbm_elements == rows * terms + terms * columns + rows * columns
    assert cost.flops == layer.flops == 2 * rows * layer.parameters


WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"block_q": 1}, "'block_q' is unknown"),
    ({}, {"block_m": 0}, "block_m: 0 given"),
    ({}, {"splits": 9}, "splits: 9 given; allowed: up to 4"),
    ({"scale_block": 3}, {}, "block_k: 2 given; allowed: a divisor of scale_block = 3"),
    ({"scale_block": 4}, {"splits": 3}, "allowed: up to 2"),
    ({"rows": 0}, {}, "rows"),
    ({"weight_dtype": "int7"}, {}, "'int7' is unknown"),
    ({"gated": True, "bias": True}, {}, "bias: given with gated"),
]


@pytest.mark.parametrize(("layer", "tiles", "message"), WRONG)
def test_bad_input_is_refused_in_a_line(layer: dict[str, Any], tiles: dict[str, Any], message: str) -> None:
    given_tiles = {"block_m": 2, "block_n": 2, "block_k": 2, **tiles}
    with pytest.raises((InputError, UnknownNameError)) as refused:
        linear_cost(Linear(**{"rows": 4, "in_features": 8, "out_features": 4, **layer}), given_tiles)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("name", "more"), [("sofmax", {}), ("norm", {"rows": 0}), ("norm", {"dtype": "bf17"})])
def test_bad_kernels_are_refused(name: str, more: dict[str, Any]) -> None:
    with pytest.raises((InputError, UnknownNameError)):
        pointwise_cost(name, **{"rows": 1, "channels": 1, **more})


@given(small, small, small, st.integers(1, 3))
def test_what_a_layer_has_to_move_is_each_operand_once(rows: int, terms: int, columns: int, groups: int) -> None:
    layer = Linear(rows=rows, in_features=terms, out_features=columns, groups=groups)
    own = replace(algorithm("gemm"), name="own gemm")  # not shipped: its formulas are derived here
    bound = lower_bounds(layer, algorithm=own, sram_bytes=1000)["compulsory"]
    assert bound.elements == groups * (rows * terms + terms * columns + rows * columns)
