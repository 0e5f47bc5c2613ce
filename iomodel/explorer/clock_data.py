"""The time model on the page: its code, and the figures of kernels and devices that it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from functools import lru_cache
from typing import Any, get_args

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counting.carried import Options, carried
from iomodel.counting.compiled_algorithm import Formulas
from iomodel.counting.kinds import FormulaKind
from iomodel.counting.options import check_options, structural
from iomodel.devices.device import Hardware, hardware
from iomodel.devices.rates import has_rates, rates, split_in_tf32
from iomodel.errors import IOModelError
from iomodel.explorer.call_kinds import MASKS, CallKind
from iomodel.explorer.transpile import Transpiler
from iomodel.explorer.used_definitions import used_definitions
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.execution import PIPELINED, Execution
from iomodel.nests.implementation import PACKED, Implementation
from iomodel.nests.residency import TF32_PRODUCTS, Residency
from iomodel.placement.limits import device_of
from iomodel.placement.placement import residency_formulas
from iomodel.solving.certificate import TIE
from iomodel.timing.parameters import DEFAULT
from iomodel.timing.work_at_point import Demands, demands, folds_alike
from iomodel.workloads.attention import Attention
from iomodel.workloads.call import ELEMENT_SIZE, DType
from iomodel.workloads.workload import stored


def number_source(function: ast.FunctionDef) -> str:
    r"""Write a compiled formula, a function of numbers, with JavaScript's own operators.

    >>> tree = ast.parse("def f(a, b):\n    t0 = (-(-(a)//(b)))\n    return (t0, Maximum(a, 2))")
    >>> number_source(tree.body[0])
    '(a,b)=>{const t0=(-Math.floor((-a)/b));return [t0,Math.max(a,2)];}'
    """
    names = ",".join(argument.arg for argument in function.args.args)
    lines = []
    for part in function.body:
        if isinstance(part, ast.Assign):
            lines.append(f"const {ast.unparse(part.targets[0])}={_number(part.value)};")
        elif isinstance(part, ast.Return) and part.value is not None:
            lines.append(f"return {_number(part.value)};")
    return f"({names})=>{{{''.join(lines)}}}"


NUMBER_CALLS = {"Maximum": "Math.max", "Minimum": "Math.min", "SumOfFloors": "floorSumNumber", "Ratio": "over"}


def _number(node: ast.expr) -> str:
    if isinstance(node, ast.Tuple):
        return f"[{','.join(map(_number, node.elts))}]"
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left), _number(node.right)
        if isinstance(node.op, ast.FloorDiv):
            return f"Math.floor({left}/{right})"
        if isinstance(node.op, ast.Pow):
            return f"({left}**{right})"
        return f"({left}{ {ast.Add: '+', ast.Sub: '-', ast.Mult: '*'}[type(node.op)] }{right})"
    if isinstance(node, ast.UnaryOp):
        return f"(-{_number(node.operand)})"
    if isinstance(node, ast.Call):
        return f"{NUMBER_CALLS[ast.unparse(node.func)]}({','.join(map(_number, node.args))})"
    if isinstance(node, ast.Name | ast.Constant):
        return ast.unparse(node)
    raise NotImplementedError(ast.unparse(node))


ROOTS: dict[str, tuple[str, ...]] = {
    "nests.division": ("Division",),
    "nests.implementation": ("ShippedTile",),
    "nests.residency": ("Residency",),
    "placement.front_ends": ("launched_first",),
    "placement.limits": ("DeviceLimits",),
    "placement.placement": ("Placement", "_layouts"),
    "placement.shipped_tile": ("shipped_tile",),
    "solving.question": ("free_options", "products"),
    "timing.clock": ("Clock",),
    "timing.kernel_work": ("KernelWork",),
    "timing.time_shares": ("time_shares",),
    "timing.totals": ("seconds_of", "dram_interval"),
    "timing.work_at_point": ("Demands", "FoldedKernel", "demand_of", "widened"),
}
"""The definitions of the time model that the page calls, by module."""
OUTSIDE = frozenset(
    {
        "Attention", "Window", "VarlenAttention", "Tabulated", "BlockMask", "Documents", "Shape", "as_attention",
        "ELEMENT_SIZE", "device_of", "_other_devices", "checked", "refused_launch", "InfeasibleError", "InputError",
        "_tiles", "_at_points", "_in_one_launch", "excess", "off_steps", "no_kernel",
    }
)  # fmt: skip
"""Names that the page has as its own, and those of branches that no call of the page takes: workloads of several
shapes, and errors about other devices."""


@lru_cache(maxsize=1)
def model_script() -> str:
    """Write the time model as JavaScript.

    >>> "class Clock" in model_script()
    True
    """
    roots = {f"iomodel.{name}": wanted for name, wanted in ROOTS.items()}
    return Transpiler(used_definitions(roots, OUTSIDE)).text()


@lru_cache(maxsize=64)
def _carried(algorithm: str) -> frozenset[tuple[FormulaKind, Options]]:
    """Return the kinds of formula of an algorithm that a release carries."""
    return frozenset(carried(find_algorithm(algorithm)))


class ClockData:
    """The figures of the time model for the calls of a page, each formula once."""

    def __init__(self, sign: str) -> None:
        self.sign = sign
        self.functions: dict[str, int] = {}
        self.calls: dict[str, Any] = {}

    def add(self, kind: CallKind) -> None:
        """Add a kind of call, if a release carries its formulas."""
        declared = find_algorithm(kind.algorithm)
        if kind.direction == "both" or declared.shipped is None:
            return
        key = FormulaKind(MASKS[kind.mask], kind.direction)
        chosen = {**dict(kind.switches), **({"packed": True} if kind.packed else {})}
        try:
            options = structural(check_options(declared, chosen, direction=kind.direction))
        except IOModelError:
            return
        if (key, options) not in _carried(kind.algorithm):
            return
        shared = declared.execution.get(kind.direction, PIPELINED)
        executions = {known.name: known.execution.get(kind.direction, shared) for known in declared.implementations}
        self.calls[kind.place] = {
            **self._work(demands(declared, key, options, shared)),
            "own": {
                name: self._work(demands(declared, key, options, execution))
                for name, execution in executions.items()
                if not folds_alike(execution, shared)
            },
            "placed": {
                layout.shipped: self._placed(declared, key, options, layout)
                for known in declared.implementations
                for layout in known.residency.get(kind.direction, ())
            },
        }

    def _work(self, work: Demands) -> dict[str, Any]:
        return {
            "kernels": [asdict(kernel) for kernel in work.kernels],
            "counts": self._formulas(work.counts),
            "sizes": self._formulas(work.sizes),
            "numbers": work.numbers,
            "tiles": work.tiles,
        }

    def _placed(self, declared: Algorithm, kind: FormulaKind, options: Options, layout: Residency) -> list[Any]:
        compiled = residency_formulas(declared, kind, options, layout)
        return [self._formulas(compiled.shared), self._formulas(compiled.registers), compiled.tiles]

    def _formulas(self, formulas: Formulas) -> str:
        """Return the name of the function of some formulas: the sign, and its number."""
        source = _source(formulas.compiled.stored_text)
        return f"{self.sign}{self.functions.setdefault(source, len(self.functions))}"


@lru_cache(maxsize=4096)  # layouts and masks share most formulas of a residency
def _source(text: str) -> str:
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    return number_source(function)


def clock_data(algorithms: Sequence[str], devices: Iterable[str]) -> dict[str, Any]:
    """Return the figures of the time model that are those of no single call, as plain data."""
    return {
        "point": list(Attention(q_len=1, head_dim=1).numbers),
        "elements": ELEMENT_SIZE,
        "parameters": DEFAULT.to_dict(),
        "tie": TIE,
        "algorithms": {name: _algorithm(find_algorithm(name)) for name in algorithms},
        "devices": {gpu.id or gpu.name: _device(gpu) for gpu in map(hardware, devices)},
    }


def _algorithm(declared: Algorithm) -> dict[str, Any]:
    return {
        "saved": dict(declared.saved),
        "searched": {**declared.searched, **PACKED} if declared.searched and not declared.approximates else {},
        "shared": _execution(PIPELINED),
        "execution": {direction: _execution(own) for direction, own in declared.execution.items()},
        "implementations": [_implementation(known) for known in declared.implementations],
    }


def _execution(execution: Execution) -> dict[str, Any]:
    skipped = {"cite", "serial", "spread"}
    return {part.name: getattr(execution, part.name) for part in fields(execution) if part.name not in skipped}


def _implementation(known: Implementation) -> dict[str, Any]:
    return {
        "name": known.name,
        "title": known.title,
        "superseded": known.superseded,
        "front_end": asdict(known.front_end),
        "searched": dict(known.searched),
        "execution": {direction: _execution(own) for direction, own in known.execution.items()},
        "residency": {direction: list(map(_residency, layouts)) for direction, layouts in known.residency.items()},
        "tiles": [{**asdict(row), "tiles": dict(row.tiles)} for row in known.tiles],
    }


def _residency(layout: Residency) -> dict[str, Any]:
    skipped = {"cite", "shared", "tensor", "phases"}
    return {
        **{part.name: getattr(layout, part.name) for part in fields(layout) if part.name not in skipped},
        "shipped": layout.shipped,
        "shrinks": layout.shrinks,
        "accumulates": layout.accumulates,
        "shared_axes": [[sorted(axes), dtype] for axes, dtype in layout.shared_axes],
        "operand_axes": sorted(map(sorted, layout.operand_axes)),
        "result_axes": sorted(map(sorted, layout.result_axes)),
    }


def _device(gpu: Hardware) -> dict[str, Any]:
    per_sm = gpu.memory.sram.per_sm
    data: dict[str, Any] = {
        "id": gpu.id or gpu.name,
        "name": gpu.name,
        "simulated": gpu.simulated,
        "architecture": gpu.architecture,
        "compute_capability": gpu.compute_capability,
        "sram_per_block": gpu.sram_per_block,
        "sram_per_sm": None if per_sm is None else int(per_sm.value),
        "rates": {},
        "split": {},
    }
    try:
        data["limits"] = asdict(device_of(gpu))
    except IOModelError as error:
        data["lacking"] = str(error)
    for dtype in get_args(DType):
        try:
            data["rates"][dtype] = asdict(rates(gpu, dtype))
        except IOModelError as error:
            data["rates"][dtype] = str(error)
        if stored(dtype) == "fp32" and has_rates(gpu, dtype) and has_rates(gpu, "tf32"):
            data["split"][dtype] = asdict(split_in_tf32(rates(gpu, dtype), rates(gpu, "tf32"), TF32_PRODUCTS))
    return data
