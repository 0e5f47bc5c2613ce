"""Parameters of the time model without a datasheet figure, with their meanings and sources.

They hold for every device, algorithm and shape. `docs/time-model.md` names the source or the rows that chose each.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from iomodel.common.display import Result, Table
from iomodel.errors import InputError, shown

MOST = 1e12
"""Largest accepted parameter."""


@dataclass(frozen=True)
class Parameters(Result, constructed=True):
    """Parameters of the time model other than the figures of a device.

    Attributes
    ----------
    step_clocks : float
        Cost of a trip of the innermost loop in addition to its work: address arithmetic, barriers, the latency of
        the first operand [clk].
    block_clocks : float
        Cost of a thread block in addition to its trips and its first loads: launch, latencies, last stores [clk].
    dram_clocks, l2_clocks : float
        Time from the request of a byte to its arrival, from DRAM and from the L2 cache, without queues [clk].
    port_clocks : float
        Time of a byte on the port of an SM to the L2 cache, 64 B wide [clk/B].
    softmax_ops, gradient_ops : float
        fp32 operations per score: maximum, scale and subtract, sum, conversion; in the backward pass those from dP
        to dS and the conversions of P and dS [-].
    random_ops, dropout_ops : float
        Operations per random number of Philox 4x32 with seven rounds: 44 integer instructions for eight 16-bit numbers
        (J. Salmon et al. 2011, doi.org/10.1145/2063384.2063405); in the backward pass also those per score that drop
        it from P and from dP [-].
    convert_ops : float
        Operations per weight that is narrower than the product it goes into: masks and shifts, the offset, the scale,
        on pairs of weights (E. Frantar et al., *MARLIN*, arXiv:2408.11743, section 3.3) [-].
    dirty_l2 : float
        Share of the lines of the L2 that are to be written back when a call starts, as after a benchmark has
        overwritten a buffer [-]; 0 for a call behind others that read. A plan takes 0.
    warm_l2 : float
        Share of the L2 that holds the tensors of a call when it starts, as where a benchmark repeats it on the same
        tensors and empties no cache [-]. A kernel whose tensors fit reads no DRAM; larger ones, whose lines a cache
        that evicts in the order of use drops before they are read again, are read from there. The bytes of an estimate
        stay those of an empty L2. A plan takes 0.
    in_graph : float
        Share of the kernels with products that a graph starts, each while the last blocks of the one before it end
        [-]: the time between the starts of graph nodes takes the place of that between starts on a stream. Others take
        the latter, as the start and the end of their blocks are not timed. A step of a serving engine takes 1.
    kernel_launch : float
        Time between the starts of consecutive kernels, if the device's file has no measured figure [s].
    host_launch : float
        Host time per kernel launch, a lower bound on the time of a call over all its kernels [s]. 0 for graphs; about
        3.9e-5 for an eager framework with gradients, which `eager` takes at least.
    """

    step_clocks: float = 240.0
    block_clocks: float = 2500.0
    dram_clocks: float = 400.0
    l2_clocks: float = 200.0
    port_clocks: float = 1 / 64
    softmax_ops: float = 4.0
    gradient_ops: float = 8.0
    random_ops: float = 5.5
    dropout_ops: float = 4.5
    convert_ops: float = 1.5
    dirty_l2: float = 0.7
    warm_l2: float = 0.0
    in_graph: float = 0.0
    kernel_launch: float = 2.62e-6
    host_launch: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST:
                raise InputError(f"{field.name}: {shown(value)} given; allowed: a number from 0 to {MOST:g}")

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        units = {name: "clk" for name in self.to_dict() if name.endswith("_clocks")}
        units |= {"port_clocks": "clk/B", "kernel_launch": "s", "host_launch": "s"}
        rows = [(name, f"{value:g}", units.get(name, "-")) for name, value in self.to_dict().items()]
        return [Table("Parameters of the time model", ("", ">value", "unit"), rows)]


DEFAULT = Parameters()
