"""Growth of a measured time from one call or launch to a second, beside the growth of what each resource does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any

from iomodel.common.display import figure
from iomodel.common.quantities import count, quantity
from iomodel.common.results import Record
from iomodel.errors import InputError, shown
from iomodel.timing.estimate_result import Estimate

SPREAD = 1.1
"""Ratio within which two growths are not told apart [-]: the spread of two measured times, 5 % each."""
EXAMPLE = "{'q_len': 8192, 'seconds': 4e-3}"


@dataclass(frozen=True)
class Growth(Record):
    """Growth of a measured time, of which the resource with the nearest growth is the limit.

    Attributes
    ----------
    seconds : float
        The second measured time over the first [-].
    works : mapping of str to float
        The second over the first of FLOPs ("compute"), DRAM traffic ("memory"), requests ("L2/requests") and launches
        ("launch") [-].
    limited_by : str or None
        The class whose work grows as the time does; None where two classes that do not differ are equally near.
    alike : tuple of str
        The classes that the two measurements do not tell apart from the nearest.
    constant : float or None
        The part of both times that does not grow, if the rest grows as the nearest work does [s]; None for a launch.
    """

    seconds: float
    works: Mapping[str, float]
    limited_by: str | None
    alike: tuple[str, ...]
    constant: float | None

    def reasons(self) -> list[str]:
        """Return the lines of a diagnosis: the growths, what they tell, and the part that does not grow."""
        listed = ", ".join(f"{name} {figure(value)}" for name, value in self.works.items())
        lines = [f"from the first time to the second: x {figure(self.seconds)}; work of {listed}"]
        if self.limited_by is None:
            names = f"{', '.join(self.alike[:-1])} and {self.alike[-1]}"
            lines.append(f"the times do not tell {names} apart, which grow alike: time a call of another intensity")
        if self.constant is not None and self.constant > 0:
            lines.append(f"{figure(self.constant * 1e6)} us of both times do not grow: the host, launches or a tail")
        return lines


def growth(first: Estimate, second: Estimate, seconds: tuple[float, float]) -> Growth:
    """Compare the growth of two measured times of a kernel with that of its work [s]."""
    works = {
        name: after / before
        for name, before, after in (
            ("compute", first.cost.flops, second.cost.flops),
            ("memory", first.streamed_bytes, second.streamed_bytes),
            ("L2/requests", first.requested_bytes, second.requested_bytes),
            ("launch", len(first.kernels), len(second.kernels)),
        )
        if before and after
    }
    ratio = seconds[1] / seconds[0]
    nearest = min(works, key=lambda name: abs(log(ratio / works[name])))
    alike = tuple(name for name in works if abs(log(works[name] / works[nearest])) <= log(SPREAD))
    grows = works[nearest]
    constant = None if abs(log(grows)) <= log(SPREAD) else (grows * seconds[0] - seconds[1]) / (grows - 1)
    return Growth(ratio, works, nearest if len(alike) == 1 else None, alike, constant)


def as_against(against: object) -> dict[str, Any]:
    """Return the fields of a second measurement: a mapping, or text such as "q_len=8192, seconds=4ms"."""
    if isinstance(against, str):
        parts = [part.partition("=") for part in against.replace(",", " ").split()]
        if not all(name and equals and value for name, equals, value in parts):
            raise InputError(
                f"against: {shown(against)} given; allowed: NAME=VALUE and a time, as q_len=8192,seconds=4ms"
            )
        against = {name.replace("-", "_"): _value(value) for name, _, value in parts}
    if not isinstance(against, Mapping) or not all(isinstance(name, str) for name in against):
        raise InputError(f"against: {shown(against)} given; allowed: a mapping, such as {EXAMPLE}")
    fields = dict(against)
    fields["seconds"] = quantity("seconds", fields.pop("time", fields.get("seconds")))
    if fields["seconds"] is None or len(fields) < 2:
        raise InputError(f"against: {shown(against)} given; allowed: its time and what differs, such as {EXAMPLE}")
    return fields


def _value(text: str) -> Any:
    """Return the number that a text holds, with its suffix, or the text."""
    value = count(text)
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
