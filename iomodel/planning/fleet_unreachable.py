"""One-line errors for targets out of reach, naming the nearest device and layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from iomodel.errors import InfeasibleError, IOModelError, SpecError
from iomodel.planning.fleet_result import Refusal
from iomodel.planning.text import gigabytes, layout_text, seconds


def unreachable(refused: Sequence[Refusal], targets: Mapping[str, float], most: int) -> IOModelError:
    """Build the error for targets that no device and layout meets."""
    counted = [refusal for refusal in refused if refusal.needed]
    if counted:
        near = min(counted, key=lambda refusal: refusal.needed)
        return InfeasibleError(
            f"load: {targets['load']:g} requests/s given; max_count = {most:,} devices are too few; at least "
            f"{near.needed:,} are needed ({_where(near)})",
            least=near.needed,
            unit="devices",
        )
    timed = [refusal for refusal in refused if refusal.ttft is not None and refusal.tpot is not None]
    if timed:
        return _late(timed, targets)
    small = [refusal for refusal in refused if refusal.missing]
    if small:
        near = min(small, key=lambda refusal: refusal.missing)
        return InfeasibleError(
            f"memory: no device and layout holds the model and one request; nearest is {_where(near)}, with "
            f"{gigabytes(near.missing)} missing on each device",
            least=near.missing,
            unit="B",
        )
    return SpecError("; ".join(dict.fromkeys(f"{refusal.device}: {refusal.reason}" for refusal in refused)))


def _late(timed: Sequence[Refusal], targets: Mapping[str, float]) -> InfeasibleError:
    """Build the error for missed latency targets, with the least times of a single request."""
    quick = min(timed, key=lambda refusal: refusal.ttft or 0.0)
    smooth = min(timed, key=lambda refusal: refusal.tpot or 0.0)
    first, later = quick.ttft or 0.0, smooth.tpot or 0.0
    late = [name for name, least in (("ttft", first), ("tpot", later)) if least > targets[name]]
    field = " and ".join(late or ["ttft", "tpot"])
    limits = " and ".join(seconds(targets[name]) for name in late or ["ttft", "tpot"])
    return InfeasibleError(
        f"{field}: {limits} given; allowed: more, because the least TTFT of a single request is {seconds(first)} "
        f"({_where(quick)}), the least TPOT {seconds(later)} ({_where(smooth)})",
        least=ceil(1e6 * (later if late == ["tpot"] else first)),
        unit="us",
    )


def _where(refusal: Refusal) -> str:
    return f"{refusal.device}, {layout_text(refusal.layout)}"
