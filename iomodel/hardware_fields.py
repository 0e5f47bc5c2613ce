"""The fields of a hardware file, group by group; the kind of each says its unit and its bounds.

"SM" stands for the unit that runs a thread block: NVIDIA's SM, AMD's CU, a TensorCore of a TPU, a NeuronCore,
an Apple GPU core. Peaks are dense and accumulate in fp32 unless the name says otherwise; an FMA is two FLOPs.
"""

from __future__ import annotations

from typing import Literal

from iomodel.hardware_kinds import (
    Amount,
    Bandwidth,
    BytesPerClock,
    Capacity,
    CarveOuts,
    Clock,
    Clocks,
    Duration,
    FlopPerClock,
    Link,
    Ops,
    OpsPerClock,
    Power,
    Rate,
    Reserve,
    Share,
    Time,
)
from iomodel.quantity import Group, Text
from iomodel.validation import Count


class Hbm(Group):
    """The device's main memory, HBM or not."""

    capacity: Capacity | None = None
    capacity_reported: Capacity | None = None
    """What the driver shows, less than the nominal capacity."""
    bandwidth: Bandwidth | None = None


class Cache(Group):
    """A cache shared by the chip; `read_per_clock` is over the whole chip."""

    capacity: Capacity | None = None
    bandwidth: Bandwidth | None = None
    read_per_clock: BytesPerClock | None = None


class OnChip(Group):
    """On-chip memory a kernel addresses: shared memory, LDS, VMEM, SBUF, threadgroup memory."""

    per_block: Share | None = None
    """The largest share one thread block (kernel instance) may use: the budget of the tiles."""
    per_block_static: Share | None = None
    """The share without opting in to more."""
    reserved_per_block: Reserve | None = None
    per_sm: Share | None = None
    unified_per_sm: Share | None = None
    """What L1 cache and shared memory divide between them."""
    carve_outs: CarveOuts | None = None
    """The sizes shared memory may be set to."""
    allocation_granularity: Share | None = None
    bandwidth_per_clock_per_sm: BytesPerClock | None = None
    read_bandwidth_per_sm: Bandwidth | None = None
    total: Capacity | None = None
    """Over the whole chip."""
    bandwidth: Bandwidth | None = None
    """Over the whole chip."""


class PerSm(Group):
    """A memory of which each SM has its own."""

    per_sm: Share | None = None


class Memory(Group):
    """The memories, from the largest to the smallest."""

    hbm: Hbm = Hbm()
    llc: Cache = Cache()
    """A last-level cache behind L2, such as AMD's Infinity Cache."""
    l2: Cache = Cache()
    cmem: Cache = Cache()
    """Common memory shared by the cores of a TPU v4."""
    sram: OnChip = OnChip()
    l1: PerSm = PerSm()
    accumulator: PerSm = PerSm()
    """Holds the matrix units' sums: tensor memory (TMEM) on Blackwell, PSUM on Trainium."""
    registers: PerSm = PerSm()
    """The register file in bytes; the limits in registers are under `limits`."""


class Limits(Group):
    """What one SM and one block may hold at most."""

    threads_per_block: Amount | None = None
    threads_per_sm: Amount | None = None
    warps_per_sm: Amount | None = None
    blocks_per_sm: Amount | None = None
    warp_size: Amount | None = None
    """Threads in a warp, or in AMD's wavefront."""
    registers_per_sm: Amount | None = None
    """Registers of 32 bits."""
    registers_per_thread: Amount | None = None
    register_granularity_per_warp: Amount | None = None


class ClockRates(Group):
    """Boost clock of the chip, and of the matrix units where the vendor counts with another."""

    boost: Clock | None = None
    tensor: Clock | None = None


class Peak(Group):
    """Peak rates by data type, on matrix units where there are any; `_vector` means without them."""

    fp64: Rate | None = None
    fp64_matrix: Rate | None = None
    fp32: Rate | None = None
    fp32_matrix: Rate | None = None
    tf32: Rate | None = None
    fp16: Rate | None = None
    fp16_vector: Rate | None = None
    fp16_fp16acc: Rate | None = None
    bf16: Rate | None = None
    bf16_vector: Rate | None = None
    fp8: Rate | None = None
    fp8_fp16acc: Rate | None = None
    fp4: Rate | None = None
    int8: Ops | None = None
    int4: Ops | None = None


class Mma(Group):
    """The matrix instruction: the least tile that it multiplies, m x k by k x n."""

    rows: Amount | None = None
    """m, for one warp."""
    warpgroup_rows: Amount | None = None
    """m, for four warps together, where they multiply together."""
    columns: Amount | None = None
    """n, of either."""
    depth: Share | None = None
    """k in bytes: how many elements it is follows from their size."""
    warp_fp16_per_clock_per_sm: FlopPerClock | None = None
    """Dense fp16 matrix FLOPs of one SM in one clock by the instruction of one warp, where four together do more."""


class Compute(Group):
    """How much arithmetic there is."""

    units: Amount | None = None
    """How many SMs, CUs or cores are enabled."""
    clock: ClockRates = ClockRates()
    fp16_per_clock_per_sm: FlopPerClock | None = None
    """Dense fp16 or bf16 matrix FLOPs of one SM in one clock."""
    exp_per_clock_per_sm: OpsPerClock | None = None
    """Exponentials (special-function results) of one SM in one clock."""
    exp: Ops | None = None
    """Exponentials of the whole chip, as the vendor states them."""
    mma: Mma = Mma()
    peak: Peak = Peak()


class Interconnect(Group):
    """Links to other devices; `total` adds both directions, 0 means none."""

    total: Link | None = None
    per_direction: Link | None = None
    link_per_direction: Link | None = None
    link_per_direction_usable: Link | None = None
    pcie_total: Link | None = None
    pcie_per_direction: Link | None = None


class Board(Group):
    """Power of the device."""

    tdp: Power | None = None


class AttentionCall(Group):
    """One attention call that was timed, and what it took; a causal mask ends at the last query and the last key."""

    direction: Literal["forward", "backward"]
    """The backward pass alone, or the forward pass."""
    mask: Literal["full", "causal"]
    dtype: Text
    batch: Count
    heads: Count
    kv_heads: Count
    q_len: Count
    kv_len: Count
    head_dim: Count
    kernel: Text
    """Whose kernel answered, such as "torch flash"."""
    time: Duration


class Provenance(Group):
    """Which device a calibration measured, when and how; it is about the figures whose source is that calibration."""

    device: Text | None = None
    """As the driver names it."""
    driver: Text | None = None
    software: Text | None = None
    date: Text | None = None
    """When the measurement began, ISO 8601."""
    method: Text | None = None
    base: Text | None = None
    """The hardware file that everything unmeasured was taken from."""
    failed: tuple[Text, ...] = ()
    """What could not be measured, and why."""


class Measured(Group):
    """What benchmarks reached on the real device; never used as a peak."""

    provenance: Provenance = Provenance()
    hbm_read: Bandwidth | None = None
    hbm_write: Bandwidth | None = None
    hbm_triad: Bandwidth | None = None
    hbm_copy: Bandwidth | None = None
    """Bytes read plus bytes written, per second."""
    l2_bandwidth: Bandwidth | None = None
    l1_bandwidth: Bandwidth | None = None
    """Over the whole chip."""
    l1_latency: Time | None = None
    l1_latency_clocks: Clocks | None = None
    l2_latency: Time | None = None
    llc_latency: Time | None = None
    kernel_launch: Time | None = None
    """Start to start of kernels launched back to back."""
    graph_node: Time | None = None
    """The same inside a CUDA graph."""
    exp: Ops | None = None
    """Exponentials of the whole chip."""
    gemm_bf16: Rate | None = None
    gemm_fp16: Rate | None = None
    gemm_tf32: Rate | None = None
    gemm_fp8: Rate | None = None
    gemm_qk_bf16: Rate | None = None
    """Q K^T as a product of its own, in batches: the scores go to HBM, which may be what binds."""
    gemm_pv_bf16: Rate | None = None
    """P V likewise: the probabilities come from HBM."""
    attention_forward: Rate | None = None
    """The best of the calls timed; FLOPs of visible pairs only."""
    attention_backward: Rate | None = None
    """Likewise, of the backward pass alone, counted as 2.5 times the FLOPs of the forward pass."""
    attention: tuple[AttentionCall, ...] = ()
    """The calls timed, one by one."""
