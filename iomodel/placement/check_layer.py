"""Check of a tile of a linear layer on a device, by the resources of the common tiles."""

from __future__ import annotations

from collections.abc import Mapping

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.placement.check import Check, Resource
from iomodel.placement.gemm_tiles import Room, room, warps_of
from iomodel.workloads.linear import Linear


def check_layer(
    algorithm: AlgorithmLike, layer: Linear, device: Hardware, tiles: Mapping[str, int], sizes: Mapping[str, int]
) -> Check:
    """Check a tile with the given warps and stages, by default those of the vendors' libraries for the tile."""
    launch = {name: as_integer(name, tiles[name]) for name in tiles if name in LAUNCH_NAMES}
    space = room(device, layer, sizes, launch.get("stages"))
    resources = resources_of(space)
    shares = {name: resource.slack / max(1, resource.limit) for name, resource in resources.items()}
    warps = launch.get("warps", warps_of(sizes["block_m"], sizes["block_n"]))
    return Check(
        name_of(algorithm),
        layer,
        device.name,
        FrozenDict({**sizes, "warps": warps, "stages": space.stages}),
        f"sums in {space.place or 'shared memory'}, {space.stages} buffers of a slice of either operand",
        not space.over,
        FrozenDict(resources),
        min(shares, key=shares.__getitem__),
        space.blocks,
        space.limited_by,
    )


def resources_of(found: Room) -> dict[str, Resource]:
    """Return the use and limit of each resource."""
    resources = {"shared memory": Resource(found.shared, found.shared_limit, "B")}
    if found.place:
        resources[found.place] = Resource(found.sums, found.sums_limit, "B")
    return resources
