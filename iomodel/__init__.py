"""Symbolic IO complexity of attention: exact HBM traffic and proven tiles.

Every public name is imported when it is first asked for: `import iomodel` by itself loads none of the libraries.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iomodel.algorithms import list_algorithms as list_algorithms
    from iomodel.block_mask import BlockMask as BlockMask
    from iomodel.bounds import Bound as Bound
    from iomodel.bounds import lower_bounds as lower_bounds
    from iomodel.calibrate import calibrate as calibrate
    from iomodel.calibration.result import Calibration as Calibration
    from iomodel.check import Check as Check
    from iomodel.check import check as check
    from iomodel.compare import Comparison as Comparison
    from iomodel.compare import compare as compare
    from iomodel.compare_time import TimeComparison as TimeComparison
    from iomodel.cost import Cost as Cost
    from iomodel.cost import cost as cost
    from iomodel.cost_array import CostArray as CostArray
    from iomodel.cost_array import cost_array as cost_array
    from iomodel.crossings.result import Crossover as Crossover
    from iomodel.crossings.result import Crossovers as Crossovers
    from iomodel.crossovers import crossovers as crossovers
    from iomodel.decoder.layout import Layout as Layout
    from iomodel.decoder.result import StepTime as StepTime
    from iomodel.decoder.search import crossover_context as crossover_context
    from iomodel.decoder.step import step as step
    from iomodel.diagnose import Diagnosis as Diagnosis
    from iomodel.diagnose import diagnose as diagnose
    from iomodel.documents import Documents as Documents
    from iomodel.errors import InfeasibleError as InfeasibleError
    from iomodel.errors import InputError as InputError
    from iomodel.errors import IOModelError as IOModelError
    from iomodel.errors import SpecError as SpecError
    from iomodel.errors import UnknownNameError as UnknownNameError
    from iomodel.estimate import estimate as estimate
    from iomodel.estimate_result import Estimate as Estimate
    from iomodel.evaluate import evaluate as evaluate
    from iomodel.execution import Execution as Execution
    from iomodel.explore import explore as explore
    from iomodel.expressions import Expressions as Expressions
    from iomodel.expressions import expressions as expressions
    from iomodel.fleet import fleet as fleet
    from iomodel.hardware import Hardware as Hardware
    from iomodel.hardware import hardware as hardware
    from iomodel.hardware import list_hardware as list_hardware
    from iomodel.inverse import crossover as crossover
    from iomodel.inverse import least_sram as least_sram
    from iomodel.judge import Judgement as Judgement
    from iomodel.judge import judge as judge
    from iomodel.linear.cost import linear_cost as linear_cost
    from iomodel.linear.layer import Linear as Linear
    from iomodel.linear.result import LinearCost as LinearCost
    from iomodel.many.result import Solutions as Solutions
    from iomodel.model import list_models as list_models
    from iomodel.model import model as model
    from iomodel.models.spec import ModelSpec as ModelSpec
    from iomodel.optimum import Optimum as Optimum
    from iomodel.optimum import optimum as optimum
    from iomodel.parameters import Parameters as Parameters
    from iomodel.plan import plan as plan
    from iomodel.planning.fleet_result import Fleet as Fleet
    from iomodel.planning.result import Plan as Plan
    from iomodel.residency import Residency as Residency
    from iomodel.solution import Solution as Solution
    from iomodel.solve import solve as solve
    from iomodel.solve_many import solve_many as solve_many
    from iomodel.sweep import sweep as sweep
    from iomodel.trace import Trace as Trace
    from iomodel.trace import trace as trace
    from iomodel.workload import Attention as Attention
    from iomodel.workload import VarlenAttention as VarlenAttention
    from iomodel.workload import Window as Window

_PUBLIC = {
    "algorithms": ("list_algorithms",),
    "block_mask": ("BlockMask",),
    "bounds": ("Bound", "lower_bounds"),
    "calibrate": ("calibrate",),
    "calibration.result": ("Calibration",),
    "check": ("Check", "check"),
    "compare": ("Comparison", "compare"),
    "compare_time": ("TimeComparison",),
    "cost": ("Cost", "cost"),
    "cost_array": ("CostArray", "cost_array"),
    "crossings.result": ("Crossover", "Crossovers"),
    "crossovers": ("crossovers",),
    "decoder.step": ("step",),
    "decoder.layout": ("Layout",),
    "decoder.result": ("StepTime",),
    "decoder.search": ("crossover_context",),
    "diagnose": ("Diagnosis", "diagnose"),
    "documents": ("Documents",),
    "errors": ("IOModelError", "InfeasibleError", "InputError", "SpecError", "UnknownNameError"),
    "estimate": ("estimate",),
    "estimate_result": ("Estimate",),
    "evaluate": ("evaluate",),
    "execution": ("Execution",),
    "explore": ("explore",),
    "expressions": ("Expressions", "expressions"),
    "fleet": ("fleet",),
    "planning.fleet_result": ("Fleet",),
    "hardware": ("Hardware", "hardware", "list_hardware"),
    "inverse": ("crossover", "least_sram"),
    "judge": ("Judgement", "judge"),
    "linear.cost": ("linear_cost",),
    "linear.layer": ("Linear",),
    "linear.result": ("LinearCost",),
    "many.result": ("Solutions",),
    "model": ("list_models", "model"),
    "models.spec": ("ModelSpec",),
    "optimum": ("Optimum", "optimum"),
    "parameters": ("Parameters",),
    "plan": ("plan",),
    "planning.result": ("Plan",),
    "residency": ("Residency",),
    "solution": ("Solution",),
    "solve": ("solve",),
    "solve_many": ("solve_many",),
    "sweep": ("sweep",),
    "trace": ("Trace", "trace"),
    "workload": ("Attention", "VarlenAttention", "Window"),
}
"""The public names of each module."""
_HOMES = {name: f"{__name__}.{module}" for module, names in _PUBLIC.items() for name in names}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - a list, made


class _Name:
    """A public name. A descriptor wins over the submodule of the same name, which importing it binds here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, package: ModuleType, owner: type | None = None) -> Any:
        found = package.__dict__.get(self.name, self)
        if found is self or (isinstance(found, ModuleType) and found.__name__ == f"{__name__}.{self.name}"):
            found = package.__dict__[self.name] = getattr(import_module(_HOMES[self.name]), self.name)
        return found

    def __set__(self, package: ModuleType, value: object) -> None:
        package.__dict__[self.name] = value

    def __delete__(self, package: ModuleType) -> None:
        package.__dict__.pop(self.name, None)


class _Package(ModuleType):
    """The package, with its public names."""

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


def __getattr__(name: str) -> ModuleType:
    """A module of the package, imported when it is first asked for."""
    home = f"{__name__}.{name}"
    if not name.startswith("_"):
        try:
            return import_module(home)
        except ModuleNotFoundError as error:
            if error.name != home:
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


for _name in __all__:
    setattr(_Package, _name, _Name(_name))
sys.modules[__name__].__class__ = _Package
