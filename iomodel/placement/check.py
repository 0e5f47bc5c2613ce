"""Checks of a tile in the launch configurations of a kernel: feasibility, remaining resources, occupancy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.display import ANSWER, LIMIT, Mark, Result, Table, choice_text, sizes_text
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Deferred, Record
from iomodel.common.validation import as_integer
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.cost import Cost
from iomodel.devices.device import Hardware
from iomodel.errors import InputError
from iomodel.nests.alphabet import LAUNCH_NAMES
from iomodel.nests.implementation import TEXTBOOK, Implementation, ShippedTile, kernels_title
from iomodel.placement.fit import BlockFit, in_one_memory
from iomodel.placement.gemm_tiles import buffered, warps_of
from iomodel.placement.implementations import no_kernel
from iomodel.placement.placement import Launch, Placement, placements
from iomodel.workloads.attention import Attention
from iomodel.workloads.linear import Linear
from iomodel.workloads.workload import Workload


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
class Check(Deferred, Result):
    """A tile checked on a device.

    Attributes
    ----------
    hardware : str
        Name of the device.
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
    implementation : str
        The kernels that hold the tile; "textbook" for one memory per block.
    spilled : int
        Registers of a thread on its stack, where a compiler decides the layout [-].
    others : tuple of str
        The other launches and kernels of the call in which the tile does not fit, each with what it exceeds.
    nearest : tuple of mappings of tile name to int
        Where the tile does not fit, those that do in the same kernels with one size changed: other warps and stages,
        or the largest half, quarter and so on of a tile.
    """

    derived = ("device",)
    renamed = FrozenDict(device=("hardware", ".hardware"))

    algorithm: str
    workload: Annotated[Any, Workload]
    hardware: str
    tiles: Mapping[str, int]
    residency: str
    fits: bool
    resources: Mapping[str, Resource]
    binding: str
    blocks_per_sm: int
    limited_by: str
    implementation: str = TEXTBOOK.name
    others: tuple[str, ...] = ()
    nearest: tuple[Mapping[str, int], ...] = field(default_factory=tuple)
    spilled: int = 0

    @property
    def slack(self) -> Mapping[str, int]:
        """Remaining amount of each resource; negative if exceeded."""
        return FrozenDict({name: resource.slack for name, resource in self.resources.items()})

    def resource_rows(self) -> list[tuple[str, str, str]]:
        """List the rows of a table: each resource, and the occupancy."""
        lines = [
            ("rows off the MMA shape", f"{resource.used:,}", resource.unit)
            if name == "MMA shape"
            else (f"{name} used of {resource.limit:,}", f"{resource.used:,}", resource.unit)
            for name, resource in self.resources.items()
            if name != "MMA shape" or resource.used
        ]
        if self.spilled:
            lines.append(("registers spilled", f"{self.spilled:,}", "-"))
        return [*lines, (f"blocks per SM, limited by {self.limited_by}", str(self.blocks_per_sm), "-")]

    def headline(self) -> str:
        """Return the answer in a few words."""
        verdict = "fits" if self.fits else f"does not fit, {self.binding}"
        return f"{self.algorithm} on {self.hardware}: {choice_text(self.tiles)}, {verdict}"

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        verdict = ("fits", Mark("yes" if self.fits else "no", ANSWER), "")
        rows = [
            verdict,
            ("layout", self.residency, ""),
            *self.resource_rows(),
            ("binding", Mark(self.binding, LIMIT), ""),
        ]
        title = f"{kernels_title(self.algorithm, self.implementation)}: {sizes_text(self.tiles)} on {self.hardware}"
        notes = [f"does not fit: {other}" for other in self.others]
        notes += [f"fits: {sizes_text(tiles)}" for tiles in self.nearest]
        return [Table(title, ("", ">value", "unit"), rows, notes)]


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


Outcomes = Mapping[tuple[int, int], tuple[Check, Placement, Launch]]
"""Checks by warps and stages, each with its placement and launch."""


def by_launch(
    launches: Iterable[tuple[Placement, Launch]],
    algorithm: AlgorithmLike,
    call: Attention,
    sizes: Mapping[str, int],
    row: ShippedTile | None,
) -> Outcomes:
    """Check a tile with each number of warps and stages, in the layout that exceeds least."""
    grouped: dict[tuple[int, int], list[tuple[Placement, Launch]]] = {}
    for placement, launch in launches:
        grouped.setdefault((launch.warps, launch.stages), []).append((placement, launch))
    return {key: nearest(alike, algorithm, call, sizes, row) for key, alike in grouped.items()}


def misfits(outcomes: Outcomes) -> list[str]:
    """List the launches that do not hold a tile with what it exceeds, those that differ in warps alone together."""
    alike: dict[tuple[int, str], dict[int, None]] = {}
    for outcome, placement, launch in outcomes.values():
        if not outcome.fits:
            alike.setdefault((launch.stages, misfit(placement, launch, outcome)), {})[launch.warps] = None
    return [
        f"{_one_of(warps)} {'warp' if [*warps] == [1] else 'warps'}, {stages} stage{'s' * (stages > 1)}: {over}"
        for (stages, over), warps in alike.items()
    ]


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


def in_memory(algorithm: AlgorithmLike, call: Workload, device: Hardware, cost: Cost, assumed: bool) -> Check:
    """Check tiles whose live data share one memory."""
    layout = no_kernel(algorithm, call, device) if assumed else TEXTBOOK.title
    fit = in_one_memory(device, cost.footprint_bytes)
    return check_of(algorithm, call, device.label, cost.tiles, layout, fit)


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
    """List the launches of a placement with the warps and stages that are given."""
    given = {name: as_integer(name, sizes[name]) for name in sorted(LAUNCH_NAMES & sizes.keys())}
    return [
        launch for launch in placement.launches() if all(getattr(launch, name) == size for name, size in given.items())
    ]


def _one_of(sizes: Iterable[int]) -> str:
    *others, last = map(str, sizes)
    return f"{', '.join(others)} or {last}" if others else last


def misfit(placement: Placement, launch: Launch, outcome: Check) -> str:
    """Name what a tile exceeds in a launch in which it does not fit."""
    sizes = [outcome.tiles[name] for name in placement.tiles]
    over = [
        f"{name} {use.used:,} of {use.limit:,}" + f" {use.unit}" * (use.unit != "-")
        for name, use in outcome.resources.items()
        if use.slack < 0 and name != "MMA shape"
    ]
    listed = zip(placement.tiles, sizes, placement.steps(launch), placement.residency.sizes, strict=True)
    over += [
        f"{name} = {size}: must be {_one_of(known) if known else f'a multiple of {step}'}"
        for name, size, step, known in listed
        if (size not in known if known else size % step)
    ]
    return "; ".join(over)


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
    return check_of(algorithm, workload, placement.device.id, tiles, launch.residency.title, fit)


def check_of(
    algorithm: AlgorithmLike,
    workload: Workload,
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
        spilled=fit.spilled_registers,
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
    outcome = check_of(algorithm, layer, device.label, {**sizes, "warps": warps, "stages": stages}, layout, fit)
    return replace(outcome, implementation=find_algorithm(algorithm).implementations[0].name)
