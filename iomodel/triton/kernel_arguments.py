"""Arguments and numbers of a counted kernel as values of Triton's language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from iomodel.errors import InputError, shown
from iomodel.triton.counting_builder import ORIGIN
from iomodel.triton.kernel_launch import KernelLaunch
from iomodel.triton.kernel_memory import KernelMemory, is_tensor


def number(value: float) -> Any:
    """Make the fp32 scalar that a compiled kernel takes for a number with a fraction."""
    from triton import language as tl
    from triton.runtime.interpreter import TensorHandle

    return tl.tensor(TensorHandle(np.array([value], np.float32), tl.float32), tl.float32)


class LoopIndex(int):
    """The variable of a loop: an integer that can be converted, as a scalar of the language can."""

    def to(self, dtype: Any, **_: Any) -> Any:
        """Convert to a scalar of a type."""
        from triton.runtime import interpreter

        return interpreter.interpreter_semantic.to_tensor(int(self)).to(dtype)


def indices(*bounds: Any, **hints: Any) -> Iterator[LoopIndex]:
    """Walk a range of Python or of the language; hints to the compiler are left out."""
    named = [hints[name] for name in ("arg1", "arg2", "step") if hints.get(name) is not None]
    return map(LoopIndex, range(*(int(bound) for bound in (*bounds, *named) if bound is not None)))


def converted(launched: KernelLaunch, memory: KernelMemory) -> dict[str, Any]:
    """Convert the arguments of a launch; raise InputError for one that Triton does not take."""
    return {
        name: value if name in launched.meta else _converted(name, value, memory)
        for name, value in launched.arguments.items()
    }


def _converted(name: str, value: Any, memory: KernelMemory) -> Any:
    from triton.runtime import interpreter
    from triton.tools.tensor_descriptor import TensorDescriptor

    if is_tensor(value):
        return _pointer(name, value, memory)
    if isinstance(value, TensorDescriptor):
        return _descriptor(name, value, memory)
    if isinstance(value, tuple):
        return tuple(_converted(f"{name}[{place}]", each, memory) for place, each in enumerate(value))
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or hasattr(value, "handle"):
        return value
    if isinstance(value, float):
        return number(value)
    if not isinstance(value, bool | int) or not -(2**63) <= value < 2**64:
        raise InputError(f"{name}: {shown(value)} given; allowed: a tensor, a number or None")
    return interpreter._implicit_cvt(value)


def _pointer(name: str, value: Any, memory: KernelMemory) -> Any:
    from triton import language as tl
    from triton.runtime.interpreter import TensorHandle

    buffer = memory.add(name, value)
    kind = tl.pointer_type(_language_dtype(buffer.dtype))
    handle = TensorHandle(np.array([buffer.address], dtype=np.uint64), kind)
    handle.attr[ORIGIN] = name
    return tl.tensor(handle, kind)


def _language_dtype(name: str) -> Any:
    from triton import language as tl

    return getattr(tl, name, None) or tl.str_to_ty(name, None)


def _descriptor(name: str, value: Any, memory: KernelMemory) -> Any:
    """Make a descriptor on the host's; its tensor is counted under the name of the argument."""
    from triton import language as tl
    from triton.runtime import interpreter

    whole = interpreter._implicit_cvt
    made = interpreter.interpreter_semantic.make_tensor_descriptor(
        base=_pointer(name, value.base, memory),
        shape=[whole(int(each)) for each in value.shape],
        strides=[*(whole(int(each)) for each in value.strides[:-1]), tl.constexpr(1)],
        block_shape=[tl.constexpr(int(each)) for each in value.block_shape],
        padding_option=value.padding,
    )
    made.handle.round_f32_to_tf32 = getattr(value, "round_f32_to_tf32", False)
    return made
