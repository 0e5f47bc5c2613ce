"""The few numbers of the time model that no datasheet states: each with its meaning and where it comes from.

They hold for every device, algorithm and shape. None is fitted to a row; `docs/accuracy.md` says what was looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from iomodel.errors import InputError, shown
from iomodel.show import Shown, table

MOST = 1e12
"""Beyond any parameter of use."""


@dataclass(frozen=True)
class Parameters(Shown):
    """What the time model assumes beside the figures of a device.

    Attributes
    ----------
    step_clocks : float
        What a trip of the innermost loop costs beside its work: address arithmetic, barriers, the latency of the
        first operand [clk].
    block_clocks : float
        What a thread block costs beside its trips, shared among the blocks of an SM: launch, first loads, last
        stores [clk].
    softmax_ops, gradient_ops : float
        fp32 operations for each score: maximum, scale and subtract, sum, conversion; in the backward pass those from
        dP to dS and the conversions of P and dS [-].
    random_ops : float
        Operations of a random number of Philox 4x32 with seven rounds, and its comparison [-].
    kernel_launch : float
        From the start of a kernel to the start of the next, where the device's file has no measured figure [s].
    host_launch : float
        What the host needs to launch a kernel; the call lasts no shorter than that for all its kernels [s]. 0 for
        graphs; some 7e-5 for an eager framework with gradients.
    """

    step_clocks: float = 240.0
    block_clocks: float = 3500.0
    softmax_ops: float = 4.0
    gradient_ops: float = 8.0
    random_ops: float = 10.0
    kernel_launch: float = 2.6e-6
    host_launch: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST:
                raise InputError(f"{field.name}: {shown(value)} given; allowed: a number from 0 to {MOST:g}")

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data."""
        return dict(self.__dict__)

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        units = {"step_clocks": "clk", "block_clocks": "clk", "kernel_launch": "s", "host_launch": "s"}
        rows = [(name, f"{value:g}", units.get(name, "-")) for name, value in self.to_dict().items()]
        return table("Parameters of the time model", ("", ">value", "unit"), rows)


DEFAULT = Parameters()
