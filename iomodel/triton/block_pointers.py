"""Block pointers (`tl.make_block_ptr`) for versions of Triton that no longer have them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from iomodel.triton.counting_builder import marked


@dataclass(frozen=True)
class BlockPointer:
    """A block of a strided tensor, as `tl.make_block_ptr` describes it."""

    base: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offsets: tuple[int, ...]
    block_shape: tuple[int, ...]

    @property
    def dtype(self) -> Any:
        """The type of a pointer to one element."""
        return self.base.dtype

    @property
    def type(self) -> Any:
        """The type of a pointer to one element."""
        return self.base.dtype

    def moved(self, offsets: Any) -> BlockPointer:
        """Advance the block."""
        pairs = zip(self.offsets, map(_whole, offsets), strict=True)
        return replace(self, offsets=tuple(old + new for old, new in pairs))

    def pointers(self, boundary_check: Any) -> tuple[Any, Any]:
        """Compute the pointers of all elements, and the mask of the checked axes."""
        from triton import language as tl
        from triton.runtime.interpreter import TensorHandle

        element = max(1, self.dtype.element_ty.primitive_bitwidth // 8)
        checked = {int(_whole(axis)) for axis in boundary_check}
        places = np.zeros(self.block_shape, dtype=np.int64)
        mask = np.ones(self.block_shape, dtype=bool)
        for axis, width in enumerate(self.block_shape):
            index = (self.offsets[axis] + np.arange(width)).reshape([-1 if i == axis else 1 for i in range(mask.ndim)])
            places = places + index * self.strides[axis]
            if axis in checked:
                mask = mask & (index >= 0) & (index < self.shape[axis])
        first = np.uint64(self.base.handle.data.item())
        handle = TensorHandle(first + (places * element).astype(np.uint64), self.dtype)
        return marked(handle, self.base.handle), TensorHandle(mask, tl.int1)


def patched_words(builder: Any, words: dict[str, Any]) -> dict[str, Any]:
    """Return `load`, `store`, `advance` and `make_block_ptr` of the language with block pointers."""
    from triton import language as tl
    from triton.runtime.interpreter import TensorHandle, _get_np_dtype

    def make_block_ptr(base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any = None) -> Any:  # noqa: ARG001 - the layout changes no count
        sizes = (tuple(map(_whole, each)) for each in (shape, strides, offsets, block_shape))
        return BlockPointer(base, *sizes)

    def advance(base: Any, offsets: Any) -> Any:
        return base.moved(offsets)

    def load(pointer: Any, *args: Any, boundary_check: Any = (), padding_option: Any = "", **options: Any) -> Any:
        if not isinstance(pointer, BlockPointer):
            return words["load"](pointer, *args, **options)
        handle, mask = pointer.pointers(boundary_check)
        kind = pointer.dtype.element_ty
        padding = np.nan if getattr(padding_option, "value", padding_option) == "nan" else 0
        other = TensorHandle(np.full(mask.data.shape, padding).astype(_get_np_dtype(kind)), kind)
        loaded = builder.create_masked_load(handle, mask, other, None, False)
        return tl.tensor(loaded, tl.block_type(kind, list(pointer.block_shape)))

    def store(pointer: Any, value: Any, *args: Any, boundary_check: Any = (), **options: Any) -> Any:
        if not isinstance(pointer, BlockPointer):
            return words["store"](pointer, value, *args, **options)
        handle, mask = pointer.pointers(boundary_check)
        kind = pointer.dtype.element_ty
        value = words["broadcast_to"](words["cast"](words["to_tensor"](value), kind), pointer.block_shape)
        return builder.create_masked_store(handle, value.handle, mask, None)

    return {"make_block_ptr": make_block_ptr, "advance": advance, "load": load, "store": store}


def _whole(value: Any) -> int:
    """Return an integer of the language as a Python int."""
    return int(getattr(value, "value", value).__index__())
