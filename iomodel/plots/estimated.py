"""Estimates in pictures: their check, and their labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from iomodel.errors import InputError, shown
from iomodel.plots import words

if TYPE_CHECKING:
    from iomodel.timing.estimate_result import Estimate

NEEDED = ("algorithm", "workload", "hardware", "tiles", "seconds", "limited_by", "breakdown", "dram_bytes", "kernels")


def is_estimate(value: Any) -> bool:
    """Check that a value has the attributes of an estimate used by pictures."""
    return all(hasattr(value, name) for name in NEEDED)


def estimates(value: Any) -> list[Estimate]:
    """Convert one or several estimates to a list; raise InputError for anything else, or for an empty list."""
    drawn = [value] if is_estimate(value) else list(value) if isinstance(value, list | tuple) else []
    wrong = next((candidate for candidate in drawn if not is_estimate(candidate)), None if drawn else value)
    if wrong is not None or not drawn:
        raise InputError(f"estimates: {shown(wrong)} given; allowed: an iomodel.estimate(...), or a list of them")
    return drawn


def common_call(estimates: Iterable[Any]) -> str:
    """Describe the call of estimates that share one; empty for none, or for several calls."""
    calls = list(dict.fromkeys(words.workload(one.workload) for one in estimates))
    return calls[0] if len(calls) == 1 else ""


def name_of(estimate: Estimate) -> str:
    """Label an estimate by the algorithm and its tiles."""
    return " ".join(filter(None, [estimate.algorithm, words.tiles(estimate.tiles)]))
