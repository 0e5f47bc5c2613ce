"""The contents of shared memory, tensor memory and registers at a tile, buffer by buffer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sympy import Expr

from iomodel.algorithms import AlgorithmLike
from iomodel.common.validation import as_mapping
from iomodel.counting.bound_call import BoundCall
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError
from iomodel.nests.implementation import Implementation
from iomodel.nests.residency import Fragment, Residency, Reused, Shared
from iomodel.nests.symbols import BY_NAME
from iomodel.placement.check import Check, by_launch, launches_at, misfits, nearest
from iomodel.placement.compile_placement import fragment_bytes, stored_bytes, tile_sizes
from iomodel.placement.implementations import implementation_for
from iomodel.placement.limits import COLUMN
from iomodel.placement.shipped_tile import shipped_row
from iomodel.workloads.attention import Attention, as_attention


@dataclass(frozen=True)
class Region:
    """A buffer on chip: its tensor, its size, and the tensors that take its place in turn."""

    name: str
    size: float
    instead: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contents:
    """The buffers of a thread block.

    Attributes
    ----------
    check : Check
        The tile, with the use and the limit of each resource.
    shared, tensor : tuple of Region
        Contents of shared memory and of tensor memory [B].
    registers : tuple of tuple of Region
        Contents of the registers of a thread in each phase of the inner loop [registers].
    overhead : int
        Registers of a thread beside the tiles [-].
    """

    check: Check
    shared: tuple[Region, ...]
    tensor: tuple[Region, ...]
    registers: tuple[tuple[Region, ...], ...]
    overhead: int


def contents(
    algorithm: AlgorithmLike,
    workload: Attention,
    hardware: Hardware | str,
    tiles: Mapping[str, int] | None = None,
    implementation: str | Implementation | None = None,
    **options: Any,
) -> Contents:
    """List the buffers of a thread block at a tile, by default at the shipped one.

    Raises
    ------
    UnknownNameError, InputError, SpecError
        As for :func:`iomodel.check`; no tile is given and none is shipped; the kernels have no layout.

    Examples
    --------
    >>> import iomodel
    >>> on_chip = contents("flash2", iomodel.Attention(q_len=4096, head_dim=128), "a100-sxm4-80gb")
    >>> [(part.name, part.size) for part in on_chip.shared]
    [('Q', 32768.0), ('K', 16384.0), ('V', 16384.0)]
    """
    call, device = as_attention(workload), as_device(hardware)
    chosen = implementation_for(algorithm, call, device, implementation)
    if not chosen.residency:
        raise InputError(f"implementation: {chosen.name!r} given; allowed: one whose kernels lay out their tiles")
    bound = BoundCall.bind(algorithm, call, options)
    row = shipped_row(chosen, call, device, bound.options)
    known = tiles if tiles is not None or row is None else row.tiles
    if known is None:
        raise InputError(f"tiles: none given; allowed: a tile, since {chosen.name} ships none for this call")
    requested = as_mapping("tiles", known, "{'block_q': 128, 'block_kv': 64, 'warps': 4}")
    sizes = bound.sizes(requested)
    launches = launches_at(bound, call, device, chosen, requested)
    outcome, placement, launch = nearest(launches, algorithm, call, sizes, row)
    others = tuple(dict.fromkeys(misfits(by_launch(launches, algorithm, call, sizes, row))))
    outcome = replace(outcome, implementation=chosen.name, others=others)
    residency = launch.residency
    if residency.compiled:
        return _of_compiler(outcome, residency)
    names, elements = tile_sizes(bound.algorithm, bound.kind, bound.structure)
    at = {**placement.padded.numbers, **dict(zip(bound.compiled.numbers, bound.numbers, strict=True))}
    at |= {**sizes, "stages": launch.stages, "warps": launch.warps}

    def stored(part: Shared | Reused) -> tuple[Region, ...]:
        if isinstance(part, Shared):
            return (Region(part.tensor.name, _at(stored_bytes(part, elements), at)),)
        groups = [tuple(entry for tile in group for entry in stored(tile)) for group in part.groups]
        largest = max(groups, key=lambda group: sum(entry.size for entry in group))
        names = {entry.name for entry in largest}
        others = [entry.name for group in groups if group is not largest for entry in group if entry.name not in names]
        return tuple(replace(entry, instead=tuple(dict.fromkeys(others))) for entry in largest)

    threads = placement.device.warp * launch.warps
    query, key = placement.held_rows(sizes[names[0]], sizes[names[1]], launch.warps)
    padded = {**at, names[0]: query, names[1]: key}
    phases = (
        tuple(
            Region(_named(part, phase, call.dtype), _at(fragment_bytes(part, elements), padded) / (4 * threads))
            for part in phase
        )
        for phase in residency.phases
    )
    shared, tensor = (
        tuple(entry for part in parts for entry in stored(part)) for parts in (residency.shared, residency.tensor)
    )
    return Contents(outcome, shared, tensor, tuple(phases), residency.overhead)


def _of_compiler(outcome: Check, residency: Residency) -> Contents:
    """Return the memories of a layout whose compiler places the buffers: each as one region of all its tiles."""
    used = {name: resource.used for name, resource in outcome.resources.items()}
    scores = ", ".join(fragment.tensor.name for phase in residency.phases for fragment in phase)
    tiles = ", ".join(tile.tensor.name for tile in residency.shared if isinstance(tile, Shared))
    columns = used.get("tensor memory", 0)
    tensor = (Region(scores, float(COLUMN * columns)),) if columns else ()
    return Contents(
        outcome, (Region(tiles, used["shared memory"]),), tensor, ((Region(scores, used["registers"]),),), 0
    )


def _named(part: Fragment, phase: tuple[Fragment, ...], dtype: str) -> str:
    """Name a tile in registers, with its type where the phase has the tile in fp32 too."""
    converted = part.dtype == "io" and any(other.tensor == part.tensor and other.dtype == "fp32" for other in phase)
    return f"{part.tensor.name} in {dtype}" if converted else part.tensor.name


def _at(formula: Expr, values: Mapping[str, Any]) -> float:
    """Evaluate a size, which may be a fraction of a byte."""
    return float(formula.subs({BY_NAME[name]: value for name, value in values.items() if name in BY_NAME}))
