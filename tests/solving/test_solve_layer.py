"""Fastest tiles of linear layers on a device: the same answer from `solve`, `check` and `estimate`, and none faster."""

from __future__ import annotations

from itertools import chain, product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import iomodel
from iomodel.solving.certificate import TIE

DEVICES = ("h100-sxm5", "b200", "mi300x", "l4", "tpu-v5e")
layers = st.builds(
    iomodel.Linear,
    rows=st.sampled_from([1, 16, 100, 4096]) | st.integers(1, 5000),
    in_features=st.integers(1, 64).map(lambda n: 128 * n),
    out_features=st.integers(1, 20_000),
    groups=st.sampled_from([1, 3]),
    gated=st.booleans(),
    weight_dtype=st.sampled_from(["bf16", "int8", "int4"]),
)
EXTENTS = {"block_m": "rows", "block_n": "out_features"}


def split_of(solution):
    return solution.options["splits"]


@given(st.sampled_from(DEVICES), layers)
def test_solve_check_and_estimate_agree(name, layer):
    """The tile of a library, at which a layer is estimated, is solved for where none is faster beyond the error."""
    solution = iomodel.solve("gemm", layer, name)
    default = iomodel.estimate("gemm", layer, name)
    again = iomodel.estimate("gemm", layer, name, solution.tiles, splits=split_of(solution))
    assert solution.tiles == default.tiles or solution.seconds < default.error[0]
    assert solution.seconds == again.seconds
    assert solution.tiles == again.tiles
    assert solution.cost == again.cost
    assert solution.dram_bytes == again.dram_bytes
    assert solution.placed == iomodel.check("gemm", layer, name, solution.tiles)
    assert solution.placed.fits
    assert solution.implementation == "vendor-blas"


@settings(max_examples=10)
@example("b200", iomodel.Linear(rows=4096, in_features=3584, out_features=65, groups=3))
@given(st.sampled_from(DEVICES), layers)
def test_no_tile_that_fits_is_faster(name, layer):
    """The times are asked for one by one, over powers of two; tiles far taller than the layer are not launched.

    Nor are sums split where there are blocks for every SM twice.
    """
    solution, units = iomodel.solve("gemm", layer, name), int(iomodel.hardware(name).compute.units.value)
    parts = split_of(solution)
    sizes = [2**power for power in range(4, 12 if name.startswith("tpu") else 9)]
    enough = next((size for size in sizes if size >= layer.rows), sizes[-1])
    for block_m, block_n in product(sizes, [size for size in sizes if size >= 64]):
        tile = {"block_m": block_m, "block_n": block_n, "block_k": solution.tiles["block_k"]}
        if block_m > enough or 4 * block_m < min(enough, 128) or not iomodel.check("gemm", layer, name, tile).fits:
            continue
        blocks = parts * layer.groups * -(-layer.rows // block_m) * -(-layer.out_features // block_n)
        if parts > 1 and blocks > 2 * units:
            continue
        one = iomodel.estimate("gemm", layer, name, tile, splits=parts)
        assert solution.seconds <= one.seconds * (1 + TIE)
        assert one.cost.hbm_bytes >= solution.certificate.least_hbm_bytes


@given(st.sampled_from(DEVICES), layers)
def test_the_certificate_names_what_stops_the_tile(name, layer):
    solution = iomodel.solve("gemm", layer, name, top=3)
    why = solution.certificate
    beyond = iomodel.check("gemm", layer, name, {**solution.cost.tiles, why.next_step.tile: why.next_step.size})
    assert not beyond.fits
    assert beyond.resources[why.next_step.resource].slack == -why.next_step.excess < 0
    twice = {
        size: iomodel.check("gemm", layer, name, {**solution.cost.tiles, size: 2 * solution.tiles[size]})
        for size, extent in EXTENTS.items()
        if solution.tiles[size] < getattr(layer, extent)
    }
    over = {resource for c in twice.values() for resource, room in c.resources.items() if room.slack < 0}
    assert why.binding in over if over else why.binding == ("time" if twice else "extent")
    assert why.lower_bound.bytes <= why.least_hbm_bytes <= solution.cost.hbm_bytes
    times = [choice.seconds for choice in solution.ranked]
    assert times == sorted(times)
    assert times[0] == solution.seconds
    assert why.runner_up is None or why.runner_up.seconds > solution.seconds


@given(layers, st.integers(1, 3))
def test_given_splits_and_blocks_are_kept(layer, splits):
    splits = min(splits, layer.in_features // 128)
    solution = iomodel.solve("gemm", layer, "h100-sxm5", splits=splits, min_blocks_per_sm=2)
    assert split_of(solution) == splits
    assert solution.searched == ()
    assert solution.placed.blocks_per_sm >= 2
    with pytest.raises(iomodel.InfeasibleError, match="no common tile of a linear layer has 99 blocks per SM"):
        iomodel.solve("gemm", layer, "h100-sxm5", min_blocks_per_sm=99)


def test_stages_and_warps_are_kept():
    layer = iomodel.Linear(rows=4096, in_features=4096, out_features=4096)
    tile = {"block_m": 128, "block_n": 128, "block_k": 64}
    four = iomodel.check("gemm", layer, "a100-sxm4-80gb", tile)
    two = iomodel.check("gemm", layer, "a100-sxm4-80gb", {**tile, "stages": 2, "warps": 4})
    assert (four.tiles["stages"], two.tiles["stages"], two.tiles["warps"]) == (4, 2, 4)
    assert 2 * two.resources["shared memory"].used == four.resources["shared memory"].used
    assert two.blocks_per_sm > four.blocks_per_sm
    estimates = [iomodel.estimate("gemm", layer, "a100-sxm4-80gb", c.tiles, splits=1) for c in (two, four)]
    assert [e.tiles["stages"] for e in estimates] == [2, 4]
    assert estimates[0].seconds != estimates[1].seconds


@given(layers)
def test_least_traffic_is_that_of_one_memory(layer):
    bare = iomodel.solve("gemm", layer, sram_bytes=232_448, alignment=16)
    for asked in ({"implementation": "textbook"}, {"objective": "traffic"}, {"epsilon": 1e-9}, {"alignment": 16}):
        found = iomodel.solve("gemm", layer, "h100-sxm5", **asked)
        assert (found.tiles, found.cost, found.implementation) == (bare.tiles, bare.cost, "textbook")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda w: iomodel.solve("gemm", w, "h100-sxm5", implementation="cublas"),
            "implementation of gemm: 'cublas'",
        ),
        (
            lambda w: iomodel.solve("gemm", w, "h100-sxm5", implementation="vendor-blas", objective="traffic"),
            "implementation: 'vendor-blas' given for least traffic; allowed: 'textbook', or by time",
        ),
        (
            lambda w: iomodel.solve("gemm", w, "v100-sxm2-32gb", implementation="vendor-blas"),
            "implementation: 'vendor-blas' given; allowed: 'textbook', for gemm",
        ),
        (
            lambda w: iomodel.estimate("gemm", w, "h100-sxm5", implementation="textbook"),
            "implementation: 'textbook' given; allowed: vendor-blas, for a time of a linear layer",
        ),
        (lambda w: iomodel.check("gemm", w, "h100-sxm5", {"block_m": 16}), "block_n, block_k: gemm needs these tiles"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(iomodel.IOModelError) as error:
        call(iomodel.Linear(rows=8, in_features=64, out_features=64))
    assert message in str(error.value)


def test_a_device_without_a_rate_gets_one_memory():
    solution = iomodel.solve("gemm", iomodel.Linear(rows=8, in_features=64, out_features=64), "v100-sxm2-32gb")
    assert solution.implementation == "textbook"
    assert solution.notes == ("one memory for all live data of a block (no rate of products in bf16 on file)",)


def test_every_device_is_answered():
    layer = iomodel.Linear(rows=512, in_features=4096, out_features=4096)
    answers = {name: iomodel.list_implementations("gemm", name) for name in iomodel.list_hardware()}
    assert {*chain(*answers.values())} == {"vendor-blas", "textbook"}
    for name, known in answers.items():
        assert iomodel.solve("gemm", layer, name).implementation == known[0]
