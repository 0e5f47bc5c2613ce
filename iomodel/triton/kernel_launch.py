"""Launches of Triton kernels: the function behind the decorators, its grid and its arguments by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from iomodel.common.validation import as_mapping, index
from iomodel.errors import InputError, shown

LAUNCH = ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu", "matrix_instr_nonkdim", "kpack")
"""Options of a launch that a kernel need not have as arguments."""


MOST = 1_000_000
"""Largest number of programs; the interpreter takes milliseconds for each."""


@dataclass(frozen=True)
class KernelLaunch:
    """A Python function with all arguments bound, and the numbers of programs."""

    name: str
    function: Callable[..., Any]
    grid: tuple[int, int, int]
    arguments: Mapping[str, Any]
    meta: Mapping[str, Any]


def launch(kernel: Any, grid: Any, args: Any, meta: Any) -> KernelLaunch:
    """Bind the arguments of a kernel; raise InputError for one that is missing or unknown, or a wrong grid."""
    from triton.runtime.autotuner import Autotuner, Heuristics

    function = innermost(kernel)
    parameters = inspect.signature(function).parameters
    name, names = function.__name__, list(parameters)
    bound = _positional(args, names, name)
    keywords = dict(as_mapping("meta", {} if meta is None else meta, "{'BLOCK_M': 64}"))
    bound |= keywords
    hooks: list[Callable[..., Any]] = []
    while kernel is not function:
        if isinstance(kernel, Autotuner):
            config = kernel.configs[0]
            bound |= {key: value for key, value in config.all_kwargs().items() if key not in bound}
            hooks += [config.pre_hook] if config.pre_hook else []
        elif isinstance(kernel, Heuristics):
            for key, rule in kernel.values.items():
                if key not in keywords:
                    bound[key] = _called(key, rule, dict(bound))
        kernel = kernel.fn
    for hook in hooks:
        _called("pre_hook", hook, bound)
    bound = {**{key: each.default for key, each in parameters.items() if each.default is not each.empty}, **bound}
    unknown = [key for key in bound if key not in parameters and key not in LAUNCH]
    missing = [key for key in names if key not in bound]
    if unknown:
        raise InputError(f"meta: {name} has no argument {shown(unknown[0])}; allowed: {', '.join(names)}")
    if missing:
        raise InputError(f"args: {name} needs {', '.join(missing)}; give them in args or meta")
    constants = [key for key in names if _is_constant(parameters[key].annotation)]
    kept = {key: plain(bound[key]) for key in bound if key in constants or key in LAUNCH}
    return KernelLaunch(name, function, _grid(grid, bound), {key: bound[key] for key in names}, kept)


def innermost(kernel: Any) -> Callable[..., Any]:
    """Return the Python function inside the decorators of Triton; raise InputError if there are none."""
    inner = kernel
    while not inspect.isfunction(inner):
        inner = getattr(inner, "fn", None)
        if inner is None:
            raise InputError(f"kernel: {shown(kernel)} given; allowed: a function under @triton.jit")
    if inner is kernel:
        raise InputError(f"kernel: the Python function {kernel.__name__} given; allowed: a function under @triton.jit")
    return inner


def plain(value: Any) -> Any:
    """Return a compile-time value as plain data; others by their text."""
    value = getattr(value, "value", value)
    return value if value is None or isinstance(value, bool | int | float | str) else shown(value)


def _positional(args: Any, names: list[str], kernel: str) -> dict[str, Any]:
    if isinstance(args, Mapping):
        return dict(args)
    if not isinstance(args, Sequence) or isinstance(args, str | bytes):
        raise InputError(f"args: {shown(args)} given; allowed: a list of arguments, or a mapping by name")
    if len(args) > len(names):
        raise InputError(f"args: {len(args)} given; allowed: at most {len(names)}, the arguments of {kernel}")
    return dict(zip(names, args, strict=False))


def _is_constant(annotation: Any) -> bool:
    return "constexpr" in (annotation if isinstance(annotation, str) else getattr(annotation, "__name__", ""))


def _called(name: str, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a function of the arguments; raise InputError if it fails."""
    try:
        return function(arguments)
    except Exception as error:
        raise InputError(f"{name}: {shown(function)} fails on the arguments: {shown(error)}") from error


def _grid(grid: Any, bound: Mapping[str, Any]) -> tuple[int, int, int]:
    sizes = _called("grid", grid, dict(bound)) if callable(grid) else grid
    sizes = (sizes,) if isinstance(sizes, int) else sizes
    allowed = f"allowed: up to three positive integers, at most {MOST:,} programs, or a function of the arguments"
    if not isinstance(sizes, Sequence) or isinstance(sizes, str | bytes) or not 1 <= len(sizes) <= 3:
        raise InputError(f"grid: {shown(sizes)} given; {allowed}")
    whole = []
    for size in sizes:
        number = index(size)
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise InputError(f"grid: {shown(size)} given; {allowed}")
        whole.append(number)
    if prod(whole) > MOST:
        raise InputError(f"grid: {shown(sizes)} given; {allowed}")
    x, y, z = (*whole, 1, 1)[:3]
    return x, y, z
