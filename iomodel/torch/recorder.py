"""Recording of PyTorch's operators as they run; only this module's functions import torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any

from iomodel.common.frozen_dict import FrozenDict
from iomodel.torch.attention_calls import FLEX
from iomodel.torch.flex_masks import visited_blocks
from iomodel.torch.operator_call import OperatorCall, TensorArgument
from iomodel.workloads.masks.block_mask import BlockMask

ALLOCATIONS = frozenset({
    "aten.empty", "aten.empty_like", "aten.empty_strided", "aten.empty_permuted", "aten.new_empty",
    "aten.new_empty_strided",
})  # fmt: skip
"""Operators that move nothing."""
KEPT = ("aten.linear", "aten.scaled_dot_product_attention")
"""Composite operators that are counted as a whole where PyTorch leaves them whole, as in inference mode."""


UNCOMPILED = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"
"""The switch of FlexAttention that runs it without its compiler, which refuses to run under a mode."""


class Recorder:
    """Modes of PyTorch that see every operator and the module that runs it, entered and left together."""

    def __init__(self, record: Callable[[OperatorCall], None]) -> None:
        from torch.utils.module_tracker import ModuleTracker

        self.modules = ModuleTracker()
        self.record = record
        self.entered: list[Any] = []
        self.compiles: bool | None = None
        """The switch of FlexAttention before; its compiler refuses to run under a mode."""

    def __enter__(self) -> None:
        from torch.nn.attention import flex_attention as flex

        self.compiles = getattr(flex, UNCOMPILED, None)
        if self.compiles is not None:
            setattr(flex, UNCOMPILED, True)
        dispatch, functions = _modes(self)
        for each in (self.modules, dispatch, functions):
            each.__enter__()
            self.entered.append(each)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        from torch.nn.attention import flex_attention as flex

        if self.compiles is not None:
            setattr(flex, UNCOMPILED, self.compiles)
        while self.entered:
            self.entered.pop().__exit__(kind, error, traceback)

    def see(self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> None:
        """Record a call of an operator, unless it only makes views or allocates."""
        import torch
        from torch.utils._pytree import tree_flatten

        named = dict(_named(function, args, kwargs))
        tensors = {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}
        written = tuple(name for name in tensors if name.split(".")[0] in _mutated(function))
        storages = {_storage(tensor) for tensor in tensors.values()}
        results = [value for value in tree_flatten(out)[0] if isinstance(value, torch.Tensor)]
        new = [tensor for tensor in results if _storage(tensor) not in storages]
        operator = _name(function)
        if operator in ALLOCATIONS or not (new or written):
            return
        arguments: dict[str, Any] = {
            name: value
            for name, value in named.items()
            if isinstance(value, bool | int | float | str) and "." not in name
        }
        if "attention" in operator:
            arguments["saved"] = any(tensor.requires_grad for tensor in tensors.values()) and torch.is_grad_enabled()
            if operator == FLEX:
                arguments["masks"] = _masks(args[4])
        parents = self.modules.parents - {"Global"}
        self.record(
            OperatorCall(
                operator=operator,
                inputs=FrozenDict({name: argument_of(tensor) for name, tensor in tensors.items()}),
                outputs=tuple(map(argument_of, new)),
                written=written,
                arguments=FrozenDict(arguments),
                module=max(parents, key=lambda name: (name.count("."), name), default=""),
                backward=self.modules.is_bw,
                pointwise=torch.Tag.pointwise in getattr(function, "tags", ()),
            )
        )


def argument_of(tensor: Any) -> TensorArgument:
    """Describe a tensor of PyTorch."""
    name = str(tensor.dtype).removeprefix("torch.")
    return TensorArgument(tuple(map(int, tensor.shape)), name, tensor.element_size())


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def _name(function: Any) -> str:
    """Return the name of an operator with its namespace, without its overload."""
    schema = getattr(function, "_schema", None)
    return f"higher_order.{function.name()}" if schema is None else schema.name.replace("::", ".")


def _mutated(function: Any) -> frozenset[str]:
    """Return the names of the arguments that an operator writes."""
    schema = getattr(function, "_schema", None)
    if schema is None:
        return frozenset()
    return frozenset(each.name for each in schema.arguments if each.alias_info is not None and each.alias_info.is_write)


def _named(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name the arguments as the schema does; the items of a list are numbered."""
    schema = getattr(function, "_schema", None)
    names = ("query", "key", "value") if schema is None else tuple(each.name for each in schema.arguments)
    for name, value in (*zip(names, args, strict=False), *kwargs.items()):
        if isinstance(value, list | tuple):
            yield from ((f"{name}.{place}", item) for place, item in enumerate(value) if item is not None)
        elif value is not None:
            yield name, value


def _modes(recorder: Recorder) -> tuple[Any, Any]:
    """Make the modes of PyTorch that call a recorder."""
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Operators(TorchDispatchMode):  # type: ignore[misc]
        """Sees every operator that reaches a kernel."""

        supports_higher_order_operators = True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            composite = isinstance(func, torch._ops.OpOverload) and _name(func) not in KEPT
            if composite and func.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd):
                with self:
                    parts = func.decompose(*args, **kwargs)
                if parts is not NotImplemented:
                    return parts
            out = func(*args, **kwargs)
            recorder.see(func, args, kwargs, out)
            return out

    class Functions(TorchFunctionMode):  # type: ignore[misc]
        """Keeps attention on the meta device as one operator, which PyTorch would split there."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func is torch.nn.functional.scaled_dot_product_attention and _fused(args, kwargs):
                return _fused_call(*args, **kwargs)
            if func is torch.nn.functional.dropout:
                return _dropout(*args, **kwargs)
            return func(*args, **kwargs)

    return Operators(), Functions()


def _fused(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Check whether a fused kernel is allowed for an attention call on the meta device."""
    import torch

    query = args[0] if args else kwargs.get("query")
    backends = torch.backends.cuda
    allowed = backends.flash_sdp_enabled() or backends.mem_efficient_sdp_enabled() or backends.cudnn_sdp_enabled()
    return allowed and isinstance(query, torch.Tensor) and query.is_meta and query.dim() == 4


def _fused_call(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,  # noqa: ARG001 - follows from the shapes
) -> Any:
    """Run the one operator that stands for a fused kernel; it has a gradient and computes nothing here."""
    return _fused_operator()(query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)[0]


def _fused_operator() -> Any:
    """Return an attention operator that has a gradient and runs on the meta device."""
    import torch

    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


def _dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Apply dropout; on the meta device by the one operator that a GPU runs, which stores a mask."""
    import torch

    if training and p and not inplace and input.is_meta:
        return torch.native_dropout(input, p, True)[0]
    return torch.nn.functional.dropout(input, p, training, inplace)


def _masks(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the plain masks of an operator of FlexAttention, with the number of heads of each."""
    masks = visited_blocks(parts)
    if len(masks) == 1 and masks[0][1].blocks.all():
        return ((1, "full"),)
    return tuple((times, _plain(mask)) for times, mask in masks)


def _plain(mask: BlockMask) -> FrozenDict[str, Any]:
    blocks = tuple(tuple(map(int, row)) for row in mask.blocks)
    return FrozenDict(blocks=blocks, block_q=mask.block_q, block_kv=mask.block_kv)
