"""Time of one stage of a training step by cause, with collectives beside passes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from iomodel.devices.device import Hardware
from iomodel.devices.rates import rates
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.links import all_reduce
from iomodel.planning.step.setting import Part
from iomodel.planning.training.passes import EXCHANGE, RING, Forward
from iomodel.planning.training.strategy import Strategy
from iomodel.planning.training.training_memory import OPTIMIZER, WEIGHT, Weights
from iomodel.timing.layer_clock import LayerClock
from iomodel.workloads.elementwise import Elementwise

OVERHEAD = {"sm_80": 0.035, "sm_90": 0.255}
"""Time beyond the kernels of passes, as a share of theirs, by architecture [-]: the host, jitter between devices, what
is not declared, and the clock that power allows in long runs. The only figures read off whole steps, calibration rows
of tests/measured/training.csv: that of the A100 is the median of the table of llm-foundry, that of the H100 gives the
ratio of its rates to those of the A100 with the same scripts (fms-fsdp)."""
COMMUNICATING = 16
"""Thread blocks, each on a unit of its own, with which collectives run beside products [-]: the default of Megatron
Bridge (docs/performance-guide.md of github.com/NVIDIA-NeMo/Megatron-Bridge); DeepSeek-V3 uses 20."""
PIECES = 4
"""Pieces of a collective of tensor parallelism that overlaps with a product [-], one of which has no product beside it:
the recommendation of the same guide."""
BUCKET = 40_000_000
"""Least weights of a collective of data parallelism that does not follow the layers [-]: Megatron-LM's
--ddp-bucket-size, with a million for each replica if that is more."""
CLIPPED = 3
"""Passes of clipping over the gradients [-]: the norm reads them, the scale reads and writes them."""
UNFUSED_ADAM = 80
"""Bytes per weight of Adam as a list of operators on fp32 tensors [B], as PyTorch's without `fused`: decay and both
moments 8 + 12 + 8 + 12, the root and its sum and quotient 8 + 8 + 8, the update 16."""
COPIED = 8
"""Bytes per weight of the copies out of a buffer of gathered weights, in a forward and a backward pass [B]; a gradient
is read in bf16, and written in the type in which it is reduced (``split_with_sizes_copy`` and ``chunk_cat`` of
torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py)."""
ROW = 1 << 12
"""Width of the rows in which the traffic of weights is streamed [elements]."""


@dataclass(frozen=True)
class Stage:
    """Kernels of one micro-batch on one stage, and its weights."""

    forward: list[Part]
    again: list[Part]
    backward: list[Part]
    layers: int
    """Layers, each of which FSDP gathers at once [-]."""
    sends: float
    """Time of the sends in one direction of a pass [s]."""
    weights: Weights
    """Weights on a rank."""


def stage_times(
    stage: Stage, strategy: Strategy, micro_batches: int, chunks: int, replicas: int, at: Forward
) -> dict[str, float]:
    """Divide the time of a step on a stage by cause [s]."""
    layout, device, level = at.layout, at.clock.device, strategy.level
    again = [*stage.forward, *stage.again, *stage.backward]
    once = {
        "forward": seconds(stage.forward, False),
        "recomputation": seconds(stage.again, False),
        "backward": seconds(stage.backward, False),
    }
    beyond = overhead(device)
    once["overhead"] = beyond * sum(once.values())
    exchanged = seconds((part for part in again if part[0] == EXCHANGE), True)
    passed = seconds((part for part in again if part[0] == RING), True)
    shared = seconds(again, True) - exchanged - passed
    exposed, unhidden, awaited = shared, exchanged, passed
    if "tensor" in strategy.overlap and shared:
        products = seconds((part for part in again if part[1] == "linear"), False)
        exposed = max(shared - products, shared / PIECES)
    if "experts" in strategy.overlap:
        unhidden = max(0.0, exchanged - seconds(again, False))
    if "context" in strategy.overlap:
        awaited = max(0.0, passed - seconds((part for part in again if part[1] == "attention"), False))
    hidden = shared - exposed + exchanged - unhidden + passed - awaited
    once["tensor-parallel collectives"] = exposed
    once["exchange of experts"] = unhidden
    once["exchange of keys and values"] = awaited
    once["gradients of a micro-batch"] = _streamed(at.clock, stage.weights.all * (strategy.gradient_size + 2))
    copied = COPIED + 2 + strategy.gradient_size if strategy.copies and level == 3 and replicas > 1 else 0
    once["copies of gathered weights"] = _streamed(at.clock, stage.weights.all * copied) if copied else 0.0
    sends = 2 * stage.sends
    once["sends between stages"] = 0.0 if "pipeline" in strategy.overlap and chunks > 1 else sends
    hidden += sends - once["sends between stages"]

    units = _units(stage, level, replicas)
    gather, reduce = (
        Collective.of(device, stage.weights, size, replicas, units, layout) for size in (WEIGHT, strategy.gradient_size)
    )
    beside = "data" in strategy.overlap
    seen = (exposed + unhidden + awaited) / sent if (sent := shared + exchanged + passed) else 1.0
    ahead = _window(stage.forward, beyond, seen)
    behind = _window([*stage.again, *stage.backward], beyond, seen)
    each, last = Exposure(), Exposure()
    if level == 3:
        each.add(gather, ahead, beside)
    if level >= 2:
        each.add(reduce if level == 2 else gather.then(reduce), behind, beside)
    else:
        last.add(reduce if level else reduce.then(reduce), behind, beside)
    if 0 < level < 3:
        last.add(gather, ahead, beside)
    once["exposed data-parallel collectives"] = each.exposed
    units_of_device = rates(device, "bf16").units
    contended = 0.0 if units_of_device is None else min(1.0, COMMUNICATING / units_of_device)
    once["contention with collectives"] = contended * (hidden + each.hidden)
    times = {cause: micro_batches * time for cause, time in once.items()}
    times["exposed data-parallel collectives"] += last.exposed
    times["contention with collectives"] += contended * last.hidden
    steady = sum(once.values()) - once["sends between stages"]
    times["pipeline bubble"] = (layout.pipeline_parallel - 1) * (steady + sends) / chunks
    share = stage.weights.share(replicas, layout) if level else stage.weights.all
    times["optimizer"] = _optimizer(at.clock, share, strategy)
    return times


@dataclass(frozen=True)
class Collective:
    """A collective of data parallelism in equal units, one of which overlaps with no pass [s]."""

    whole: float
    unit: float

    @classmethod
    def of(cls, device: Hardware, weights: Weights, size: int, replicas: int, units: int, layout: Layout) -> Collective:
        """Time a gather or a scattered sum of weights of some bytes, each half of the sum over those that hold them."""
        node = layout.devices_per_node
        unit = 0.0
        for elements, ranks, apart in (
            (weights.dense, replicas * layout.data_parallel, layout.tensor_parallel),
            (weights.experts, replicas, layout.ranks),
        ):
            if elements and ranks > 1:
                beside = None if node is None else max(1, node // apart)
                network = Layout(devices_per_node=beside, network_bandwidth=layout.network_bandwidth)
                unit += all_reduce(device, ranks, -(-elements * size // units), network).seconds / 2
        return cls(units * unit, unit)

    def then(self, other: Collective) -> Collective:
        """Return both in sequence; the last unit overlaps with no pass."""
        return Collective(self.whole + other.whole, other.unit)


@dataclass
class Exposure:
    """Time of collectives without and with a pass beside them [s]."""

    exposed: float = 0.0
    hidden: float = 0.0

    def add(self, collective: Collective, window: float, beside: bool) -> None:
        """Add a collective that starts or ends with a pass that takes some time."""
        exposed = max(collective.whole - window, collective.unit) if beside else collective.whole
        self.exposed += exposed
        self.hidden += collective.whole - exposed


def _units(stage: Stage, level: int, replicas: int) -> int:
    """Count the collectives into which the weights are divided: one for each layer and the rest, or by buckets."""
    if level == 3:
        return stage.layers + 1
    return max(1, ceil(stage.weights.all / max(BUCKET, 1_000_000 * replicas)))


def overhead(device: Hardware) -> float:
    """Return the share of time beyond the kernels: that of the H100 for architectures without rows of whole steps."""
    return OVERHEAD.get(device.architecture or "", OVERHEAD["sm_90"])


def _window(parts: list[Part], beyond: float, seen: float) -> float:
    """Time a pass with its overhead, behind which collectives of data parallelism hide [s].

    `seen` is the share of its own collectives that its kernels do not hide [-].
    """
    return (1 + beyond) * seconds(parts, False) + seen * seconds(parts, True)


def _optimizer(clock: LayerClock, weights: int, strategy: Strategy) -> float:
    """Time clipping and the update: gradients in, fp32 weights and moments in and out, weights out [s]."""
    gradient = strategy.gradient_size
    update = gradient + 2 * OPTIMIZER if strategy.fused else UNFUSED_ADAM + OPTIMIZER // 3
    return _streamed(clock, weights * (CLIPPED * gradient + update + WEIGHT))


def _streamed(clock: LayerClock, size: int) -> float:
    """Time the traffic of a number of bytes [s]."""
    kernel = Elementwise(rows=-(-size // (2 * WEIGHT * ROW)), channels=ROW, dtype="bf16")
    return clock.elementwise("activation", kernel).seconds


def seconds(parts: Iterable[Part], shared: bool | None = None) -> float:
    """Sum the times of parts: all, those of collectives, or the others [s]."""
    chosen = (span.seconds for _, kind, span in parts if shared is None or (kind == "communication") == shared)
    return sum(chosen)
