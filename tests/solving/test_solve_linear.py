"""Least-traffic tiles of linear layers: the solver's answer is that of a search over every tile."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iomodel
from iomodel import Linear
from tests.support.inside import BoundCall

small = st.integers(1, 7)


@st.composite
def layers(draw: Any) -> Linear:
    return Linear(
        rows=draw(small),
        in_features=draw(small),
        out_features=draw(small),
        groups=draw(st.integers(1, 2)),
        weight_dtype=draw(st.sampled_from(["bf16", "fp8", "int4"])),
        scale_block=draw(st.none() | small),
        **{draw(st.sampled_from(["gated", "bias"])): draw(st.booleans())},
    )


@given(layers(), st.integers(1, 3), st.integers(1, 400), st.sampled_from(["sram_bytes", "sram_elements"]), st.data())
def test_the_tiles_are_those_of_an_exhaustive_search(
    layer: Linear, splits: int, amount: int, unit: str, data: st.DataObject
) -> None:
    terms = layer.in_features if layer.scale_block is None else -(-layer.in_features // layer.scale_block)
    splits = min(splits, terms)
    step = 1 if splits > 1 or layer.scale_block else data.draw(st.integers(1, 3))
    occupied = "footprint_bytes" if unit == "sram_bytes" else "footprint_elements"
    call = BoundCall.bind("gemm", layer, {"splits": splits})
    ranges = [range(step, extent + step, step) for extent in (layer.rows, layer.out_features, layer.in_features)]
    costs = []
    for tile in product(*ranges):
        try:
            cost = call.cost(dict(zip(("block_m", "block_n", "block_k"), tile, strict=True)))
        except iomodel.InputError:  # a block_k that does not divide a block of scales, or leaves too few slices
            continue
        costs.append((cost.hbm_bytes, -tile[1], getattr(cost, occupied), tile))
    fitting = [rank for rank in costs if rank[2] <= amount]
    if not fitting:
        with pytest.raises(iomodel.InfeasibleError) as refused:
            iomodel.solve("gemm", layer, **{unit: amount}, alignment=step, splits=splits)
        assert refused.value.least == min(rank[2] for rank in costs)
        return
    solution = iomodel.solve("gemm", layer, **{unit: amount}, alignment=step, splits=splits)
    assert tuple(solution.tiles.values()) == min(fitting)[3]
    why = solution.certificate
    assert why.least_hbm_bytes == solution.cost.hbm_bytes == min(fitting)[0]
    above = sorted(rank[0] for rank in fitting if rank[0] > min(fitting)[0])
    assert (why.runner_up.hbm_bytes if why.runner_up else None) == (above[0] if above else None)
    assert why.lower_bound.bytes <= solution.cost.hbm_bytes
    larger = {**solution.tiles, why.next_step.tile: why.next_step.size}
    assert getattr(call.cost(larger), occupied) == why.next_step.footprint > amount


@given(layers(), st.integers(1, 8), st.integers(1, 8), st.integers(1, 3))
def test_no_tile_moves_less_than_the_bounds(layer: Linear, block_m: int, block_n: int, splits: int) -> None:
    terms = layer.in_features if layer.scale_block is None else -(-layer.in_features // layer.scale_block)
    tiles = {"block_m": block_m, "block_n": block_n, "block_k": 1}
    cost = iomodel.cost("gemm", layer, tiles, splits=min(splits, terms))
    for bound in iomodel.lower_bounds(layer, algorithm="gemm", sram_elements=cost.footprint_elements).values():
        assert bound.elements <= cost.hbm_elements
        assert bound.bytes <= cost.hbm_bytes


def test_the_bound_of_a_product_is_nearly_reached() -> None:
    layer = Linear(rows=4096, in_features=4096, out_features=4096)
    solution = iomodel.solve("gemm", layer, sram_elements=66_048)  # 256 x 256 sums and a slice of either operand
    assert dict(solution.tiles) == {"block_m": 256, "block_n": 256, "block_k": 1}
    assert solution.certificate.lower_bound.name == "product"
    assert solution.certificate.ratio < 1.04


def test_one_tile_is_the_compulsory_traffic() -> None:
    layer = Linear(rows=5, in_features=6, out_features=7, groups=2, weight_dtype="int4", bias=True)
    bound = iomodel.lower_bounds(layer, algorithm="gemm", sram_elements=1)["compulsory"]
    assert bound.elements == 2 * (5 * 6 + 6 * 7 + 7 + 5 * 7)
    cost = iomodel.cost("gemm", layer, {"block_m": 5, "block_n": 7, "block_k": 6})
    assert (cost.hbm_elements, cost.hbm_bytes) == (bound.elements, bound.bytes)


def test_an_algorithm_refuses_what_it_does_not_answer() -> None:
    layer, call = Linear(rows=1, in_features=1, out_features=1), iomodel.Attention(q_len=1, head_dim=1)
    with pytest.raises(iomodel.InputError, match="flash2 given, for attention; allowed for linear: gemm"):
        iomodel.solve("flash2", layer, sram_elements=100)
    with pytest.raises(iomodel.InputError, match="gemm given, for linear; allowed for attention: dsa, eager, flash1"):
        iomodel.lower_bounds(call, algorithm="gemm", sram_elements=100)


@given(layers(), st.integers(1, 200))
def test_tiles_that_load_whole_edges_are_those_of_an_exhaustive_search(layer: Linear, elements: int) -> None:
    layer = layer.model_copy(update={"scale_block": None})
    sizes = product(range(1, layer.rows + 1), range(1, layer.out_features + 1))
    costs = [
        iomodel.cost("gemm", layer, {"block_m": m, "block_n": n, "block_k": 1}, wrapped_edges=True) for m, n in sizes
    ]
    moved = [cost.hbm_bytes for cost in costs if cost.footprint_elements <= elements]
    if not moved:
        with pytest.raises(iomodel.InfeasibleError):
            iomodel.solve("gemm", layer, sram_elements=elements, wrapped_edges=True)
        return
    found = iomodel.solve("gemm", layer, sram_elements=elements, wrapped_edges=True)
    assert found.cost.hbm_bytes == found.certificate.least_hbm_bytes == min(moved)


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_a_workload_without_kernels_has_bounds_in_the_memory_of_one_block(direction: str) -> None:
    mlp = iomodel.MLP(rows=16, in_features=256, hidden_features=512, direction=direction)
    why = iomodel.solve("split_mlp", mlp, "a100-sxm4-80gb", objective="traffic").certificate
    memory = iomodel.hardware("a100-sxm4-80gb").sram_per_block
    bounds = iomodel.lower_bounds(mlp, algorithm="split_mlp", sram_bytes=memory)
    assert (why.memory, why.lower_bound) == (memory, max(bounds.values(), key=lambda bound: bound.bytes))
