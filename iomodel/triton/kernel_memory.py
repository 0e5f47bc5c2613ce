"""Memory of a counted kernel: the tensors behind addresses, and what is moved of each."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from iomodel.common.frozen_dict import FrozenDict
from iomodel.errors import InputError, shown
from iomodel.triton.kernel_count import TensorCount

DTYPES = {
    "bool": "int1", "float8_e4m3fn": "float8e4nv", "float8_e4m3fnuz": "float8e4b8", "float8_e5m2": "float8e5",
    "float8_e5m2fnuz": "float8e5b16",
    **{name: name for name in (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
        "float64",
    )},
}  # fmt: skip
"""Names of the dtypes of Triton by those of NumPy and PyTorch."""


@dataclass(frozen=True)
class CountedBuffer:
    """A tensor argument: the address of its first element, and the bytes that may be accessed from it."""

    name: str
    address: int
    start: int
    stop: int
    dtype: str
    element_bytes: int
    writable: bool

    @classmethod
    def of(cls, name: str, tensor: Any) -> CountedBuffer:
        """Describe a NumPy array or a PyTorch tensor on the CPU; raise InputError for another dtype or device."""
        base = getattr(tensor, "base", None) if type(tensor).__name__ == "TensorWrapper" else None
        stored = tensor if base is None else base
        dtype = str(getattr(tensor, "dtype", "")).removeprefix("torch.")
        known = dtype if base is not None else DTYPES.get(dtype)
        if known is None:
            raise InputError(f"{name}: dtype {dtype} given; allowed: {', '.join(DTYPES)}")
        if isinstance(stored, np.ndarray):
            owner = stored
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            start, stop = np.lib.array_utils.byte_bounds(owner)
            return cls(name, stored.ctypes.data, start, stop, known, stored.itemsize, stored.flags.writeable)
        device = str(getattr(stored, "device", "cpu"))
        if not device.startswith("cpu"):
            raise InputError(f"{name}: a tensor on {device} given; allowed: one on the CPU; convert it: tensor.cpu()")
        storage = stored.untyped_storage()
        start = storage.data_ptr()
        return cls(name, stored.data_ptr(), start, start + storage.nbytes(), known, stored.element_size(), True)


def is_tensor(value: Any) -> bool:
    """Check whether an argument is a tensor."""
    return isinstance(value, np.ndarray) or (hasattr(value, "data_ptr") and hasattr(value, "dtype"))


class KernelMemory:
    """The buffers of one launch, with every element moved counted under its argument."""

    def __init__(self) -> None:
        self.buffers: dict[str, CountedBuffer] = {}
        self.moved: dict[str, Counter[str]] = {}

    def add(self, name: str, tensor: Any) -> CountedBuffer:
        """Take in a tensor argument."""
        buffer = self.buffers[name] = CountedBuffer.of(name, tensor)
        self.moved[name] = Counter()
        return buffer

    def access(self, kind: str, addresses: Any, mask: Any, name: str | None) -> None:
        """Count one block of addresses as loads, stores or atomics; raise InputError for one outside its tensor."""
        addresses, mask = np.broadcast_arrays(addresses, mask)
        active = addresses[mask]
        if name is not None:
            self._count(kind, name, active, addresses.size)
            return
        masked = addresses.size - active.size
        while active.size:
            name, here = self._owned(active)
            self._count(kind, name, active[here], int(here.sum()) + masked)
            active, masked = active[~here], 0

    def _count(self, kind: str, name: str, active: Any, requested: int) -> None:
        """Count the addresses of one tensor."""
        self.moved[name][f"asked_{kind}"] += requested
        self.moved[name][kind] += active.size
        if not active.size:
            return
        buffer = self.buffers[name]
        low, high = int(active.min()), int(active.max())
        if low < buffer.start or high + buffer.element_bytes > buffer.stop:
            first = low if low < buffer.start else high
            offset = (first - buffer.address) // buffer.element_bytes
            raise InputError(
                f"{name}: the kernel accesses element {offset}, outside the tensor of "
                f"{(buffer.stop - buffer.start) // buffer.element_bytes:,} elements; mask the access, or give a larger "
                "tensor"
            )
        if kind != "loads" and not buffer.writable:
            raise InputError(f"{name}: the kernel writes to a read-only array; allowed: one that can be written to")

    def _owned(self, addresses: Any) -> tuple[str, Any]:
        """Find the tensor of the first address whose argument is not known, and all addresses in it.

        Such an address comes from a choice between pointers, or from a pointer that was itself loaded. Of tensors that
        share memory, the one that begins last before the address is taken.
        """
        first = int(addresses[0])
        inside = [each for each in self.buffers.values() if each.start <= first < each.stop]
        if not inside:
            raise InputError(
                f"args: the kernel accesses address {first:#x}, which is in none of {shown(sorted(self.buffers))}"
            )
        before = [each for each in inside if each.address <= first]
        owner = max(before or inside, key=lambda each: each.address)
        later = [each.address for each in inside if each.address > first]
        low = owner.address if before else owner.start
        return owner.name, (addresses >= low) & (addresses < min(later, default=owner.stop))

    def counts(self) -> FrozenDict[str, TensorCount]:
        """Return the counts of every tensor."""
        names = [each.name for each in fields(TensorCount)][1:]
        return FrozenDict(
            {
                name: TensorCount(buffer.element_bytes, **{kind: self.moved[name][kind] for kind in names})
                for name, buffer in self.buffers.items()
            }
        )

    @contextmanager
    def restored_on_error(self) -> Iterator[None]:
        """Put the content of all tensors back if the kernel fails."""
        views = [
            np.ctypeslib.as_array((ctypes.c_uint8 * (stop - start)).from_address(start))
            for start, stop in {(each.start, each.stop) for each in self.buffers.values() if each.writable}
            if stop > start
        ]
        saved = [view.copy() for view in views]
        try:
            yield
        except BaseException:
            for view, before in zip(views, saved, strict=True):
                view[:] = before
            raise
