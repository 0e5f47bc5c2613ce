"""Recording of PyTorch's operators as they run; only this module's functions import torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import TracebackType
from typing import Any, NamedTuple
from weakref import ref

from iomodel.common.frozen_dict import FrozenDict
from iomodel.torch.attention_calls import FLEX
from iomodel.torch.flex_masks import visited_blocks
from iomodel.torch.operator_call import OperatorCall, TensorArgument, checked_name, unchecked
from iomodel.torch.operator_work import multiplying
from iomodel.torch.recurrent import GATES, LSTM
from iomodel.torch.regions import covered
from iomodel.workloads.masks.block_mask import BlockMask

ALLOCATIONS = frozenset({
    "aten.empty", "aten.empty_like", "aten.empty_strided", "aten.empty_permuted", "aten.new_empty",
    "aten.new_empty_strided",
})  # fmt: skip
"""Operators that move nothing."""
KEPT = ("aten.linear", "aten.scaled_dot_product_attention")
"""Composite operators that are counted as a whole where PyTorch leaves them whole, as in inference mode."""


SCALARS = bool, int, float, str
"""Types of the arguments that are recorded, beside lists."""
UNCOMPILED = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"
"""The switch of FlexAttention that runs it without its compiler, which refuses to run under a mode."""


class Storages:
    """Numbers of the storages that a program touches, each with its origin: before the recording, or inside it."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[Any, int, bool]] = {}
        self.views: dict[int | None, list[Any]] = {}

    def place(self, tensor: Any, outside: bool) -> tuple[int, bool]:
        """Return the number of the storage of a tensor, and whether it was made before the recording."""
        storage = tensor.untyped_storage()
        entry = self.known.get(storage._cdata)
        if entry is None:
            from torch.multiprocessing.reductions import StorageWeakRef

            # The weak reference keeps the address from being used again.
            entry = self.known[storage._cdata] = StorageWeakRef(storage), len(self.known), outside
        return entry[1], entry[2]

    def note(self, tensor: Any, number: int | None) -> None:
        """Note a tensor in a storage that was made inside the recording."""
        self.views.setdefault(number, []).append(ref(tensor))

    def alive(self) -> dict[int, int | None]:
        """Return the numbers of the storages that something still refers to, with the bytes that live views cover [B].

        None stands for a whole storage: one that autograd keeps, or that was made before the recording.
        """
        numbers = [number for reference, number, _ in self.known.values() if not reference.expired()]
        return {number: self._covered(number) for number in numbers}

    def _covered(self, number: int) -> int | None:
        live = [tensor for view in self.views.get(number, ()) if (tensor := view()) is not None]
        bases = {id(tensor._base) for tensor in live}  # a view keeps its base alive, which nothing else may hold
        views = [self.argument(tensor) for tensor in live if id(tensor) not in bases]
        return covered(views) if views else None

    def argument(self, tensor: Any, outside: bool = False) -> TensorArgument:
        """Describe a tensor of PyTorch, with its place."""
        number, before = self.place(tensor, outside)
        return unchecked(
            TensorArgument,
            {
                "shape": tuple(map(int, tensor.shape)),
                "dtype": _type_name(tensor.dtype),
                "element_bytes": tensor.element_size(),
                "strides": None if tensor.is_contiguous() else tuple(map(int, tensor.stride())),
                "offset": int(tensor.storage_offset()),
                "storage": number,
                "outside": before,
            },
        )


class Described(NamedTuple):
    """Facts of an operator that are the same for all of its calls.

    A `view` returns its input's storage alone; `switch` is that of PyTorch that lets its products run in TF32.
    """

    name: str
    arguments: tuple[str, ...]
    mutated: frozenset[str]
    pointwise: bool
    composite: bool
    view: bool
    switch: str


@lru_cache(maxsize=1 << 12)
def described(function: Any) -> Described:
    """Read the facts of an operator off its schema."""
    import torch

    schema = getattr(function, "_schema", None)
    if schema is None:
        name, named = f"higher_order.{function.name()}", ("query", "key", "value")
        return Described(name, named, frozenset(), pointwise=False, composite=False, view=False, switch="")
    name = checked_name("operator", schema.name.replace("::", "."))
    written = frozenset(
        each.name for each in schema.arguments if each.alias_info is not None and each.alias_info.is_write
    )
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    whole = isinstance(function, torch._ops.OpOverload) and name not in KEPT
    composite = whole and function.has_kernel_for_dispatch_key(key)
    aliased = bool(schema.returns) and all(each.alias_info is not None for each in schema.returns)
    declared = multiplying(name)
    return Described(
        name,
        tuple(each.name for each in schema.arguments),
        written,
        torch.Tag.pointwise in getattr(function, "tags", ()),
        composite,
        aliased and not written and not composite,
        "" if declared is None else declared.switch,
    )


class Recorder:
    """Modes of PyTorch that see every operator and the module that runs it, entered and left together."""

    def __init__(self, record: Callable[[OperatorCall], None], storages: Storages) -> None:
        from torch.utils.module_tracker import ModuleTracker

        self.modules = ModuleTracker()
        self.record = record
        self.storages = storages
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

    def see(self, facts: Described, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Any) -> None:
        """Record a call of an operator, unless it only makes views or allocates."""
        import torch

        storages = self.storages
        if facts.view:
            for tensor in _tensors(out):
                number, outside = storages.place(tensor, outside=True)
                if not outside:
                    storages.note(tensor, number)
            return
        tensors: dict[str, Any] = {}
        arguments: dict[str, Any] = {}
        for name, value in (*zip(facts.arguments, args, strict=False), *kwargs.items()):
            if isinstance(value, torch.Tensor):
                tensors[name] = value
            elif isinstance(value, SCALARS):
                arguments[name] = value
            elif isinstance(value, list | tuple):
                _sort_items(name, value, tensors, arguments)
        inputs = {name: storages.argument(tensor, outside=True) for name, tensor in tensors.items()}
        places = {tensor.storage for tensor in inputs.values()}
        new = []
        for tensor in _tensors(out):
            result = storages.argument(tensor)
            if not result.outside:
                storages.note(tensor, result.storage)
            if result.storage not in places:
                new.append(result)
        written = tuple(name for name in tensors if name.split(".")[0] in facts.mutated) if facts.mutated else ()
        if not (new or written) or facts.name in ALLOCATIONS:
            return
        if "attention" in facts.name:
            arguments["saved"] = any(tensor.requires_grad for tensor in tensors.values()) and torch.is_grad_enabled()
            if facts.name == FLEX:
                arguments["masks"] = _masks(args[4])
        if facts.switch and new and new[0].dtype == "float32" and _allows_tf32(facts.switch):
            arguments["tf32"] = True
        self.record(
            unchecked(
                OperatorCall,
                {
                    "operator": facts.name,
                    "inputs": FrozenDict(inputs),
                    "outputs": tuple(new),
                    "written": written,
                    "arguments": FrozenDict(arguments),
                    "module": _innermost(frozenset(self.modules.parents)),
                    "backward": self.modules.is_bw,
                    "pointwise": facts.pointwise,
                },
            )
        )


@lru_cache(maxsize=1 << 10)
def _innermost(modules: frozenset[str]) -> str:
    """Return the innermost of the modules that run; an empty name outside all of them."""
    name = max(modules - {"Global"}, key=lambda name: (name.count("."), name), default="")
    return checked_name("module", name)


@lru_cache(maxsize=64)
def _type_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _tensors(out: Any) -> Iterator[Any]:
    """List the tensors in the results of an operator."""
    import torch

    if isinstance(out, torch.Tensor):
        yield out
    elif isinstance(out, tuple | list):
        for each in out:
            yield from _tensors(each)


def _allows_tf32(switch: str) -> bool:
    """Check whether a switch of PyTorch lets products of fp32 run in TF32."""
    import torch

    if switch == "cudnn":
        return bool(torch.backends.cudnn.allow_tf32)
    return bool(torch.get_float32_matmul_precision() != "highest")


def _sort_items(
    name: str, items: list[Any] | tuple[Any, ...], tensors: dict[str, Any], arguments: dict[str, Any]
) -> None:
    """Add a list to the arguments of a call if it has whole numbers alone, else its tensors by their places."""
    import torch

    if items and all(type(item) in (int, bool) for item in items):
        arguments[name] = tuple(items)
        return
    for place, item in enumerate(items):
        if isinstance(item, torch.Tensor):
            tensors[f"{name}.{place}"] = item
        elif isinstance(item, tuple):
            arguments[f"{name}.{place}"] = item


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
            facts = described(func)
            if facts.composite:
                with self:
                    parts = func.decompose(*args, **kwargs)
                if parts is not NotImplemented:
                    return parts
            out = func(*args, **kwargs)
            recorder.see(facts, args, kwargs, out)
            return out

    recurrent = {torch.rnn_relu: 0, torch.rnn_tanh: 1, torch.lstm: 2, torch.gru: 3}
    attention, dropout = torch.nn.functional.scaled_dot_product_attention, torch.nn.functional.dropout

    class Functions(TorchFunctionMode):  # type: ignore[misc]
        """Keeps attention and recurrent layers on the meta device as one operator, which PyTorch would split there."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func is attention and _fused(args, kwargs):
                return _fused_call(*args, **kwargs)
            if func is dropout:
                return _dropout(*args, **kwargs)
            if func in recurrent and _is_one_call(args):
                return _recurrent_call(recurrent[func], *args, **kwargs)
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


def _is_one_call(args: tuple[Any, ...]) -> bool:
    """Check whether a recurrent layer on the meta device runs as one call on a GPU, and needs no gradient here."""
    import torch

    if len(args) != 9 or not isinstance(args[2], list | tuple) or isinstance(args[3], list | tuple):
        return False  # a packed sequence
    needed = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (args[0], *args[2]))
    return args[0].is_meta and not needed


def _recurrent_call(mode: int, input: Any, state: Any, weights: Any, *settings: Any) -> Any:
    """Run the one operator that stands for cuDNN's recurrent layers; the meta device would unroll them in time.

    The `settings` are those of ``torch.lstm``, in its order.
    """
    import torch

    has_biases, layers, dropout, train, bidirectional, batch_first = settings
    hidden, cell = state if mode == LSTM else (state, None)
    width, projected = weights[1].shape[1], hidden.shape[-1]
    size = weights[0].shape[0] // GATES[mode]
    out = torch.ops.aten._cudnn_rnn(
        input, weights, 4 if has_biases else 2, None, hidden, cell, mode, size, projected if width != size else 0,
        layers, batch_first, dropout, train, bidirectional, [], None,
    )  # fmt: skip
    return out[:3] if mode == LSTM else out[:2]


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
