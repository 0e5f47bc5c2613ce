"""Attention in the trace of PyTorch's profiler: shapes of its operators, and times of the kernels that they launch."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from iomodel.algorithms import discovered
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.input_files import readable
from iomodel.errors import InputError, reason_of, shown
from iomodel.torch.operator_call import OperatorCall, TensorArgument

LARGEST = 1 << 29
"""Largest trace [B], unpacked."""
START = 1 << 20
"""Start of a file in which a trace is known by its list of events [B]; metadata come before the list."""
EVENTS, GZIP = b'"traceEvents"', b"\x1f\x8b"
US = 1e-6
KERNEL, OPERATOR = "kernel", "cpu_op"
LAUNCHES = ("cuda_runtime", "cuda_driver", "hip_runtime", "runtime")
TYPES = {
    "c10::BFloat16": ("bfloat16", 2),
    "c10::Half": ("float16", 2),
    "float": ("float32", 4),
    "c10::Float8_e4m3fn": ("float8_e4m3fn", 1),
    "double": ("float64", 8),
}
"""PyTorch's types and their sizes [B] by the names of C++ under "Input type"."""


class Places(NamedTuple):
    """Positions of the arguments of an operator: of the first of query, key and value, and of the others.

    `rows_first` tells batch, rows, heads from batch, heads, rows; of operators of FlashAttention itself, whose position
    of the causal switch is None, the switch is the first one, and the sides of a window follow it. `lengths` is the
    position of the lengths of packed sequences.
    """

    query: int
    causal: int | None
    dropout: int
    bias: int | None = None
    rows_first: bool = False
    lengths: int | None = None


DENSE = "aten::_scaled_dot_product_"
OPERATORS = {
    "aten::scaled_dot_product_attention": Places(0, 5, 4, 3),
    f"{DENSE}attention_math": Places(0, 5, 4, 3),
    f"{DENSE}fused_attention_overrideable": Places(0, 5, 4, 3),
    f"{DENSE}flash_attention": Places(0, 4, 3),
    f"{DENSE}efficient_attention": Places(0, 6, 5, 3),
    f"{DENSE}cudnn_attention": Places(0, 6, 5, 3),
    f"{DENSE}flash_attention_backward": Places(1, 11, 10),
    f"{DENSE}efficient_attention_backward": Places(1, 11, 9, 4),
    f"{DENSE}cudnn_attention_backward": Places(1, 14, 13, 8),
    "aten::_flash_attention_forward": Places(0, 8, 7, rows_first=True, lengths=3),
    "flash_attn::_flash_attn_forward": Places(0, None, 3, rows_first=True),
    "flash_attn::_flash_attn_backward": Places(1, None, 9, rows_first=True),
}
"""Operators of attention: aten/src/ATen/native/native_functions.yaml of PyTorch, and flash_attn_interface.py of
FlashAttention."""
VARLEN = ("flash_attn::_flash_attn_varlen", "aten::_efficient_attention_forward", "vllm::unified_attention")
"""Operators whose lengths are in a tensor, or with the engine, which a trace does not hold."""
SWITCHES = ("True", "False")


@dataclass(frozen=True)
class ProfiledCalls:
    """Calls of one operator with one shape.

    Attributes
    ----------
    call : OperatorCall
        The operator, with the names of the schema.
    kernel : str
        Symbol of the kernel with the most time.
    implementation : str or None
        Kernels on file with this symbol.
    count : int
        Calls [-].
    seconds : float
        Median of their times on the GPU [s].
    """

    call: OperatorCall
    kernel: str
    implementation: str | None
    count: int
    seconds: float


@dataclass(frozen=True)
class Profile:
    """Attention in a trace.

    Attributes
    ----------
    device : str or None
        Name of the first GPU, as its driver prints it.
    calls : tuple of ProfiledCalls
        Calls of attention, those with the most time first.
    gpu_seconds : float
        Time of all kernels [s].
    left_out : tuple of str
        Operators of attention that are not read, with the reason.
    """

    device: str | None
    calls: tuple[ProfiledCalls, ...]
    gpu_seconds: float
    left_out: tuple[str, ...]


class Span(NamedTuple):
    """An event on a thread of the host: begin and end [us], thread, name, and arguments."""

    begin: float
    end: float
    thread: tuple[Any, Any]
    name: str
    arguments: Mapping[str, Any]


def is_profile(path: str | Path) -> bool:
    """Check whether a file is a trace, by its start; False for a file that cannot be read."""
    try:
        return EVENTS in _content(path, START)
    except (OSError, EOFError, ValueError):
        return False


def read_profile(path: str | Path) -> Profile:
    """Read the calls of attention in a trace.

    Parameters
    ----------
    path : str or Path
        What `prof.export_chrome_trace` or `tensorboard_trace_handler` writes, packed by gzip or not; shapes need
        `torch.profiler.profile(record_shapes=True)`.

    Raises
    ------
    InputError
        The file cannot be read, is no trace, or has no call of attention with shapes and kernels.
    """
    try:
        content = _content(path, LARGEST + 1)
        if len(content) > LARGEST:
            raise InputError(f"trace: more than {LARGEST:,} B given; allowed: the trace of fewer steps")
        data = json.loads(content)
    except (OSError, EOFError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"trace: {shown(str(path))} cannot be read ({reason_of(error)}); allowed: a trace of torch.profiler"
        ) from None
    events = data.get("traceEvents") if isinstance(data, dict) else None
    if not isinstance(events, list):
        raise InputError("trace: no list traceEvents in the file; allowed: a trace of torch.profiler")
    return _profile(events, _device(data.get("deviceProperties")))


def _content(path: str | Path, most: int) -> bytes:
    file = readable(path)
    with file.open("rb") as plain:
        packed = plain.read(len(GZIP)) == GZIP
        plain.seek(0)
        if not packed:
            return plain.read(most)
        with gzip.open(plain) as unpacked:
            return unpacked.read(most)


def _device(properties: Any) -> str | None:
    first = properties[0] if isinstance(properties, list) and properties else None
    name = first.get("name") if isinstance(first, dict) else None
    return name if isinstance(name, str) and name else None


def _profile(events: list[Any], device: str | None) -> Profile:
    spans, kernels, launched = _sorted(events)
    outermost = _outermost(spans)
    if not outermost:
        raise InputError(f"trace: no operator of attention in the file; allowed: {', '.join(list(OPERATORS)[:4])}, ...")
    times: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    starts = {thread: [span.begin for span in own] for thread, own in outermost.items()}
    for kernel in kernels:
        thread, moment = launched.get(_key(kernel.arguments), (None, 0.0))
        own = outermost.get(thread, []) if thread is not None else []
        place = bisect_right(starts.get(thread, []), moment) - 1 if own else -1
        if place >= 0 and moment <= own[place].end:
            times[id(own[place])][kernel.name] += kernel.end - kernel.begin
    timed = [(span, times[id(span)]) for own in outermost.values() for span in own if id(span) in times]
    if not timed:
        raise InputError(
            "trace: no kernel of an operator of attention in the file; allowed: a trace with the GPU's activities, "
            "without graphs"
        )
    calls, left_out = _grouped(timed)
    return Profile(device, calls, US * sum(kernel.end - kernel.begin for kernel in kernels), left_out)


def _sorted(events: Iterable[Any]) -> tuple[list[Span], list[Span], dict[tuple[str, Any], tuple[Any, float]]]:
    """Return the operators of attention, the kernels, and the thread and moment of each launch."""
    operators, kernels = [], []
    launched: dict[tuple[str, Any], tuple[Any, float]] = {}
    for event in events:
        kind = event.get("cat") if isinstance(event, dict) else None
        if not isinstance(kind, str) or (span := _span(event)) is None:
            continue
        kind = kind.lower()
        if kind == KERNEL:
            kernels.append(span)
        elif kind == OPERATOR:
            if (number := _external(span.arguments)) is not None:
                launched.setdefault(("External id", number), (span.thread, span.begin))
            if span.name in OPERATORS or span.name.startswith(VARLEN):
                operators.append(span)
        elif kind in LAUNCHES and _whole(span.arguments.get("correlation")):
            launched["correlation", span.arguments["correlation"]] = span.thread, span.begin
    for kernel in kernels:
        key = _key(kernel.arguments)
        if key not in launched:
            launched[key] = launched.get(("External id", _external(kernel.arguments)), (None, 0.0))
    return operators, kernels, launched


def _span(event: Mapping[str, Any]) -> Span | None:
    begin, lasting, name = event.get("ts"), event.get("dur"), event.get("name")
    numbers = all(isinstance(each, int | float) and isfinite(each) and abs(each) < 1e18 for each in (begin, lasting))
    if not numbers or not isinstance(name, str) or lasting < 0:  # type: ignore[operator]
        return None
    arguments = event.get("args")
    thread = str(event.get("pid")), str(event.get("tid"))
    return Span(begin, begin + lasting, thread, name, arguments if isinstance(arguments, dict) else {})  # type: ignore[operator,arg-type]


def _external(arguments: Mapping[str, Any]) -> Any:
    number = arguments.get("External id", arguments.get("external id"))
    return number if _whole(number) else None


def _key(arguments: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the number that a kernel shares with its launch; without one, that of its operator."""
    number = arguments.get("correlation")
    return ("correlation", number) if _whole(number) else ("External id", _external(arguments))


def _whole(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _outermost(spans: Iterable[Span]) -> dict[tuple[Any, Any], list[Span]]:
    """List the operators of each thread that no other operator of attention encloses, in their order."""
    found: dict[tuple[Any, Any], list[Span]] = defaultdict(list)
    for span in sorted(spans, key=lambda each: (each.begin, -each.end)):
        own = found[span.thread]
        if not own or span.begin >= own[-1].end:
            own.append(span)
    return dict(found)


def _grouped(timed: list[tuple[Span, dict[str, float]]]) -> tuple[tuple[ProfiledCalls, ...], tuple[str, ...]]:
    """Put calls of one operator, shape and kernel together."""
    groups: dict[tuple[OperatorCall, str], list[float]] = defaultdict(list)
    refused: dict[str, None] = {}
    for span, kernels in timed:
        known = [name for name in kernels if _implementation(name)] or list(kernels)
        longest = max(known, key=kernels.__getitem__)
        try:
            groups[_call(span), longest].append(US * sum(kernels[name] for name in known))
        except InputError as error:
            refused[f"{shown(span.name)}: {error}"] = None
    calls = [
        ProfiledCalls(call, kernel, _implementation(kernel), len(seconds), median(seconds))
        for (call, kernel), seconds in groups.items()
    ]
    if not calls:
        raise InputError(f"trace: {next(iter(refused))}")
    return tuple(sorted(calls, key=lambda each: -each.count * each.seconds)), tuple(refused)


@lru_cache(maxsize=1024)
def _implementation(symbol: str) -> str | None:
    """Name the kernels on file that a symbol is of."""
    kernels = (each for declaration in discovered().values() for each in declaration.implementations)
    return next((each.name for each in kernels if any(part in symbol for part in each.symbols)), None)


def _call(span: Span) -> OperatorCall:
    """Convert an operator of a trace to a call with the names of the schema, heads before rows."""
    places = OPERATORS.get(span.name)
    shapes, kinds = _listed(span.arguments, "Input Dims"), _listed(span.arguments, "Input type")
    if places is None or (places.lengths is not None and _at(shapes, places.lengths)):
        raise InputError("lengths are in a tensor, which a trace does not hold; allowed: a batch of one length")
    tensors = [_tensor(shapes, kinds, places.query + place, places.rows_first) for place in range(3)]
    inputs = dict(zip(("query", "key", "value"), tensors, strict=True))
    if places.bias is not None and _at(shapes, places.bias):
        inputs["attn_bias"] = _tensor(shapes, kinds, places.bias, False)
    stated = _listed(span.arguments, "Concrete Inputs", needed=False)
    arguments: dict[str, Any] = {"dropout_p": _number(_at(stated, places.dropout))}
    if places.causal is None:
        arguments["masks"] = ((1, _mask(stated)),)
    else:
        arguments["is_causal"] = _at(stated, places.causal) == "True"
    name = span.name if not places.rows_first else f"{DENSE}flash_attention{'_backward' * bool(places.query)}"
    return OperatorCall(name.replace("::", "."), inputs, (), arguments=arguments)


def _mask(stated: list[Any]) -> Any:
    """Return the mask of an operator of FlashAttention, which ends with the last key."""
    place = next((place for place, value in enumerate(stated) if value in SWITCHES), len(stated))
    left, right = (int(_number(_at(stated, place + side), -1.0)) for side in (1, 2))
    right = 0 if _at(stated, place) == "True" else right
    if left < 0:
        return "causal" if right == 0 else "full" if right < 0 else FrozenDict(left=None, right=right)
    return FrozenDict(left=left, right=None if right < 0 else right)


def _listed(arguments: Mapping[str, Any], name: str, *, needed: bool = True) -> list[Any]:
    value = arguments.get(name)
    if isinstance(value, list):
        return value
    if needed:
        raise InputError("no shapes of its inputs in the file; allowed: torch.profiler.profile(record_shapes=True)")
    return []


def _at(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else None


def _number(text: Any, otherwise: float = 0.0) -> float:
    try:
        number = float(text)
    except (TypeError, ValueError, OverflowError):
        return otherwise
    return number if isfinite(number) else otherwise


def _tensor(shapes: list[Any], kinds: list[Any], place: int, rows_first: bool) -> TensorArgument:
    shape, kind = _at(shapes, place), _at(kinds, place)
    if not isinstance(shape, list) or not shape or not all(_whole(length) for length in shape):
        raise InputError(f"input {place} has the shape {shown(shape)}; allowed: the lengths of a tensor")
    dtype, size = TYPES.get(kind, (str(kind)[:40], 1)) if isinstance(kind, str) else ("unknown", 1)
    axes = tuple(shape)
    if rows_first and len(axes) == 4:
        axes = (axes[0], axes[2], axes[1], axes[3])
    return TensorArgument(axes, dtype, size)
