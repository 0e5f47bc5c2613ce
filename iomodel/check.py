"""Whether a tile fits a device as an algorithm's kernels lay it out, what is left, what binds, the occupancy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.cost import tally_for, tile_sizes
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.expressions import kind_of, structural
from iomodel.frozen import FrozenDict
from iomodel.hardware import Hardware
from iomodel.hardware import hardware as find_hardware
from iomodel.placement import Launch, Occupied, Placement, placements
from iomodel.residency import Residency
from iomodel.show import Shown, table
from iomodel.validation import as_integer, as_mapping
from iomodel.workload import Attention, as_attention


@dataclass(frozen=True)
class Resource:
    """How much of a resource a block uses, and how much there is for it."""

    used: int
    limit: int
    unit: str

    @property
    def slack(self) -> int:
        """What is left; negative where it is exceeded."""
        return self.limit - self.used


@dataclass(frozen=True)
class Check(Shown):
    """A tile on a device.

    Attributes
    ----------
    fits : bool
        Whether no resource is exceeded.
    resources : mapping of name to Resource
        ``shared memory`` of a block [B], ``registers`` of a thread [-], ``threads`` of a block [-], and ``MMA shape``:
        the rows by which a tile is over a multiple of what the warps multiply together.
    binding : str
        The resource that is exceeded, else the one of which the least share is left.
    blocks_per_sm : int
        Blocks that an SM takes at once [-]; 0 where the tile does not fit.
    limited_by : str
        What keeps an SM from taking more.
    residency : str
        Where the tiles lie.
    """

    algorithm: str
    workload: Attention
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
        """What is left of each resource, negative where it is exceeded."""
        return FrozenDict({name: resource.slack for name, resource in self.resources.items()})

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "workload": self.workload.to_dict(),
            "device": self.device,
            "tiles": dict(self.tiles),
            "residency": self.residency,
            "fits": self.fits,
            "resources": {
                name: {"used": r.used, "limit": r.limit, "slack": r.slack, "unit": r.unit}
                for name, r in self.resources.items()
            },
            "binding": self.binding,
            "blocks_per_sm": self.blocks_per_sm,
            "limited_by": self.limited_by,
        }

    def rows(self) -> list[tuple[str, str, str]]:
        """The lines of a table: each resource, and the occupancy."""
        lines = [
            (f"{name} used of {resource.limit:,}", f"{resource.used:,}", resource.unit)
            for name, resource in self.resources.items()
            if name != "MMA shape" or resource.used
        ]
        return [*lines, (f"blocks an SM takes, limited by {self.limited_by}", str(self.blocks_per_sm), "-")]

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        tiles = ", ".join(f"{name} = {size}" for name, size in self.tiles.items())
        verdict = ("fits", "yes" if self.fits else "no", "")
        rows = [verdict, *self.rows(), ("binding", self.binding, "")]
        return table(f"{self.algorithm}: {tiles} on {self.device}", ("", ">value", "unit"), rows)


def check(
    algorithm: str,
    workload: Attention,
    hardware: Hardware | str,
    tiles: Mapping[str, int],
    residency: str | Residency = "gpu",
    **options: Any,
) -> Check:
    """Say whether a tile fits a device, what is left of each resource, what binds, and the occupancy.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms` that declares a residency for the direction.
    workload : Attention
        The attention call, forward or backward.
    hardware : Hardware or str
        A device with figures of shared memory, registers and matrix instructions.
    tiles : mapping of tile name to int
        ``{"block_q": 128, "block_kv": 64, "warps": 4, "stages": 1}``; warps are those that compute [-]. Without them
        the kernel's own least numbers stand.
    residency : "gpu" or Residency
        Where the tiles lie: as the algorithm's kernels have them, or as declared.
    **options
        Options of the algorithm, and ``packed=True``.

    Raises
    ------
    UnknownNameError, InputError, SpecError
        An unknown name; a device or a width that the kernels do not take; a figure that the device lacks.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=4096, head_dim=128)
    >>> c = iomodel.check("flash2", w, "a100-sxm4-80gb", {"block_q": 128, "block_kv": 64, "warps": 4})
    >>> c.fits, c.slack["shared memory"], c.binding, c.blocks_per_sm
    (True, 101376, 'registers', 2)
    """
    call, device = as_attention(workload), as_device(hardware)
    as_residency(residency)
    given = as_mapping("tiles", tiles, "{'block_q': 128, 'block_kv': 64, 'warps': 4}")
    tally, complete = tally_for(algorithm, call, options, tiled=True)
    sizes = tile_sizes(algorithm, tally.tiles, given)
    found = placements(algorithm, call, device, residency, dict(structural(complete)), kind_of(call))
    ways = ((placement, launch) for placement in found for launch in _launches(placement, given))
    return min((checked(*way, algorithm, call, sizes) for way in ways), key=excess)


def excess(tried: Check) -> float:
    """How far a tile is beyond what there is, in shares of each resource; 0 if it fits [-]."""
    return sum(max(0, -r.slack) / max(1, r.limit) for r in tried.resources.values())


def as_residency(residency: object) -> None:
    """Raise UnknownNameError unless this names or is a residency."""
    if not isinstance(residency, Residency) and not (isinstance(residency, str) and residency == "gpu"):
        raise UnknownNameError("residency", residency, ["gpu", "an iomodel.Residency"])


def as_device(hardware: Hardware | str) -> Hardware:
    """The device itself, or the one of that name; InputError if it is neither."""
    device = find_hardware(hardware) if isinstance(hardware, str) else hardware
    if not isinstance(device, Hardware):
        raise InputError(f"hardware: {shown(hardware)} given; allowed: an iomodel.Hardware or the name of one")
    return device


def _launches(placement: Placement, given: Mapping[str, Any]) -> list[Launch]:
    residency = placement.residency
    warps = as_integer("warps", given.get("warps", min(residency.warps)))
    stages = as_integer("stages", given.get("stages", min(residency.stages)))
    layouts = placement.layouts(warps)
    if not layouts:
        raise InputError(f"warps: {warps} given; allowed: a multiple of 4, for {residency.title}")
    return [Launch(residency, warps, along, stages) for along in layouts]


def checked(
    placement: Placement, launch: Launch, algorithm: str, workload: Attention, sizes: Mapping[str, int]
) -> Check:
    """The check of one way to launch a tile."""
    query, key = (sizes[name] for name in placement.tiles)
    occupied = placement.occupied(query, key, launch)
    resources = _resources(occupied)
    shares = {name: r.slack / r.limit for name, r in resources.items() if r.limit}
    fits = not occupied.over
    tiles = FrozenDict({**sizes, "warps": launch.warps, "stages": launch.stages})
    return Check(
        algorithm,
        workload,
        placement.device.label,
        tiles,
        launch.residency.title,
        fits,
        FrozenDict(resources),
        min(shares, key=shares.__getitem__) if fits or occupied.over != ("MMA shape",) else "MMA shape",
        occupied.blocks_per_sm if fits else 0,
        occupied.limited_by,
    )


def _resources(occupied: Occupied) -> dict[str, Resource]:
    over = sum(size % step for _, size, step in occupied.misfit)
    return {
        "shared memory": Resource(occupied.shared, occupied.shared_limit, "B"),
        "registers": Resource(occupied.registers, occupied.registers_limit, "-"),
        "threads": Resource(occupied.threads, occupied.threads_limit, "-"),
        "MMA shape": Resource(over, 0, "rows"),
    }
