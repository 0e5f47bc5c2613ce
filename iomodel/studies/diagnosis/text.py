"""Tables of a diagnosis for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iomodel.common import labels
from iomodel.common.display import LIMIT, Mark, Table, figure, sizes_text
from iomodel.nests.implementation import kernels_title
from iomodel.studies.diagnosis.remedies import Remedy

if TYPE_CHECKING:
    from iomodel.studies.diagnosis.diagnose import Diagnosis
    from iomodel.studies.diagnosis.facts import WorkingSet

Row = tuple[str, str, str]
UNSEEN = "coalescing and bank conflicts, which only a profile shows (iomodel audit)"
"""Causes that no schedule tells."""


def shown(diagnosis: Diagnosis) -> list[Table | str]:
    """Return the tables of a diagnosis: rates, limit, redundancy, grid, evidence and remedies."""
    tiles = sizes_text(diagnosis.tiles)
    kernels = kernels_title(diagnosis.algorithm, diagnosis.estimate.implementation)
    title = f"{kernels} on {diagnosis.hardware.name}: {tiles}"
    lines = [*_achieved(diagnosis), *_bound(diagnosis), *_moved(diagnosis), *_machine(diagnosis)]
    parts: list[Table | str] = [
        Table(title, ("", ">value", "unit"), lines),
        f"Bound by {diagnosis.limited_by}:",
        *map(_item, diagnosis.reasons),
    ]
    if diagnosis.remedies:
        names = ("name", "change", "gain", "seconds")
        parts += ["", Table.of("Remedies", Remedy, diagnosis.remedies, names=names)]
    else:
        parts += ["", "Remedies: none that the model expects to gain"]
    return [*parts, "Left out or assumed:", *map(_item, (*diagnosis.left_out, UNSEEN))]


def _item(text: str) -> str:
    return f"  - {text}"


def _achieved(diagnosis: Diagnosis) -> list[Row]:
    f = diagnosis.figures
    vector = []
    if "vector_share" in f and f["vector_share"] != f["matrix_share"]:
        vector = [("  of the fp32 vector peak", f"{100 * f['vector_share']:,.2f}", "%")]
    return [
        ("measured time", figure(diagnosis.seconds * 1e6), "us"),
        ("floor of any kernel", figure(diagnosis.floor * 1e6), "us"),
        ("model's time", figure(diagnosis.estimate.seconds * 1e6), "us"),
        ("useful FLOPs", figure(f["useful_flops_per_second"] / 1e12), "TFLOP/s"),
        (f"  of the {diagnosis.workload.dtype} peak", f"{100 * f['matrix_share']:,.2f}", "%"),
        *vector,
        ("visited FLOPs", figure(f["visited_flops_per_second"] / 1e12), "TFLOP/s"),
        (f"rate of {labels.REQUESTS}", figure(f["requested_bandwidth"] / 1e9, 5), "GB/s"),
        ("  of the HBM peak", f"{100 * f['requested_share']:,.2f}", "%"),
        (f"rate of {labels.COMPULSORY}", figure(f["compulsory_bandwidth"] / 1e9, 5), "GB/s"),
        ("  of the HBM peak", f"{100 * f['compulsory_share']:,.2f}", "%"),
        (labels.USEFUL_OVER_REQUESTS, figure(f["requested_intensity"], 3), "FLOP/B"),
        (labels.OVER_COMPULSORY, figure(f["compulsory_intensity"], 3), "FLOP/B"),
        (labels.RIDGE, figure(f["ridge"], 3), "FLOP/B"),
    ]


def _bound(diagnosis: Diagnosis) -> list[Row]:
    floors = [
        (f"  floor: {name}", figure(value * 1e6), f"us, {value / diagnosis.seconds:.1%} of the time")
        for name, value in diagnosis.floors.items()
        if value >= diagnosis.seconds / 1000
    ]
    return [("bound by", Mark(diagnosis.limited_by, LIMIT), ""), *floors]


def _moved(diagnosis: Diagnosis) -> list[Row]:
    spare = sum(tensor.spare_bytes for tensor in diagnosis.redundancy)
    tensors = [
        (f"  traffic of {tensor.tensor}", figure(tensor.times), "x the least") for tensor in diagnosis.redundancy
    ]
    return [
        (f"{labels.REQUESTS} / {labels.COMPULSORY}", figure(diagnosis.figures["redundancy"]), "-"),
        *tensors,
        ("bytes that need not move", f"{spare:,}", f"B of {diagnosis.cost.hbm_bytes:,} B"),
    ]


def _machine(diagnosis: Diagnosis) -> list[Row]:
    grid = diagnosis.grid
    sets = [
        (f"working set: {working_set.name}", f"{working_set.bytes:,}", f"B; {_fits(working_set)}")
        for working_set in diagnosis.working_sets
    ]
    of = "" if grid.units is None else f" for {grid.units:,} SMs"
    idle = [] if grid.idle is None else [("idle SMs", f"{grid.idle:,}", "-")]
    chip = (f"on chip, of {diagnosis.on_chip_limit:,} a block may use", f"{diagnosis.on_chip_bytes:,}", "B")
    return [*sets, (f"thread blocks{of}", f"{grid.blocks:,}", "-"), ("waves", f"{grid.waves:,}", "-"), *idle, chip]


def _fits(working_set: WorkingSet) -> str:
    """Name the memories that hold a working set, and those that do not."""
    verbs = {True: "fits {}", False: "does not fit {}", None: "{} unknown"}
    memories = {"an SM": working_set.fits_sm, "the L2": working_set.fits_l2}
    return ", ".join(verbs[fits].format(name) for name, fits in memories.items())
