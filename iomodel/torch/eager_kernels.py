"""Kernels that eager PyTorch launches for an operator, with the passes of each over its tensors.

The passes are those of PyTorch's own CUDA sources (github.com/pytorch/pytorch, aten/src/ATen/native/cuda): SoftMax.cu,
layer_norm_kernel.cu, group_norm_kernel.cu, Normalization.cuh, Loss.cu, Sort.cpp, ScanKernels.cpp, and of
ReduceOps.cpp. The rates were read off the programs of KernelBench that do not judge (:mod:`benchmarks.kernelbench`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, log2, prod

from iomodel.common.frozen_dict import FrozenDict
from iomodel.torch.convolutions import CONVOLUTIONS
from iomodel.torch.moved_bytes import distinct_bytes, results_of
from iomodel.torch.operator_call import OperatorCall, TensorArgument

ELEMENTS_PER_BLOCK = 512
"""Elements per thread block of an elementwise kernel: 128 threads with 4 each (thread_constants.h)."""
PERSISTENT = 48 << 10
"""Longest row of a softmax that a block keeps on chip [B]: the shared memory of a block without an attribute set
(SoftMax.cu, can_use_smem)."""
THREADS = 2048
"""Threads of an SM at most [-]."""


@dataclass(frozen=True)
class EagerKernel:
    """One launch of an operator.

    Attributes
    ----------
    read, written : int
        Bytes that it reads and writes once [B].
    again : int
        Bytes that its blocks read once more [B], from the L2 if the rows in flight fit it, else from DRAM.
    blocks : int
        Thread blocks [-].
    row : int
        Bytes that a block goes over again [B].
    threads, in_flight : int
        Threads of a block [-], and bytes that it awaits at once [B]; 0 where it has many loads in flight.
    joined : float
        Clocks in which the threads of a block join what each has of a row [clk].
    operations : float
        Operations beside those that hide behind the bytes [-].
    share : float
        Share of the bandwidth that the kernel sustains, of what a copy sustains [-].
    """

    read: int
    written: int
    blocks: int
    again: int = 0
    row: int = 0
    threads: int = 128
    in_flight: int = 0
    joined: float = 0.0
    operations: float = 0.0
    share: float = 1.0

    @property
    def requested(self) -> int:
        """Bytes that the blocks ask for [B]."""
        return self.read + self.again + self.written

    def rereads(self, units: int | None, capacity: int | None) -> int:
        """Compute the DRAM traffic of what is read again [B]: none if the rows of all blocks at work fit the L2."""
        if not self.again or units is None or capacity is None:
            return self.again
        at_work = min(self.blocks, units * (THREADS // self.threads))
        return 0 if at_work * self.row <= capacity else self.again


def kernels_of(call: OperatorCall) -> tuple[EagerKernel, ...]:
    """List the kernels of an operator; one that reads each tensor once and writes each result once by default.

    >>> x = TensorArgument((16, 1 << 20), "float32", 4)
    >>> softmax = OperatorCall("aten._softmax", {"self": x}, (x,), arguments={"dim": -1})
    >>> [kernel.requested // x.bytes for kernel in kernels_of(softmax)]
    [4]
    """
    rule = RULES.get(call.operator)
    return (plain(call),) if rule is None else tuple(rule(call))


def launches(call: OperatorCall) -> int:
    """Count what the host launches for an operator: its kernels, and the addition of a convolution's bias.

    >>> x, weight = TensorArgument((1, 8, 4), "float32", 4), TensorArgument((8, 8, 1), "float32", 4)
    >>> inputs = {"input": x, "weight": weight, "bias": TensorArgument((8,), "float32", 4)}
    >>> launches(OperatorCall("aten.convolution", inputs, (x,)))
    2
    """
    return len(kernels_of(call)) + (call.operator in CONVOLUTIONS and "bias" in call.inputs)


def plain(call: OperatorCall) -> EagerKernel:
    """Describe one kernel that reads each tensor once and writes each result once."""
    read, written = distinct_bytes(call)
    elements = max((tensor.elements for tensor in (*call.outputs, *call.inputs.values())), default=1)
    return EagerKernel(read, written, _blocks(elements))


def _blocks(elements: int) -> int:
    return max(1, ceil(elements / ELEMENTS_PER_BLOCK))


def _first(call: OperatorCall) -> TensorArgument:
    return call.tensor(next(iter(call.inputs), "self"))


def _softmax(call: OperatorCall) -> list[EagerKernel]:
    """A row that fits a block is read once; a longer one for the maximum, for the sum, and for the result."""
    once, x = plain(call), _first(call)
    axis = call.arguments.get("dim", -1)
    if type(axis) is not int or not x.shape or not -len(x.shape) <= axis < len(x.shape):
        return [once]
    axis %= len(x.shape)
    inner, row = prod(x.shape[axis + 1 :]), x.shape[axis] * x.element_bytes
    rows = x.elements // max(1, x.shape[axis])
    if inner == 1 and row <= PERSISTENT:
        return [replace(once, blocks=rows)]
    if inner == 1:
        return [replace(once, blocks=rows, again=2 * once.read, row=row, threads=1024)]
    return [replace(once, blocks=max(1, rows // 128), again=2 * once.read, row=128 * row, threads=128)]


def _reduced_loss(call: OperatorCall) -> list[EagerKernel]:
    """The loss of every element is stored, then reduced."""
    once = plain(call)
    if not call.arguments.get("reduction", 1) or not call.outputs:
        return [once]
    elements = max((tensor.elements for tensor in call.inputs.values()), default=0)
    losses = elements * call.outputs[0].element_bytes
    return [EagerKernel(once.read, losses, _blocks(elements)), EagerKernel(losses, once.written, _blocks(elements))]


def _row_norm(call: OperatorCall) -> list[EagerKernel]:
    """One block of 128 threads for each row reads it for the moments, and again to normalize."""
    once, x = plain(call), _first(call)
    width = prod(call.whole_numbers("normalized_shape", x.shape[-1:]))
    rows = max(1, x.elements // max(1, width))
    row = width * x.element_bytes
    awaited = min(128 * 16, max(1, row))
    return [replace(once, blocks=rows, again=x.bytes, row=row, threads=128, in_flight=awaited, joined=ROW_JOINED)]


def _group_norm(call: OperatorCall) -> list[EagerKernel]:
    """One block for the moments of each group, then an elementwise kernel."""
    once, x = plain(call), _first(call)
    blocks = max(1, (x.shape[0] if x.shape else 1) * prod(call.whole_numbers("group", (1,))))
    return [_moments(x, blocks), once]


def _moments(x: TensorArgument, blocks: int) -> EagerKernel:
    """Describe the kernel of moments, one block of 512 threads each."""
    awaited = 512 * x.element_bytes
    return EagerKernel(x.bytes, 0, blocks, threads=512, in_flight=awaited, operations=MOMENT_EACH * x.elements)


def _batch_norm(call: OperatorCall) -> list[EagerKernel]:
    """In training one block of 512 threads for each channel, which reads it for the moments, and again to normalize.

    Without weights it is one kernel for the moments, and an elementwise one.
    """
    once, x = plain(call), _first(call)
    training = call.arguments.get("training", call.arguments.get("train", True))
    if not training or len(x.shape) < 2:
        return [once]
    if "weight" in call.inputs:  # cuDNN's kernel, bn_fw_tr_1C11_kernel_NCHW in profiles, with loads of 16 B
        row = x.bytes // max(1, x.shape[1])
        return [replace(once, blocks=x.shape[1], again=x.bytes, row=row, threads=512, in_flight=512 * 16)]
    return [_moments(x, x.shape[1]), once]


def _log_sum_exp(call: OperatorCall) -> list[EagerKernel]:
    """The maximum; the difference and its exponential, both stored; the sum."""
    once, x = plain(call), _first(call)
    blocks = _blocks(x.elements)
    stored = EagerKernel(x.bytes, x.bytes, blocks)
    return [EagerKernel(x.bytes, 0, blocks), stored, stored, EagerKernel(x.bytes, once.written, blocks)]


def _pool(call: OperatorCall, axes: int) -> list[EagerKernel]:
    """One thread for each output goes over its window."""
    once = plain(call)
    fixed, each = MAX_POOL if "max" in call.operator else AVERAGE_POOL
    outputs = call.outputs[0].elements if call.outputs else 0
    return [replace(once, operations=outputs * (fixed + each * _window(call, axes)))]


def _window(call: OperatorCall, axes: int) -> int:
    sizes = call.whole_numbers("kernel_size", (1,))
    return prod(sizes * axes if len(sizes) == 1 else sizes)


def _scan(call: OperatorCall) -> list[EagerKernel]:
    return [replace(plain(call), share=SCAN, operations=SCAN_EACH * _first(call).elements)]


def _sort(call: OperatorCall) -> list[EagerKernel]:
    """Rows up to 4,096 are sorted on chip; longer ones by passes of 8 bits over keys and places."""
    once, x = plain(call), _first(call)
    length = _length(call)
    if length <= ON_CHIP_SORT:
        return [replace(once, operations=SORT_EACH * x.elements * log2(max(2, length)) ** 2)]
    moved = x.elements * (x.element_bytes + 8)
    return [EagerKernel(moved, moved, _blocks(x.elements), share=SORT)] * x.element_bytes


ROW_JOINED = 3000.0
"""Clocks in which 128 threads join the moments of a row, by shuffles and shared memory [clk]."""
MOMENT_EACH = 85.0
"""Operations of Welford's moments per element, divisions included [-]."""
MAX_POOL, AVERAGE_POOL = (213.0, 29.0), (30.0, 39.0)
"""Operations of a pooling kernel per output, and per element of its window, with those of its addresses [-]."""
SCAN = 0.65
"""Share of a copy's bandwidth of a scan [-]."""
SCAN_EACH = 170.0
"""Operations of a scan per element [-]."""
SORT = 0.5
"""The same of a pass of a radix sort [-]."""
ON_CHIP_SORT = 4096
"""Longest row that a block sorts (Sort.cpp) [elements]."""
SORT_EACH = 8.0
"""Operations of a step of a bitonic sort per element [-]."""

RULES: Mapping[str, Callable[[OperatorCall], list[EagerKernel]]] = FrozenDict({
    **dict.fromkeys(("aten._softmax", "aten._log_softmax", "aten._safe_softmax"), _softmax),
    **dict.fromkeys(
        ("aten.smooth_l1_loss", "aten.mse_loss", "aten.huber_loss", "aten.binary_cross_entropy",
         "aten.soft_margin_loss"),
        _reduced_loss,
    ),
    **dict.fromkeys(("aten.native_layer_norm", "aten._fused_rms_norm"), _row_norm),
    "aten.native_group_norm": _group_norm,
    **dict.fromkeys(
        ("aten.native_batch_norm", "aten._native_batch_norm_legit", "aten._native_batch_norm_legit_functional",
         "aten._batch_norm_with_update", "aten.cudnn_batch_norm"),
        _batch_norm,
    ),
    "aten.logsumexp": _log_sum_exp,
    **{f"aten.{name}_pool{axes}d{rest}": partial(_pool, axes=axes) for axes in (1, 2, 3)
       for name, rest in (("avg", ""), ("max", "_with_indices"), ("max", ""))},
    **dict.fromkeys(("aten.cumsum", "aten.cumprod", "aten.logcumsumexp"), _scan),
    **dict.fromkeys(("aten.sort", "aten.argsort"), _sort),
})  # fmt: skip
"""Rules of the operators that are not one pass over each tensor."""


def vector_operations(call: OperatorCall) -> int:
    """Count the operations of scans, transforms, pooling and sorts, beside the FLOPs of products [FLOP].

    A transform of n points takes 5 n log2 n, by its usual count.
    """
    elements = max((tensor.elements for tensor in call.inputs.values()), default=0)
    name = call.operator.removeprefix("aten.")
    if name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
        return elements
    if "_pool" in name and not name.startswith("_"):
        axes = next((axes for axes in (1, 2, 3) if f"pool{axes}d" in name), 1)
        outputs = call.outputs[0].elements if call.outputs else 0
        return elements if "adaptive" in name else outputs * _window(call, axes)
    if name.startswith("_fft_"):
        return _transform(call)
    if name in ("sort", "argsort", "topk", "msort"):
        return int(elements * log2(max(2, _length(call))))
    return 0


def _transform(call: OperatorCall) -> int:
    x = max(results_of(call), key=lambda tensor: tensor.elements, default=_first(call))
    lengths = [x.shape[axis] for axis in call.whole_numbers("dim") if -len(x.shape) <= axis < len(x.shape)]
    return int(5 * x.elements * sum(log2(length) for length in lengths if length > 1))


def _length(call: OperatorCall) -> int:
    """Return the length of the rows that a call sorts [elements]."""
    x, axis = _first(call), call.arguments.get("dim", -1)
    return x.shape[axis] if x.shape and type(axis) is int and -len(x.shape) <= axis < len(x.shape) else x.elements
