"""Entries of comparisons: one answer of an algorithm on a device each, in one form for times and for traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from iomodel.common.display import choice_text
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record
from iomodel.counting.choice import chosen_options
from iomodel.nests.alphabet import LAUNCH_NAMES, TILE_NAMES
from iomodel.solving.solution import Solution
from iomodel.timing.estimate_result import Estimate

By = Literal["time", "traffic"]


@dataclass(frozen=True)
class Entry(Record):
    """One answer of a comparison.

    Attributes
    ----------
    algorithm, implementation : str
        What runs, and the kernels that run it; "textbook" for one memory of all live data of a block.
    hardware : str or None
        The device; None under a bare budget.
    choice : mapping of str to Any
        Tiles, launch and options, as ``tiles=`` of :func:`iomodel.cost` takes them.
    seconds : float or None
        The time [s], where the comparison is by time.
    hbm_bytes : int
        The bytes that the blocks request [B].
    """

    algorithm: str
    implementation: str
    hardware: str | None
    choice: Mapping[str, Any]
    seconds: float | None
    hbm_bytes: int

    def __str__(self) -> str:
        """Write the choice in a few words."""
        sized = {name: size for name, size in self.choice.items() if name in TILE_NAMES | LAUNCH_NAMES}
        return choice_text(sized, {name: value for name, value in self.choice.items() if name not in sized})

    @classmethod
    def of(cls, answer: Solution | Estimate, by: By) -> Entry:
        """Make the entry of an answer."""
        device, call = answer.hardware, answer.cost.workload
        searched = answer.searched if isinstance(answer, Solution) else ()
        options = chosen_options(answer.algorithm, call, answer.cost.options, searched)
        return cls(
            answer.algorithm,
            answer.implementation,
            None if device is None else device.label,
            FrozenDict({**answer.tiles, **options}),
            answer.seconds if by == "time" and getattr(answer, "timed", True) else None,
            answer.cost.hbm_bytes,
        )
