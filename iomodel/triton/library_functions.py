"""Functions of `libdevice` in Triton's interpreter, by NumPy; the interpreter has none of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from iomodel.errors import InputError

MODULES = ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice")
"""Modules whose functions kernels call."""
_erf, _erfc, _gamma, _lgamma = (np.vectorize(each) for each in (math.erf, math.erfc, math.gamma, math.lgamma))
FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        **{
            name: getattr(np, name)
            for name in (
                *("abs", "ceil", "floor", "trunc", "rint", "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2"),
                *("log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "fmod", "hypot", "copysign"),
            )
        },
        **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
        **dict.fromkeys(("rsqrt", "rsqrt_rn"), lambda x: 1 / np.sqrt(x)),
        **dict.fromkeys(("exp10", "fast_exp10f"), lambda x: np.power(10.0, x)),
        **dict.fromkeys(("pow", "fast_powf"), np.power),
        **dict.fromkeys(("div_rn", "fast_dividef"), np.divide),
        **dict.fromkeys(("fma", "fma_rn"), lambda x, y, z: x * y + z),
        "add_rn": np.add, "sub_rn": np.subtract, "mul_rn": np.multiply, "sqrt_rn": np.sqrt, "rcp_rn": np.reciprocal,
        "nearbyint": np.rint, "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
        "rcbrt": lambda x: 1 / np.cbrt(x), "erf": _erf, "erfc": _erfc, "tgamma": _gamma, "lgamma": _lgamma,
        "normcdf": lambda x: _erfc(-x / math.sqrt(2)) / 2,
        "fast_expf": np.exp, "fast_logf": np.log, "fast_log2f": np.log2, "fast_log10f": np.log10,
        "fast_sinf": np.sin, "fast_cosf": np.cos, "fast_tanf": np.tan, "fast_tanhf": np.tanh,
    }
)  # fmt: skip
"""Functions of floats by name."""
TESTS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"isnan": np.isnan, "isinf": np.isinf, "isfinited": np.isfinite, "finitef": np.isfinite, "signbit": np.signbit}
)
"""Functions whose result is a 32-bit integer."""
EXPONENTIALS = frozenset({"exp", "exp2", "exp10", "expm1", "fast_expf", "fast_exp10f"})
"""Functions that count as exponentials."""


def library_functions(semantic: Any, counts: Counter[str]) -> Iterator[tuple[ModuleType, str, Callable[..., Any]]]:
    """Iterate over the functions of each module of the library, with what runs in their place."""
    for path in MODULES:
        try:
            module = import_module(path)
        except ImportError:
            continue
        for name, own in vars(module).items():
            if callable(own) and not name.startswith("_") and getattr(own, "__module__", "").startswith(path):
                yield module, name, _stand_in(name, semantic, counts)


def _stand_in(name: str, semantic: Any, counts: Counter[str]) -> Callable[..., Any]:
    """Make a function of tensors; one without a stand-in raises InputError that names it."""
    from triton import language as tl
    from triton.runtime.interpreter import TensorHandle

    computed = FUNCTIONS.get(name) or TESTS.get(name)

    def called(*args: Any, **_: Any) -> Any:
        if computed is None:
            known = ", ".join(sorted({*FUNCTIONS, *TESTS}))
            raise InputError(f"kernel: libdevice.{name} called; allowed: {known}")
        operands = [semantic.to_tensor(each) for each in args]
        element = next((each.dtype for each in operands if each.type.is_block()), operands[0].dtype)
        if element not in (tl.float32, tl.float64):
            raise InputError(f"kernel: libdevice.{name} of {element} called; allowed: fp32 or fp64")
        data = np.asarray(computed(*(each.handle.data for each in operands)))
        counts["exps"] += data.size * (name in EXPONENTIALS)
        result = tl.int32 if name in TESTS else element
        kind = np.int32 if name in TESTS else operands[0].handle.data.dtype
        shape = next((each.shape for each in operands if each.type.is_block()), ())
        return tl.tensor(TensorHandle(data.astype(kind), result), tl.block_type(result, [*shape]) if shape else result)

    return called
