# ruff: noqa: RUF009 - a field with its metadata
"""The table of quantities: name, label, unit, meaning and the rule that combines the parts of a call.

Costs, formulas, arrays, sweeps, crossovers and the explorer's page take their quantities from here. To add a quantity,
write a line of :class:`Counts` and a function of its name in :mod:`iomodel.counting.folds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from iomodel.common import labels

T = TypeVar("T")
LIVE, HELD = "The most that is live on chip at once.", "The most that HBM holds at once."
Over = Literal["sum", "peak", "allocation"]
Listed = Literal["always", "nonzero", "never"]


class QuantityEntry(NamedTuple):
    """The description of one quantity.

    Attributes
    ----------
    label, unit, meaning : str
        The name in tables, the unit, and the definition.
    over : {"sum", "peak", "allocation"}
        The value for a call of several sequences: their sum, their maximum, or the largest sum of any kernel.
    listed : {"always", "nonzero", "never"}
        The condition for a row in tables.
    """

    label: str
    unit: str
    meaning: str
    over: Over = "sum"
    listed: Listed = "always"


def _quantity(label: str, unit: str, meaning: str, over: Over = "sum", listed: Listed = "always") -> Any:
    return field(metadata={"entry": QuantityEntry(label, unit, meaning, over, listed)})


@dataclass(frozen=True, kw_only=True)
class Counts(Generic[T]):
    """One value of each quantity: an integer, an array of integers, or an expression."""

    hbm_bytes: T = _quantity(labels.REQUESTS, "B", "Traffic: statistics and accumulators are 4 bytes wide.")
    atomics: T = _quantity("atomic adds", "elements", "Atomic additions to HBM, read and written.", listed="nonzero")
    flops: T = _quantity("FLOPs (visited tiles)", "FLOP", "Matrix FLOPs of the visited tiles.")
    useful_flops: T = _quantity("FLOPs (visible pairs)", "FLOP", "Matrix FLOPs of the visible pairs alone.")
    exps: T = _quantity("exponentials", "-", "Exponentials.")
    tanhs: T = _quantity("hyperbolic tangents", "-", "Hyperbolic tangents.", listed="nonzero")
    randoms: T = _quantity("random numbers", "-", "Random numbers.", listed="nonzero")
    footprint_elements: T = _quantity("SRAM footprint", "elements", LIVE, "peak")
    footprint_bytes: T = _quantity("SRAM footprint", "B", LIVE, "peak")
    peak_hbm_elements: T = _quantity("peak HBM allocation", "elements", HELD, "allocation", "never")
    peak_hbm_bytes: T = _quantity("peak HBM allocation", "B", HELD, "allocation")


FIXED_SIZES = {"fp32": 4, "int32": 4, "int64": 8, "bool": 1}
"""Sizes of the dtypes of tensors that no call sets [B]."""
QUANTITIES: Mapping[str, QuantityEntry] = {entry.name: entry.metadata["entry"] for entry in fields(Counts)}
"""Every quantity by name, in the order of compiled formulas."""
SUMS, PEAKS, ALLOCATIONS = (
    tuple(name for name, entry in QUANTITIES.items() if entry.over == over) for over in ("sum", "peak", "allocation")
)
TOTALS: Mapping[str, QuantityEntry] = {
    "hbm_reads": QuantityEntry("HBM reads", "elements", "Elements read from HBM."),
    "hbm_writes": QuantityEntry("HBM writes", "elements", "Elements written to HBM."),
    "hbm_elements": QuantityEntry("HBM accesses", "elements", "HBM accesses, reads and writes."),
}
"""Sums over the tensors' reads and writes."""
IN_FORMULAS = {"footprint_elements": "footprint"}
"""Quantities that :class:`~iomodel.results.Expressions` shows under another name."""


def unit_of(name: str) -> str:
    """Return the unit of a quantity or total, under either name; elements for the traffic of a tensor."""
    names = {formula: name for name, formula in IN_FORMULAS.items()}
    entry = {**QUANTITIES, **TOTALS}.get(names.get(name, name))
    return "elements" if entry is None else entry.unit


def table_rows(counts: Any) -> list[tuple[str, str, str]]:
    """Return label, value and unit of each quantity of a cost that tables list."""
    values = [(entry, getattr(counts, name)) for name, entry in QUANTITIES.items() if entry.listed != "never"]
    rows = [(entry.label, f"{value:,}", entry.unit) for entry, value in values if value or entry.listed == "always"]
    added = QUANTITIES["atomics"].label  # to accumulators in fp32
    return [
        (name, n, f"{unit} = {4 * counts.atomics:,} B each way" if name == added else unit) for name, n, unit in rows
    ]
