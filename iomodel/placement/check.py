"""Check of a tile on a device: feasibility, remaining resources, limiting resource, occupancy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.common.display import ANSWER, LIMIT, Mark, Result, Table, choice_text, sizes_text
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record
from iomodel.common.validation import as_integer
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.choice import split_choice
from iomodel.counting.cost import Cost
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.nests.implementation import TEXTBOOK, Implementation, ShippedTile
from iomodel.placement.fit import BlockFit, in_one_memory
from iomodel.placement.gemm_tiles import buffered, warps_of
from iomodel.placement.implementations import implementation_for, no_kernel
from iomodel.placement.placement import Launch, Placement, placements
from iomodel.placement.shipped_tile import shipped_row
from iomodel.workloads.attention import Attention, as_attention
from iomodel.workloads.linear import Linear


@dataclass(frozen=True)
class Resource(Record):
    """Use and limit of one resource of a thread block."""

    derived = ("slack",)

    used: int
    limit: int
    unit: str

    @property
    def slack(self) -> int:
        """Remaining amount; negative if exceeded."""
        return self.limit - self.used


@dataclass(frozen=True)
class Check(Result):
    """A tile checked on a device.

    Attributes
    ----------
    fits : bool
        True if no resource is exceeded.
    resources : mapping of name to Resource
        ``shared memory`` of a block [B], ``registers`` of a thread [-], ``threads`` of a block [-], ``tensor memory``
        of a block [columns] if the kernel uses it, and ``MMA shape``: the rows of a tile beyond a multiple of the MMA
        step of the warps, or off the sizes that the kernel is compiled for.
    binding : str
        The exceeded resource, else the one with the least share left.
    blocks_per_sm : int
        Concurrent blocks per SM [-]; 0 if the tile does not fit.
    limited_by : str
        Limit of the concurrent blocks.
    residency : str
        Placement of the tiles.
    """

    algorithm: str
    workload: Attention | Linear
    device: str
    tiles: Mapping[str, int]
    residency: str
    fits: bool
    resources: Mapping[str, Resource]
    binding: str
    blocks_per_sm: int
    limited_by: str

    @property
    def slack(self) -> Mapping[str, int]:
        """Remaining amount of each resource; negative if exceeded."""
        return FrozenDict({name: resource.slack for name, resource in self.resources.items()})

    def resource_rows(self) -> list[tuple[str, str, str]]:
        """List the rows of a table: each resource, and the occupancy."""
        lines = [
            (f"{name} used of {resource.limit:,}", f"{resource.used:,}", resource.unit)
            for name, resource in self.resources.items()
            if name != "MMA shape" or resource.used
        ]
        return [*lines, (f"blocks per SM, limited by {self.limited_by}", str(self.blocks_per_sm), "-")]

    def headline(self) -> str:
        """Return the answer in a few words."""
        verdict = "fits" if self.fits else f"does not fit, {self.binding}"
        return f"{self.algorithm} on {self.device}: {choice_text(self.tiles)}, {verdict}"

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        verdict = ("fits", Mark("yes" if self.fits else "no", ANSWER), "")
        rows = [
            verdict,
            ("layout", self.residency, ""),
            *self.resource_rows(),
            ("binding", Mark(self.binding, LIMIT), ""),
        ]
        return [Table(f"{self.algorithm}: {sizes_text(self.tiles)} on {self.device}", ("", ">value", "unit"), rows)]


def check(
    algorithm: AlgorithmLike,
    workload: Attention | Linear,
    hardware: Hardware | str,
    tiles: Mapping[str, Any] | None = None,
    implementation: str | Implementation | None = None,
    **options: Any,
) -> Check:
    """Check whether a tile fits a device, with the remaining resources, the limiting one, and the occupancy.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms` that has an implementation for the direction.
    workload : Attention or Linear
        The attention call, forward or backward, or the linear layer.
    hardware : Hardware or str
        A device with shared memory, registers and matrix instructions on file.
    tiles : mapping of name to int
        ``{"block_q": 128, "block_kv": 64, "warps": 4, "stages": 1}``; warps are computing warps [-]. They
        default to the least numbers of the kernel.
    implementation : str or Implementation, optional
        The kernels: one of :func:`iomodel.list_implementations`, by default the first that runs the call there.
    **options
        Options of the algorithm, and ``packed=True``; tiles by name (``block_q=128``).

    Raises
    ------
    UnknownNameError, InputError, SpecError
        A name is unknown; the kernels do not support the device or the width; the device lacks a figure.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=4096, head_dim=128)
    >>> c = iomodel.check("flash2", w, "a100-sxm4-80gb", {"block_q": 128, "block_kv": 64, "warps": 4})
    >>> c.fits, c.slack["shared memory"], c.binding, c.blocks_per_sm
    (True, 101376, 'registers', 2)
    """
    call: Attention | Linear = workload if isinstance(workload, Linear) else as_attention(workload)
    device = as_device(hardware)
    chosen = implementation_for(algorithm, call, device, implementation)
    given, options = split_choice(algorithm, tiles, options, "{'block_q': 128, 'block_kv': 64, 'warps': 4}")
    launch_sizes = given or {}
    bound = BoundCall.bind(algorithm, call, options)
    sizes = bound.sizes(launch_sizes)
    if isinstance(call, Linear) and chosen != TEXTBOOK:
        return check_layer(algorithm, call, device, launch_sizes, sizes)
    if isinstance(call, Linear) or not chosen.residency:
        return _textbook(algorithm, call, device, bound.at(sizes), implementation is None)
    launches = launches_at(bound, call, device, chosen, launch_sizes)
    return nearest(launches, algorithm, call, sizes, shipped_row(chosen, call, device, bound.options))[0]


def nearest(
    launches: list[tuple[Placement, Launch]],
    algorithm: AlgorithmLike,
    call: Attention,
    sizes: Mapping[str, int],
    row: ShippedTile | None,
) -> tuple[Check, Placement, Launch]:
    """Check a tile in every layout and return the one that exceeds least: of equals, the one that ships the tile.

    A kernel may have several layouts for a tile, and its source uses one per call; the shared memory that the
    table `row` of the call states tells which.
    """
    outcomes = [(checked(*launch, algorithm, call, sizes), *launch) for launch in launches]

    def order(outcome: tuple[Check, Placement, Launch]) -> tuple[float, bool]:
        checked = outcome[0]
        ships = row is not None and all(checked.tiles.get(name) == size for name, size in row.tiles.items())
        stated = row.shared_bytes if row is not None and ships else None
        return excess(checked), stated is not None and checked.resources["shared memory"].used != stated

    return min(outcomes, key=order)


def launches_at(
    bound: BoundCall, call: Attention, device: Hardware, implementation: Implementation, sizes: Mapping[str, Any]
) -> list[tuple[Placement, Launch]]:
    """List the launches of an implementation with the given warps and stages; InputError if there are none."""
    candidates = placements(bound.algorithm, call, device, implementation, dict(bound.structure), bound.kind)
    launches = [(placement, launch) for placement in candidates for launch in _launches(placement, sizes)]
    if not launches:
        given: dict[str, Any] = {name: sizes[name] for name in ("warps", "stages") if name in sizes}
        raise refused_launch(given, [launch for placement in candidates for launch in placement.launches()])
    return launches


def _textbook(algorithm: AlgorithmLike, call: Attention | Linear, device: Hardware, cost: Cost, assumed: bool) -> Check:
    """Check tiles whose live data share one memory."""
    layout = no_kernel(algorithm, call, device) if assumed else TEXTBOOK.title
    fit = in_one_memory(device, cost.footprint_bytes)
    return check_of(algorithm, call, device.name, cost.tiles, layout, fit)


def off_steps(placement: Placement, launch: Launch, tiles: Mapping[str, int]) -> str:
    """Say which sizes the tiles off the kernel's sizes, or off the steps of its matrix instructions, may have."""
    said = []
    for name, step, sizes in zip(placement.tiles, placement.steps(launch), placement.residency.sizes, strict=True):
        if (sizes and tiles[name] not in sizes) or tiles[name] % step:
            allowed = ", ".join(str(size) for size in sizes if size % step == 0) or f"multiples of {step}"
            said.append(f"{name}: {tiles[name]} given; allowed: {allowed} with {launch.warps} warps")
    return "; ".join(said)


def excess(outcome: Check) -> float:
    """Sum the relative excess of a tile over all resources; 0 if it fits [-]."""
    return sum(max(0, -r.slack) / max(1, r.limit) for r in outcome.resources.values())


def _launches(placement: Placement, sizes: Mapping[str, Any]) -> list[Launch]:
    residency = placement.residency
    warps = as_integer("warps", sizes.get("warps", min(residency.warps)))
    stages = as_integer("stages", sizes.get("stages", min(residency.stages)))
    return [launch for launch in placement.launches() if (launch.warps, launch.stages) == (warps, stages)]


def refused_launch(given: Mapping[str, Any], launches: Iterable[Launch]) -> InputError:
    """Build the error of warps and stages that no kernel is launched with."""
    known = sorted({(launch.warps, launch.stages) for launch in launches})
    allowed = ", ".join(f"{warps} and {stages}" for warps, stages in known)
    typed = " and ".join(f"{name} {size}" for name, size in sorted(given.items(), reverse=True))
    return InputError(f"tiles: {typed} given; allowed: warps and stages {allowed}")


def checked(
    placement: Placement, launch: Launch, algorithm: AlgorithmLike, workload: Attention, sizes: Mapping[str, int]
) -> Check:
    """Check one launch configuration of a tile."""
    query, key = (sizes[name] for name in placement.tiles)
    tiles = {**sizes, "warps": launch.warps, "stages": launch.stages}
    fit = placement.fit(query, key, launch)
    return check_of(algorithm, workload, placement.device.label, tiles, launch.residency.title, fit)


def check_of(
    algorithm: AlgorithmLike,
    workload: Attention | Linear,
    device: str,
    tiles: Mapping[str, int],
    layout: str,
    fit: BlockFit,
) -> Check:
    """Return the check of tiles from the resources that they take."""
    resources = {name: Resource(used, fit.limits[name], fit.units[name]) for name, used in fit.used.items()}
    shares = {name: left.slack / max(1, left.limit) for name, left in resources.items() if name != "MMA shape"}
    over = fit.over
    return Check(
        name_of(algorithm),
        workload,
        device,
        FrozenDict(tiles),
        layout,
        not over,
        FrozenDict(resources),
        "MMA shape" if [*over] == ["MMA shape"] else min(shares, key=shares.__getitem__),
        0 if over else fit.blocks_per_sm,
        fit.limited_by,
    )


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
