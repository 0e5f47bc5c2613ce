"""Groups of fields in a hardware file; the kind of each field sets its unit and its bounds.

"SM" stands for the unit that runs a thread block: NVIDIA's SM, AMD's CU, a TensorCore of a TPU, a NeuronCore,
an Apple GPU core. Peaks are dense and accumulate in fp32 unless the name says otherwise; an FMA is two FLOPs.
"""

from __future__ import annotations

from typing import Annotated, Literal

from iomodel.common.validation import Count
from iomodel.devices.quantity import (
    INSTRUCTION,
    LOWER,
    Amount,
    Bandwidth,
    Better,
    BytesPerClock,
    Capacity,
    CarveOuts,
    Clock,
    Clocks,
    Duration,
    FlopPerClock,
    Group,
    Link,
    Ops,
    OpsPerClock,
    Power,
    Rate,
    Reserve,
    Share,
    Text,
    Time,
)


class Hbm(Group):
    """Main memory of a device, HBM or not."""

    capacity: Capacity | None = None
    capacity_reported: Capacity | None = None
    """Capacity reported by the driver, less than the nominal capacity."""
    bandwidth: Bandwidth | None = None


class Cache(Group):
    """One cache shared by the chip; `read_per_clock` is for the whole chip."""

    capacity: Capacity | None = None
    bandwidth: Bandwidth | None = None
    read_per_clock: BytesPerClock | None = None


class L2(Cache):
    """The L2 cache, which may be the sum of private ones."""

    slices: Annotated[Amount, Better("none", "more private caches are smaller ones")] | None = None
    """Private caches of equal size that the capacity is the sum of, one per die; 1 if not given. Thread blocks are
    dealt to them in turn by their numbers."""
    written: Annotated[Capacity, LOWER] | None = None
    """Bytes that a benchmark has overwritten before a call and that the reads of the call evict; 0 if not given.

    They are seven tenths of the capacity, as read off decoding on a B200 and an RTX PRO 6000 in
    tests/measured/published_2.csv (working rows of 268 MB and more of keys and values), whose times exceed the bytes
    over the bandwidth by the same 50 to 60 and 15 us at any length, and by less where fewer bytes are read;
    github.com/NVIDIA/cudnn-frontend at 3929da2e, benchmark_single_sdpa.py, zeroes 256 MB before each call."""
    partitions: Annotated[Amount, LOWER] | None = None
    """Parts of one coherent cache, each of which caches what the SMs next to it access; 1 if not given. A line may be
    in all of them."""


class OnChip(Group):
    """On-chip memory addressed by kernels: shared memory, LDS, VMEM, SBUF, threadgroup memory."""

    per_block: Share | None = None
    """The largest share one thread block (kernel instance) may use: the budget of the tiles."""
    per_block_static: Share | None = None
    """The share available without opting in to more."""
    reserved_per_block: Reserve | None = None
    per_sm: Share | None = None
    unified_per_sm: Share | None = None
    """Capacity divided between the L1 cache and shared memory."""
    carve_outs: CarveOuts | None = None
    """Configurable sizes of shared memory."""
    allocation_granularity: Annotated[Share, LOWER] | None = None
    bandwidth_per_clock_per_sm: BytesPerClock | None = None
    read_bandwidth_per_sm: Bandwidth | None = None
    total: Capacity | None = None
    """For the whole chip."""
    bandwidth: Bandwidth | None = None
    """For the whole chip."""


class PerSm(Group):
    """One memory private to each SM."""

    per_sm: Share | None = None


class Memory(Group):
    """The memories of a device, from the largest to the smallest."""

    hbm: Hbm = Hbm.model_construct()
    llc: Cache = Cache.model_construct()
    """A last-level cache behind L2, such as AMD's Infinity Cache."""
    l2: L2 = L2.model_construct()
    cmem: Cache = Cache.model_construct()
    """Common memory shared by the cores of a TPU v4."""
    sram: OnChip = OnChip.model_construct()
    l1: PerSm = PerSm.model_construct()
    accumulator: PerSm = PerSm.model_construct()
    """Holds the accumulators of the matrix units: tensor memory (TMEM) on Blackwell, PSUM on Trainium."""
    registers: PerSm = PerSm.model_construct()
    """The register file in bytes; the limits in registers are under `limits`."""


class Limits(Group):
    """Limits of one SM and one thread block."""

    threads_per_block: Amount | None = None
    threads_per_sm: Amount | None = None
    warps_per_sm: Amount | None = None
    blocks_per_sm: Amount | None = None
    warp_size: Annotated[Amount, INSTRUCTION] | None = None
    """Threads in a warp, or in AMD's wavefront."""
    registers_per_sm: Amount | None = None
    """Registers of 32 bits."""
    registers_per_thread: Amount | None = None
    register_granularity_per_warp: Annotated[Amount, LOWER] | None = None
    cluster_blocks: Amount | None = None
    """Most thread blocks of a cluster, whose SMs read each other's shared memory."""


class ClockRates(Group):
    """Boost clock of the chip, and of the matrix units where the vendor lists a separate one."""

    boost: Clock | None = None
    tensor: Clock | None = None
    sustained: Clock | None = None
    """That of long matrix products at the limit of power, where it is lower."""
    throttled: Clock | None = None
    """The one to which a kernel's clock falls at the limit of power after some tens of milliseconds."""


class Peak(Group):
    """Peak rates by data type, on matrix units where present; `_vector` means without them."""

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
    mxfp8: Rate | None = None
    """fp8 by the instruction that scales blocks, where it is faster; with a scale of one it multiplies any fp8."""
    fp4: Rate | None = None
    int8: Ops | None = None
    int4: Ops | None = None


class Mma(Group):
    """The matrix instruction: its smallest tile multiplies m x k by k x n."""

    rows: Annotated[Amount, INSTRUCTION] | None = None
    """m, for one warp."""
    warpgroup_rows: Annotated[Amount, INSTRUCTION] | None = None
    """m, for four warps that multiply together."""
    columns: Annotated[Amount, INSTRUCTION] | None = None
    """n, for one warp or four."""
    depth: Annotated[Share, INSTRUCTION] | None = None
    """k in bytes; the number of elements follows from their size."""
    warp_fp16_per_clock_per_sm: FlopPerClock | None = None
    """Dense fp16 matrix FLOPs of one SM per clock with the single-warp instruction, where the warpgroup's is faster."""


class Compute(Group):
    """Arithmetic units of a device and their rates."""

    units: Amount | None = None
    """Number of enabled SMs, CUs or cores."""
    clock: ClockRates = ClockRates.model_construct()
    fp16_per_clock_per_sm: FlopPerClock | None = None
    """Dense fp16 or bf16 matrix FLOPs of one SM per clock."""
    fp4_per_clock_per_sm: FlopPerClock | None = None
    int8_per_clock_per_sm: OpsPerClock | None = None
    """Dense matrix operations of one SM per clock in fp4, and in int8."""
    fp32_per_clock_per_sm: OpsPerClock | None = None
    """fp32 operations of one SM per clock without the matrix units; a fused multiply-add is one."""
    exp_per_clock_per_sm: OpsPerClock | None = None
    """Exponentials (special-function results) of one SM per clock."""
    exp: Ops | None = None
    """Exponentials of the whole chip, as stated by the vendor."""
    mma: Mma = Mma.model_construct()
    peak: Peak = Peak.model_construct()


class Interconnect(Group):
    """Links to other devices; `total` is the sum of both directions, 0 means no link; `devices` all that they join."""

    total: Link | None = None
    per_direction: Link | None = None
    link_per_direction: Link | None = None
    link_per_direction_usable: Link | None = None
    pcie_total: Link | None = None
    pcie_per_direction: Link | None = None
    devices: Amount | None = None


class Board(Group):
    """Power of a device."""

    tdp: Power | None = None


class AttentionCall(Group):
    """One timed attention call; a causal mask ends at the last query and the last key."""

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
    """Kernel that ran, such as "torch flash"."""
    time: Duration


class Provenance(Group):
    """Device, date and method of a calibration, the source of the figures that it measured."""

    device: Text | None = None
    """Name reported by the driver."""
    driver: Text | None = None
    software: Text | None = None
    date: Text | None = None
    """Start of the measurement, ISO 8601."""
    method: Text | None = None
    base: Text | None = None
    """The hardware file that supplied every unmeasured figure."""
    failed: tuple[Text, ...] = ()
    """Figures that could not be measured, with reasons."""


class Measured(Group):
    """Rates reached by benchmarks on the real device; never used as peaks."""

    provenance: Provenance = Provenance.model_construct()
    hbm_read: Bandwidth | None = None
    hbm_write: Bandwidth | None = None
    hbm_triad: Bandwidth | None = None
    hbm_copy: Bandwidth | None = None
    """Bytes read plus bytes written, per second."""
    l2_bandwidth: Bandwidth | None = None
    l2_capacity: Capacity | None = None
    """Largest buffer that all SMs read from the L2; partitions may hold copies of its lines."""
    l1_bandwidth: Bandwidth | None = None
    """For the whole chip."""
    l1_latency: Time | None = None
    l1_latency_clocks: Clocks | None = None
    l2_latency: Time | None = None
    llc_bandwidth: Bandwidth | None = None
    llc_latency: Time | None = None
    kernel_launch: Time | None = None
    """Time between the starts of kernels launched back to back."""
    graph_node: Time | None = None
    """Time between the starts of kernels in a CUDA graph."""
    exp: Ops | None = None
    """Exponentials of the whole chip."""
    gemm_bf16: Rate | None = None
    gemm_fp16: Rate | None = None
    gemm_tf32: Rate | None = None
    gemm_fp8: Rate | None = None
    best_gemm_bf16: Rate | None = None
    best_gemm_fp16: Rate | None = None
    best_gemm_fp8: Rate | None = None
    best_gemm_mxfp8: Rate | None = None
    best_gemm_fp4: Rate | None = None
    """The best of the products of many shapes, in the other types as in bf16."""
    gemm_qk_bf16: Rate | None = None
    """Q K^T as a separate batched product; it writes the scores to HBM, which may be the limiting resource."""
    gemm_pv_bf16: Rate | None = None
    """P V as a separate batched product; it reads the probabilities from HBM."""
    attention_forward: Rate | None = None
    """The best of the timed calls; FLOPs of visible pairs only."""
    attention_backward: Rate | None = None
    """The best of the timed calls, backward pass alone, counted as 2.5 times the FLOPs of the forward pass."""
    attention: tuple[AttentionCall, ...] = ()
    """Every timed call."""
