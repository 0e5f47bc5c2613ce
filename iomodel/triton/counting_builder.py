"""Builder of Triton's interpreter that counts what a kernel loads, stores, multiplies and exponentiates."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from iomodel.triton.kernel_memory import KernelMemory

ORIGIN = "iomodel.argument"
"""Attribute of a handle of pointers: the argument that they were computed from."""
SAME_ORIGIN = (
    "addptr", "splat", "unsplat", "broadcast", "expand_dims", "reshape", "trans", "bitcast", "ptr_to_int", "int_to_ptr",
)  # fmt: skip
"""Operations whose result points into the tensor of their pointer operand."""


def counting_builder(memory: KernelMemory, counts: Counter[str]) -> Any:
    """Make a builder that counts elements in `memory`, and `dots`, `flops` and `exps` in `counts`."""
    from triton.runtime.interpreter import InterpreterBuilder, InterpreterOptions

    class CountingBuilder(InterpreterBuilder):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.options = InterpreterOptions(sanitize_overflow=False)  # the checks take a third of the time

        def create_masked_load(self, ptrs: Any, mask: Any, other: Any, cache_policy: Any, is_volatile: Any) -> Any:
            memory.access("loads", ptrs.data, mask.data, origin(ptrs))
            return super().create_masked_load(ptrs, mask, other, cache_policy, is_volatile)

        def create_masked_store(self, ptrs: Any, value: Any, mask: Any, cache_policy: Any) -> Any:
            memory.access("stores", ptrs.data, mask.data, origin(ptrs))
            return super().create_masked_store(ptrs, value, mask, cache_policy)

        def create_atomic_rmw(self, operation: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
            memory.access("atomics", ptr.data, mask.data, origin(ptr))
            return super().create_atomic_rmw(operation, ptr, val, mask, sem, scope)

        def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
            memory.access("atomics", ptr.data, np.ones_like(ptr.data, dtype=bool), origin(ptr))
            return super().create_atomic_cas(ptr, cmp, val, sem, scope)

        def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
            multiplied(d.data.size, a.data.shape[-1])
            return super().create_dot(a, b, d, input_precision, max_num_imprecise_acc)

        def create_dot_scaled(self, lhs: Any, *others: Any) -> Any:
            result = super().create_dot_scaled(lhs, *others)
            packed = str(others[1]).endswith("E2M1") and others[6]
            multiplied(result.data.size, lhs.data.shape[-1] * (2 if packed else 1))
            return result

        def create_exp(self, arg: Any) -> Any:
            counts["exps"] += arg.data.size
            return super().create_exp(arg)

        def create_exp2(self, arg: Any) -> Any:
            counts["exps"] += arg.data.size
            return super().create_exp2(arg)

        def create_make_tensor_descriptor(self, base: Any, *others: Any) -> Any:
            descriptor = super().create_make_tensor_descriptor(base, *others)
            materialize = descriptor.materialize_pointers

            def pointers(offsets: Any) -> Any:
                handle, mask = materialize(offsets)
                return marked(handle, base), mask

            descriptor.materialize_pointers = pointers
            return descriptor

    def multiplied(results: int, contracted: int) -> None:
        counts["dots"] += 1
        counts["flops"] += 2 * results * contracted

    for name in SAME_ORIGIN:
        setattr(CountingBuilder, f"create_{name}", _keeping(getattr(InterpreterBuilder, f"create_{name}")))
    return CountingBuilder()


def origin(handle: Any) -> str | None:
    """Return the argument that pointers were computed from, if it is known."""
    name: str | None = handle.attr.get(ORIGIN)
    return name


def marked(handle: Any, source: Any) -> Any:
    """Mark a handle with the origin of another."""
    if ORIGIN in source.attr:
        handle.attr[ORIGIN] = source.attr[ORIGIN]
    return handle


def _keeping(create: Any) -> Any:
    """Wrap an operation so that its result has the origin of its pointer operand."""

    def created(self: Any, *operands: Any) -> Any:
        result = create(self, *operands)
        for operand in operands:
            if hasattr(operand, "attr") and ORIGIN in operand.attr:
                return marked(result, operand)
        return result

    return created
