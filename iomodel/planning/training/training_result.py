"""Result of a training step: time by cause, memory, and utilisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iomodel.common.display import WARNING, Mark, Result, Table, assumed
from iomodel.common.tabular import Tabular
from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.models.spec import ModelSpec
from iomodel.planning.step.layout import Layout
from iomodel.planning.training.training_memory import TrainingMemory

LEFT_OUT = (
    "loading of data, checkpoints, failures",
    "networks and hosts of many nodes, beyond the overhead",
    "workspaces, fragmentation and the runtime's memory",
)
"""Effects that no training step counts."""


@dataclass(frozen=True)
class TrainingStep(Result, Tabular):
    """One training step: forward and backward passes of all micro-batches, and the optimizer.

    Attributes
    ----------
    batch, seq_len, micro_batch, data_parallel : int
        Sequences of the step on all devices [-]; tokens of each [tokens]; sequences of one pass of a replica [-];
        replicas [-].
    shard, recompute, gradient_dtype, precision, kernels, overlap, attention_algorithm, attention_implementation
        As asked.
    recompute_layers : int or None
        Layers of each stage that run again in backward passes, the first ones [-]; None for all.
    copies : bool
        Gathered weights and gradients are copied, as FSDP2 does.
    virtual_stages : int
        Parts of the model on each device of a pipeline [-].
    seconds : float
        Time of the step [s].
    serial_seconds : float
        Time of the step if no collective and no send ran beside a pass [s].
    breakdown : mapping of str to float
        Time of the longest stage by cause; the times sum to `seconds` [s].
    memory : TrainingMemory
        Bytes on the fullest device.
    model_flops : int
        FLOPs of the model on all devices: three times the products and visible pairs of the forward pass [FLOP].
    recomputed_flops : int
        FLOPs of the products and visible pairs that backward passes run again, on all devices [FLOP].
    left_out : tuple of str
        Effects omitted.
    measured : float or None
        The measured rate of one device, if given [tokens/s].
    assumed : tuple of str
        The layout that was taken, where none was given.
    """

    derived = ("devices", "bubble", "tokens_per_second_per_device", "mfu", "hfu", "measured_mfu", "fits")

    model: ModelSpec
    hardware: Hardware
    layout: Layout
    batch: int
    seq_len: int
    micro_batch: int
    data_parallel: int
    shard: str
    recompute: str
    gradient_dtype: str
    precision: str
    virtual_stages: int
    kernels: str
    overlap: tuple[str, ...]
    attention_algorithm: str | None
    attention_implementation: str | None
    seconds: float
    serial_seconds: float
    breakdown: Mapping[str, float]
    memory: TrainingMemory
    model_flops: int
    left_out: tuple[str, ...] = LEFT_OUT
    recompute_layers: int | None = None
    copies: bool = False
    measured: float | None = None
    assumed: tuple[str, ...] = ()
    recomputed_flops: int = 0

    @property
    def devices(self) -> int:
        """Number of all devices [-]."""
        return self.layout.devices * self.data_parallel

    @property
    def bubble(self) -> float:
        """Idle time over working time, (p - 1) / (m v) for p stages, m micro-batches and v virtual stages [-]."""
        micro_batches = self.batch // (self.data_parallel * self.layout.data_parallel * self.micro_batch)
        return (self.layout.pipeline_parallel - 1) / (micro_batches * self.virtual_stages)

    @property
    def tokens_per_second_per_device(self) -> float:
        """Trained tokens per second and device [tokens/s]."""
        return self.batch * self.seq_len / self.seconds / self.devices

    @property
    def mfu(self) -> float:
        """FLOPs of the model over the time, as a share of the devices' peak in the precision [-]."""
        return self._mfu_at(self.tokens_per_second_per_device)

    @property
    def hfu(self) -> float:
        """The same with the FLOPs that run again: the hardware FLOPs utilisation of Korthikanti et al. 2022 [-]."""
        return self.mfu * (1 + self.recomputed_flops / self.model_flops)

    @property
    def measured_mfu(self) -> float | None:
        """The same at the measured rate [-]; None without one."""
        return None if self.measured is None else self._mfu_at(self.measured)

    @property
    def flops_per_token(self) -> float:
        """FLOPs of the model for one trained token [FLOP]."""
        return self.model_flops / (self.batch * self.seq_len)

    def _mfu_at(self, rate: float) -> float:
        return rate * self.flops_per_token / rates(self.hardware, self.precision).peak

    @property
    def capacity(self) -> float | None:
        """Memory of a device [B]; None without one on file."""
        hbm = self.hardware.memory.hbm
        return None if hbm is None or hbm.capacity is None else float(hbm.capacity.value)

    @property
    def fits(self) -> bool | None:
        """True if the memory holds the step; None for a device without a capacity on file."""
        return None if self.capacity is None else self.memory.total <= self.capacity

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per cause of time [s]."""
        return [{"cause": cause, "seconds": seconds} for cause, seconds in self.breakdown.items()]

    def tables(self) -> list[Table | str]:
        """Return the tables of the terminal."""
        title = (
            f"{self.model.title} on {self.devices:,} x {self.hardware.name}: {self.batch:,} sequences of "
            f"{self.seq_len:,} tokens, MFU {100 * self.mfu:.1f} %"
        )
        parts_of_time = {**{cause: each for cause, each in self.breakdown.items() if each}, "all": self.seconds}
        times = [(cause, f"{each:,.4f}", f"{100 * each / self.seconds:.1f}") for cause, each in parts_of_time.items()]
        held = self.memory
        parts = {name: getattr(held, name) for name in ("parameters", "gradients", "optimizer", "activations")}
        parts |= {
            "  of layers, for backward passes": held.kept,
            "  of one layer and of logits": held.activations - held.kept,
        }
        sizes = [(name, f"{size / 1e9:,.2f}") for name, size in (*parts.items(), ("all", held.total))]
        flops = f"FLOPs of the model in a step, on all devices: {self.model_flops:.4g}"
        flops += f"; for a token: {self.flops_per_token:.4g}"
        if self.recomputed_flops:
            flops += f"; run again: {self.recomputed_flops:.4g}, an HFU of {100 * self.hfu:.1f} %"
        rate = f"tokens/s of a device: {self.tokens_per_second_per_device:,.0f}"
        if self.measured_mfu is not None:
            rate += f"; measured: {self.measured:,.0f}, an MFU of {100 * self.measured_mfu:.1f} %"
        return [
            Table(title, ("cause", ">time [s]", ">share [%]"), times),
            Table("Memory of the fullest device", ("part", ">GB"), sizes, self._excess()),
            rate,
            flops,
            *assumed(self.assumed),
        ]

    def _excess(self) -> list[Mark]:
        """Return a note where the memory does not hold the step."""
        if self.capacity is None or self.fits:
            return []
        excess = (self.memory.total - self.capacity) / 1e9
        return [
            Mark(
                f"does not fit: {excess:,.2f} GB beyond the {self.capacity / 1e9:,.2f} GB of a device",
                WARNING,
            )
        ]
