"""Bytes of operators that read and write each tensor once, and of those that take only a part of one."""

from __future__ import annotations

from collections.abc import Mapping

from iomodel.common.frozen_dict import FrozenDict
from iomodel.torch.operator_call import OperatorCall, TensorArgument

OVERWRITES = frozenset({
    "aten.copy_", "aten.fill_", "aten.zero_", "aten.normal_", "aten.uniform_", "aten.random_", "aten.bernoulli_",
    "aten.exponential_",
})  # fmt: skip
"""Operators that write their first tensor without reading it."""
GATHERS: Mapping[str, str] = FrozenDict(
    {"aten.embedding": "weight", "aten.index_select": "self", "aten.gather": "self", "aten.index": "self"}
)
"""Operators that read as many elements of this tensor as they return, not all of it."""
SCATTERS: Mapping[str, tuple[str, str, bool]] = FrozenDict(
    {
        "aten.index_put_": ("self", "values", False),
        "aten.index_copy_": ("self", "source", False),
        "aten.scatter_": ("self", "src", False),
        "aten.index_add_": ("self", "source", True),
        "aten.scatter_add_": ("self", "src", True),
    }
)
"""Operators that write as many elements of the first tensor as the second has, and read them where they add."""
SOFTMAX_GRADIENT = "aten._softmax_backward_data"
"""Two kernels on a GPU: gradient times output, then the gradient (github.com/pytorch/pytorch,
aten/src/ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out), as in :mod:`iomodel.algorithms.eager`."""


def moved_bytes(call: OperatorCall) -> tuple[int, int]:
    """Return the bytes that an operator reads and writes [B].

    >>> from iomodel.torch.operator_call import TensorArgument
    >>> table, row = TensorArgument((4, 8), "bfloat16", 2), TensorArgument((8,), "bfloat16", 2)
    >>> moved_bytes(OperatorCall("aten.add", {"self": table, "other": row}, (table,), pointwise=True))
    (128, 64)
    """
    return _moved(call, requested=True)


def distinct_bytes(call: OperatorCall) -> tuple[int, int]:
    """Return the bytes that an operator reads and writes at least [B]: those of a broadcast tensor once.

    >>> from iomodel.torch.operator_call import TensorArgument
    >>> table, row = TensorArgument((4, 8), "bfloat16", 2), TensorArgument((8,), "bfloat16", 2)
    >>> distinct_bytes(OperatorCall("aten.add", {"self": table, "other": row}, (table,), pointwise=True))
    (80, 64)
    """
    return _moved(call, requested=False)


def results_of(call: OperatorCall) -> tuple[TensorArgument, ...]:
    """Return the tensors that an operator makes or changes."""
    return (*call.outputs, *(call.inputs[name] for name in call.written))


def _moved(call: OperatorCall, requested: bool) -> tuple[int, int]:
    reads = {name: tensor.bytes if requested else tensor.distinct_bytes for name, tensor in call.inputs.items()}
    writes = sum(tensor.bytes for tensor in call.outputs)
    first = next(iter(call.inputs), "")
    if call.pointwise and requested:  # a broadcast element is requested with each element of the result
        results = max((tensor.elements for tensor in results_of(call)), default=0)
        for name, tensor in call.inputs.items():
            reads[name] = tensor.element_bytes * (results if tensor.elements > 1 else tensor.elements)
    if call.operator in OVERWRITES:
        reads.pop(first, None)
    if "out" in call.written:
        reads.pop("out", None)
    gathered = GATHERS.get(call.operator)
    if gathered in reads:
        reads[gathered] = sum(tensor.elements for tensor in call.outputs) * call.inputs[gathered].element_bytes
    whole = {name: call.inputs[name].bytes for name in call.written}
    if call.operator in SCATTERS:
        target, source, adds = SCATTERS[call.operator]
        if source in call.inputs:
            part = call.inputs[source].elements * call.tensor(target).element_bytes
            whole[target] = part
            reads[target] = part if adds else 0
    writes += sum(whole.values())
    if call.operator == SOFTMAX_GRADIENT:
        return 2 * sum(reads.values()), 2 * writes
    return sum(reads.values()), writes
