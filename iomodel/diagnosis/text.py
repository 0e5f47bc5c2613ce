"""The lines of a diagnosis as a terminal shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iomodel.show import escape_markup, table

if TYPE_CHECKING:
    from iomodel.diagnose import Diagnosis

Row = tuple[str, str, str]


def shown(found: Diagnosis) -> Any:
    """All of it: what was achieved, what binds, what is asked for again, what would help, and the reasoning."""
    from rich.console import Group

    tiles = ", ".join(f"{name} = {size}" for name, size in found.tiles.items()) or "no tiles"
    title = f"{found.algorithm} on {found.hardware.name}: {tiles}"
    lines = [*_achieved(found), *_bound(found), *_moved(found), *_machine(found)]
    parts = [table(title, ("", ">value", "unit"), lines), f"Bound by {found.bound}:", *map(_item, found.reasons)]
    if found.remedies:
        helps = [(one.name, one.change, f"{one.gain:,.2f}", f"{one.seconds * 1e6:,.4g} us") for one in found.remedies]
        parts += ["", table("Remedies", ("", "kernel", ">gain", ">time then"), helps)]
    else:
        parts += ["", "Remedies: none that the model expects to gain"]
    return Group(*parts, *(["Left out or assumed:", *map(_item, found.left_out)] if found.left_out else []))


def _item(text: str) -> str:
    return escape_markup(f"  - {text}")


def _achieved(found: Diagnosis) -> list[Row]:
    f = found.figures
    vector = []
    if "vector_share" in f and f["vector_share"] != f["matrix_share"]:
        vector = [("  of the fp32 vector peak", f"{100 * f['vector_share']:,.2f}", "%")]
    return [
        ("measured time", f"{found.seconds * 1e6:,.4g}", "us"),
        ("floor of any kernel", f"{found.floor * 1e6:,.4g}", "us"),
        ("model's time", f"{found.estimate.seconds * 1e6:,.4g}", "us"),
        ("useful FLOPs", f"{f['useful_flops_per_second'] / 1e12:,.4g}", "TFLOP/s"),
        (f"  of the {found.workload.dtype} peak", f"{100 * f['matrix_share']:,.2f}", "%"),
        *vector,
        ("visited FLOPs", f"{f['visited_flops_per_second'] / 1e12:,.4g}", "TFLOP/s"),
        ("requests", f"{f['requested_bandwidth'] / 1e9:,.5g}", "GB/s"),
        ("  of the HBM peak", f"{100 * f['requested_share']:,.2f}", "%"),
        ("compulsory traffic", f"{f['compulsory_bandwidth'] / 1e9:,.5g}", "GB/s"),
        ("  of the HBM peak", f"{100 * f['compulsory_share']:,.2f}", "%"),
        ("intensity by requests", f"{f['requested_intensity']:,.3g}", "FLOP/B"),
        ("intensity by compulsory traffic", f"{f['compulsory_intensity']:,.3g}", "FLOP/B"),
        ("ridge point", f"{f['ridge']:,.3g}", "FLOP/B"),
    ]


def _bound(found: Diagnosis) -> list[Row]:
    floors = [
        (f"  floor: {name}", f"{value * 1e6:,.4g}", f"us, {value / found.seconds:.1%} of the time")
        for name, value in found.floors.items()
        if value >= found.seconds / 1000
    ]
    return [("bound by", found.bound, ""), *floors]


def _moved(found: Diagnosis) -> list[Row]:
    spare = sum(one.spare_bytes for one in found.redundancy)
    each = [(f"  {one.tensor} moves", f"{one.times:,.4g}", "times") for one in found.redundancy]
    return [
        ("requests / compulsory traffic", f"{found.figures['redundancy']:,.4g}", "-"),
        *each,
        ("bytes that need not move", f"{spare:,}", f"B of {found.cost.hbm_bytes:,} B"),
    ]


def _machine(found: Diagnosis) -> list[Row]:
    grid = found.grid
    sets = [
        (f"working set: {one.name}", f"{one.bytes:,}", f"B; SM {_fits(one.fits_sm)}, L2 {_fits(one.fits_l2)}")
        for one in found.working_sets
    ]
    of = "" if grid.units is None else f" for {grid.units:,} SMs"
    idle = [] if grid.idle is None else [("SMs without a block", f"{grid.idle:,}", "-")]
    chip = (f"on chip, of {found.on_chip_limit:,} a block may use", f"{found.on_chip_bytes:,}", "B")
    return [*sets, (f"thread blocks{of}", f"{grid.blocks:,}", "-"), ("waves", f"{grid.waves:,}", "-"), *idle, chip]


def _fits(fits: bool | None) -> str:
    return "unknown" if fits is None else "holds it" if fits else "does not"
