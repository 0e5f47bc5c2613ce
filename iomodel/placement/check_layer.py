"""Check of a tile of a linear layer on a device, by the resources of the common tiles."""

from __future__ import annotations

from collections.abc import Mapping

from iomodel.algorithms import AlgorithmLike
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.placement.check import Check, check_of
from iomodel.placement.gemm_tiles import buffered, warps_of
from iomodel.workloads.linear import Linear


def check_layer(
    algorithm: AlgorithmLike, layer: Linear, device: Hardware, tiles: Mapping[str, int], sizes: Mapping[str, int]
) -> Check:
    """Check a tile with the given warps and stages, by default those of the vendors' libraries for the tile."""
    launch = {name: as_integer(name, tiles[name]) for name in tiles if name in LAUNCH_NAMES}
    fit, stages = buffered(device, layer, sizes, launch.get("stages"))
    place = next((name for name in fit.used if name != "shared memory"), "shared memory")
    layout = f"sums in {place}, {stages} buffers of a slice of either operand"
    warps = launch.get("warps", warps_of(sizes["block_m"], sizes["block_n"]))
    return check_of(algorithm, layer, device.name, {**sizes, "warps": warps, "stages": stages}, layout, fit)
