"""Labels of sizes [B] and intensities [FLOP/B]: one word for one quantity, in tables, pictures and the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from iomodel.common.frozen_dict import FrozenDict


class SizeLabel(NamedTuple):
    """The word for one quantity.

    Attributes
    ----------
    label, unit, meaning : str
        The word in every table, axis and card; its unit; its definition.
    attributes : tuple of str
        Attributes of results with this quantity, as Class.attribute; the attribute is also the key in JSON.
    """

    label: str
    unit: str
    meaning: str
    attributes: tuple[str, ...]


REQUESTS = "requests"
LEAST_REQUESTS = "least requests"
DRAM = "DRAM traffic"
LEAST_DRAM, MOST_DRAM, DRAM_IN_PHASE = f"{DRAM}, at least", f"{DRAM}, at most", f"{DRAM}, in phase"
COMPULSORY = "compulsory traffic"
OVER_REQUESTS = f"intensity over {REQUESTS}"
USEFUL_OVER_REQUESTS = f"useful {OVER_REQUESTS}"
OVER_DRAM = f"intensity over {DRAM}"
OVER_COMPULSORY = f"intensity over {COMPULSORY}"
RIDGE = "ridge point"
RESOURCES: Mapping[str, str] = FrozenDict({
    "matrix": "matrix units", "exp": "exponentials", "fp32": "fp32 units", "l2": "L2", "llc": "last cache",
    "hbm": "DRAM", "atomics": "atomic additions",
})  # fmt: skip
"""Names of the resources of an estimate, where they differ from the keys of its breakdown."""

LABELS: Mapping[str, SizeLabel] = FrozenDict({
    entry.label: entry
    for entry in (
        SizeLabel(
            REQUESTS, "B", "Bytes that the thread blocks ask for: the exact count, in one memory for all live data.",
            ("Cost.hbm_bytes", "CostArray.hbm_bytes", "StaircaseStep.hbm_bytes", "SolutionArray.hbm_bytes",
             "Entry.hbm_bytes", "RunnerUp.hbm_bytes", "TraceSummary.hbm_bytes", "Estimate.requested_bytes",
             "TileTimes.requested_bytes", "TrafficReport.requested_bytes", "OperatorTraffic.requested_bytes"),
        ),
        SizeLabel(
            LEAST_REQUESTS, "B", "The least requests of any tile that fits.",
            ("Certificate.least_hbm_bytes", "SolutionArray.least_hbm_bytes"),
        ),
        SizeLabel(
            DRAM, "B", "Bytes that leave the last cache for DRAM, as the time of the call counts them.",
            ("Estimate.streamed_bytes", "EstimateArray.streamed_bytes", "OperatorTraffic.hbm_bytes"),
        ),
        SizeLabel(LEAST_DRAM, "B", "The lower end of the interval that caches allow.", ("Estimate.dram_bytes",)),
        SizeLabel(MOST_DRAM, "B", "The upper end of the interval that caches allow.", ("Estimate.dram_bytes",)),
        SizeLabel(
            DRAM_IN_PHASE, "B", "DRAM traffic if all blocks of a wave are in phase.", ("Estimate.lock_step_bytes",)
        ),
        SizeLabel(COMPULSORY, "B", "Each input read once, each output written once.", ("Estimate.compulsory_bytes",)),
        SizeLabel(
            OVER_REQUESTS, "FLOP/B", "Matrix FLOPs of the visited tiles over requests.",
            ("Cost.intensity", "CostArray.intensity"),
        ),
        SizeLabel(
            USEFUL_OVER_REQUESTS, "FLOP/B", "Matrix FLOPs of the visible pairs over requests.",
            ("TrafficReport.intensity",),
        ),
        SizeLabel(
            OVER_DRAM, "FLOP/B", "Matrix FLOPs of the visible pairs over the DRAM traffic.",
            ("Estimate.intensity", "EstimateArray.intensity"),
        ),
        SizeLabel(OVER_COMPULSORY, "FLOP/B", "Matrix FLOPs of the visible pairs over the compulsory traffic.", ()),
        SizeLabel(RIDGE, "FLOP/B", "Peak rate of the matrix units over the bandwidth of HBM.", ("Estimate.ridge",)),
    )
})  # fmt: skip
"""Every label by its word."""
