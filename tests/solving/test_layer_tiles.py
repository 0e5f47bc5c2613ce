"""Tiles of linear layers beside those common to libraries: none that is known is faster beyond the error."""

from __future__ import annotations

import pytest

import iomodel
from iomodel import Linear
from iomodel.solving.certificate import TIE

NARROW = Linear(rows=1, in_features=56, out_features=23, groups=2, bias=True, dtype="fp16")
ONE_ROW = Linear(rows=1, in_features=2048, out_features=4096, dtype="fp16")
PAIRED = Linear(rows=4096, in_features=4096, out_features=1024, dtype="fp32")
SMALL = Linear(rows=16384, in_features=14336, out_features=2048, bias=True, dtype="fp32")
WIDE = Linear(rows=512, in_features=2048, out_features=1024)
UNEVEN = Linear(rows=128, in_features=14336, out_features=14336, weight_dtype="nvfp4")
LONG = Linear(rows=4096, in_features=14336, out_features=14336, dtype="fp16")
CUT = Linear(rows=4096, in_features=4096, out_features=1000, dtype="fp16")
GATED = Linear(rows=512, in_features=14336, out_features=4096, gated=True)
FASTER = {
    "an output narrower than a common tile": ("a100-sxm4-40gb", NARROW, {"block_m": 16, "block_n": 8, "block_k": 64}),
    "more blocks for one row": ("b300", ONE_ROW, {"block_m": 16, "block_n": 32, "block_k": 256}),
    "fewer stages for more blocks": (
        "v100-sxm2-16gb",
        PAIRED,
        {"block_m": 64, "block_n": 64, "block_k": 16, "stages": 2},
    ),
    "a narrow slice in a small memory": ("apple-m1-max", SMALL, {"block_m": 64, "block_n": 64, "block_k": 16}),
    "a wide slice": ("rtx-a5000", WIDE, {"block_m": 64, "block_n": 128, "block_k": 96}),
    "a width between powers of two": ("rtx3080", UNEVEN, {"block_m": 16, "block_n": 144, "block_k": 32}),
    "blocks of half the memory": ("rtx-6000-ada", LONG, {"block_m": 160, "block_n": 120, "block_k": 32, "stages": 2}),
    "an axis in whole parts": ("h100-sxm5", CUT, {"block_m": 160, "block_n": 200, "block_k": 64}),
    "a low tile of many rows": ("mi250x", GATED, {"block_m": 32, "block_n": 64, "block_k": 16, "stages": 2}),
}
"""Tiles that are not among the common ones, which are 1 to 76 % slower."""


@pytest.mark.parametrize(("device", "layer", "tiles"), FASTER.values(), ids=[*FASTER])
def test_a_tile_that_is_faster_beyond_the_error_is_found(device: str, layer: Linear, tiles: dict[str, int]) -> None:
    solved, common = iomodel.solve("gemm", layer, device), iomodel.estimate("gemm", layer, device)
    other = iomodel.estimate("gemm", layer, device, tiles)
    assert solved.seconds <= other.error[1]
    assert other.seconds * (1 + TIE) < common.seconds
    assert solved.tiles == common.tiles or solved.seconds < common.error[0]


@pytest.mark.parametrize("device", ["h100-sxm5", "rtx3060", "mi300x"])
def test_tiles_are_whole_instructions(device: str) -> None:
    mma = iomodel.hardware(device).compute.mma
    for rows, columns in ((3, 5), (77, 1000), (5000, 4097)):
        tiles = iomodel.solve("gemm", Linear(rows=rows, in_features=300, out_features=columns), device).tiles
        if mma.columns is not None:
            assert (tiles["block_m"] % mma.rows.value, tiles["block_n"] % mma.columns.value) == (0, 0)
            assert 2 * tiles["block_k"] % mma.depth.value == 0


def test_slices_divide_a_block_of_scales() -> None:
    for scale in (32, 96, 100):
        layer = Linear(
            rows=300, in_features=9600, out_features=520, dtype="fp16", weight_dtype="int4", scale_block=scale
        )
        found = iomodel.solve("gemm", layer, "v100-sxm2-16gb" if scale == 100 else "a100-sxm4-80gb", top=5)
        assert all(scale % choice.tiles["block_k"] == 0 for choice in found.ranked)
