"""Tiles that `solve` answers pass `check`, for every implementation on a device of each kind."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import product

import pytest

import iomodel
from iomodel import InfeasibleError, InputError

DEVICES = ("a100-sxm4-80gb", "rtx3090", "rtx4090", "h100-sxm5", "b200", "rtx5090", "mi300x", "mi355x", "t4")
WIDTHS = (40, 64, 96, 128, 192, 256, 512)
CASES = [
    (name, kernels, device)
    for name in ("flash1", "flash2", "flash3", "split_kv")
    for kernels in iomodel.list_implementations(name)[:-1]
    for device in DEVICES
]


@pytest.mark.parametrize(("name", "kernels", "device"), CASES)
def test_every_ranked_tile_and_the_tile_of_least_traffic_pass_check(name: str, kernels: str, device: str) -> None:
    for head_dim in WIDTHS:
        for direction in ("forward", "backward"):
            w = iomodel.Attention(
                heads=8, kv_heads=2, q_len=1000, head_dim=head_dim, mask="causal", direction=direction, dtype="fp16"
            )
            try:
                if kernels not in iomodel.list_implementations(name, device, w):
                    continue
                fastest = iomodel.solve(name, w, device, implementation=kernels, top=5)
                least = iomodel.solve(name, w, device, implementation=kernels, objective="traffic")
            except InfeasibleError:
                continue
            for tiles in (fastest.tiles, least.tiles, *(each.tiles for each in fastest.ranked)):
                check = iomodel.check(name, w, device, tiles, implementation=kernels)
                assert check.fits, (head_dim, direction, tiles, check.binding, check.slack)


def test_warps_follow_from_the_tile_in_cutlass() -> None:
    """A warp has 32 x 32 scores, and a kernel of 64 keys keeps O of rows over 64 in HBM."""
    for head_dim, keys, warps in ((64, 64, 4), (96, 128, 8), (128, 128, 8)):
        w = iomodel.Attention(heads=8, q_len=4096, head_dim=head_dim, dtype="fp16")
        tiles = iomodel.solve("flash2", w, "a100-sxm4-80gb", implementation="xformers").tiles
        assert dict(tiles) == {"block_q": 64, "block_kv": keys, "warps": warps, "stages": 1}


def test_where_no_tile_fits_solve_and_estimate_say_by_how_much() -> None:
    """`estimate` without tiles does not fall back to tiles that the kernels refuse."""
    w = iomodel.Attention(batch=8, heads=8, q_len=100, head_dim=80, dtype="fp16", direction="backward")
    message = r"^flash1: no tile fits NVIDIA L40S .*exceeds: shared memory \([0-9,]+ of 101,376 B\)$"
    for answer in (iomodel.solve, iomodel.estimate):
        for direction in ("backward", "both")[: 1 if answer is iomodel.solve else 2]:
            with pytest.raises(InfeasibleError, match=message):
                answer("flash1", w.model_copy(update={"direction": direction}), "l40s")


def test_a_check_of_both_passes_is_of_the_one_with_less_room() -> None:
    w = iomodel.Attention(heads=8, q_len=1000, head_dim=128, direction="both")
    tiles = iomodel.solve("fa2", w, "h100-sxm5").tiles
    outcome = iomodel.check("fa2", w, "h100-sxm5", tiles)
    passes = [
        iomodel.check("fa2", w.model_copy(update={"direction": direction}), "h100-sxm5", own).blocks_per_sm
        for direction, own in (
            ("forward", {name: tiles[name] for name in ("block_q", "block_kv")}),
            ("backward", {name: tiles[f"bwd_{name}"] for name in ("block_q", "block_kv")}),
        )
    ]
    assert (outcome.fits, outcome.blocks_per_sm) == (True, min(passes))
    assert not iomodel.check("fa2", w, "h100-sxm5", {**tiles, "bwd_block_q": 1024}).fits


@pytest.mark.parametrize("device", ["a100-sxm4-80gb", "rtx4090", "h100-sxm5", "mi300x"])
@pytest.mark.parametrize("length", [64, 128, 1000, 4096])
def test_no_launch_of_the_tiles_of_least_traffic_leaves_room_for_more_blocks(device: str, length: int) -> None:
    """Of launches with the same tiles, which move as much, the one with the most blocks on an SM is taken."""
    w = iomodel.Attention(heads=8, q_len=length, head_dim=128, dtype="fp16")
    least = iomodel.solve("flash2", w, device, objective="traffic")
    assert least.placed is not None
    tiles = {name: size for name, size in least.tiles.items() if name.startswith("block_")}
    launches = []
    for warps, stages in product((1, 2, 4, 8, 16), (1, 2, 3, 4)):
        with suppress(InfeasibleError, InputError):  # one that the kernels do not have
            asked = {**tiles, "warps": warps, "stages": stages}
            launches.append(iomodel.check("flash2", w, device, asked, implementation=least.implementation))
    fitting = [launch.blocks_per_sm for launch in launches if launch.fits]
    assert max(fitting) == least.placed.blocks_per_sm


@pytest.mark.parametrize(
    ("name", "device"), [("flash2", "a100-sxm4-80gb"), ("flash3", "h100-sxm5"), ("flash2", "b200")]
)
@pytest.mark.parametrize("length", [100, 1000, 4096])
def test_what_stops_the_tiles_of_both_passes_stops_those_of_the_slower_one(name: str, device: str, length: int) -> None:
    w = iomodel.Attention(heads=8, q_len=length, head_dim=128, mask="causal")
    whole = iomodel.solve(name, w.replace(direction="both"), device).certificate
    passes = [iomodel.solve(name, w.replace(direction=direction), device) for direction in ("forward", "backward")]
    slower = max(passes, key=lambda found: found.seconds)
    prefix = "bwd_" * (slower is passes[1])
    step = slower.certificate.next_step
    assert whole.next_step == replace(step, tile=prefix + step.tile)
    assert (whole.binding, whole.memory) == (slower.certificate.binding, slower.certificate.memory)
