"""Why no fleet does, in one line: what comes nearest to the targets, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from iomodel.errors import InfeasibleError, IOModelError, SpecError
from iomodel.planning.fleet_result import Refusal
from iomodel.planning.text import gigabytes, layout_text, seconds


def unreachable(refused: Sequence[Refusal], wanted: Mapping[str, float], most: int) -> IOModelError:
    """The error where nothing meets the targets."""
    counted = [refusal for refusal in refused if refusal.needed]
    if counted:
        near = min(counted, key=lambda refusal: refusal.needed)
        return InfeasibleError(
            f"load: {wanted['load']:g} requests/s given; max_count = {most:,} devices are too few: the least that do "
            f"are {near.needed:,} ({_where(near)})",
            least=near.needed,
            unit="devices",
        )
    timed = [refusal for refusal in refused if refusal.ttft is not None and refusal.tpot is not None]
    if timed:
        return _late(timed, wanted)
    small = [refusal for refusal in refused if refusal.missing]
    if small:
        near = min(small, key=lambda refusal: refusal.missing)
        return InfeasibleError(
            f"memory: no device and layout holds the model and one request; nearest is {_where(near)}, where "
            f"{gigabytes(near.missing)} more are needed on each device",
            least=near.missing,
            unit="B",
        )
    return SpecError("; ".join(dict.fromkeys(f"{refusal.device}: {refusal.reason}" for refusal in refused)))


def _late(timed: Sequence[Refusal], wanted: Mapping[str, float]) -> InfeasibleError:
    """The least times that are reached, of a request that is alone."""
    quick = min(timed, key=lambda refusal: refusal.ttft or 0.0)
    smooth = min(timed, key=lambda refusal: refusal.tpot or 0.0)
    first, later = quick.ttft or 0.0, smooth.tpot or 0.0
    late = [name for name, least in (("ttft", first), ("tpot", later)) if least > wanted[name]]
    field = " and ".join(late or ["ttft", "tpot"])
    given = " and ".join(seconds(wanted[name]) for name in late or ["ttft", "tpot"])
    return InfeasibleError(
        f"{field}: {given} given; allowed: more, for the least TTFT of a request alone is {seconds(first)} "
        f"({_where(quick)}), the least TPOT {seconds(later)} ({_where(smooth)})",
        least=ceil(1e6 * (later if late == ["tpot"] else first)),
        unit="us",
    )


def _where(refusal: Refusal) -> str:
    return f"{refusal.device}, {layout_text(refusal.layout)}"
