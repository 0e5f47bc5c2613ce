"""Exact HBM traffic, fastest tiles, lower bounds and times of attention kernels, layers and served models.

A public name is imported on its first use: `import iomodel` alone loads no other library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iomodel.algorithms import list_algorithms as list_algorithms
    from iomodel.counting.bounds import Bound as Bound
    from iomodel.counting.bounds import lower_bounds as lower_bounds
    from iomodel.counting.cost import Cost as Cost
    from iomodel.counting.cost import cost as cost
    from iomodel.counting.cost import linear_cost as linear_cost
    from iomodel.counting.cost_array import CostArray as CostArray
    from iomodel.counting.cost_array import cost_array as cost_array
    from iomodel.counting.evaluation.evaluate import evaluate as evaluate
    from iomodel.counting.expressions import Expressions as Expressions
    from iomodel.counting.expressions import expressions as expressions
    from iomodel.counting.messages import Messages as Messages
    from iomodel.counting.messages import messages as messages
    from iomodel.counting.optimum import Optimum as Optimum
    from iomodel.counting.optimum import optimum as optimum
    from iomodel.devices.calibration.calibrate import calibrate as calibrate
    from iomodel.devices.calibration.result import Calibration as Calibration
    from iomodel.devices.device import Hardware as Hardware
    from iomodel.devices.device import hardware as hardware
    from iomodel.devices.device import list_hardware as list_hardware
    from iomodel.errors import InfeasibleError as InfeasibleError
    from iomodel.errors import InputError as InputError
    from iomodel.errors import IOModelError as IOModelError
    from iomodel.errors import SpecError as SpecError
    from iomodel.errors import UnfinishedError as UnfinishedError
    from iomodel.errors import UnknownNameError as UnknownNameError
    from iomodel.explorer.explore import explore as explore
    from iomodel.integrations.nsight.audit import audit as audit
    from iomodel.integrations.nsight.result import Audit as Audit
    from iomodel.models.registry import list_models as list_models
    from iomodel.models.registry import model as model
    from iomodel.models.spec import ModelSpec as ModelSpec
    from iomodel.nests.execution import Execution as Execution
    from iomodel.nests.implementation import Implementation as Implementation
    from iomodel.nests.residency import Residency as Residency
    from iomodel.placement.check import Check as Check
    from iomodel.placement.check import check as check
    from iomodel.placement.implementations import implementation as implementation
    from iomodel.placement.implementations import list_implementations as list_implementations
    from iomodel.planning.context_parallel import context_parallel as context_parallel
    from iomodel.planning.context_result import ContextParallel as ContextParallel
    from iomodel.planning.disaggregated import disaggregate as disaggregate
    from iomodel.planning.disaggregated_result import Disaggregation as Disaggregation
    from iomodel.planning.engine_arguments import engine_arguments as engine_arguments
    from iomodel.planning.engine_flags import EngineFlags as EngineFlags
    from iomodel.planning.engine_flags import engine_flags as engine_flags
    from iomodel.planning.fleet import fleet as fleet
    from iomodel.planning.fleet_result import Fleet as Fleet
    from iomodel.planning.pareto import pareto as pareto
    from iomodel.planning.pareto_result import Pareto as Pareto
    from iomodel.planning.pareto_result import ParetoPoint as ParetoPoint
    from iomodel.planning.plan import plan as plan
    from iomodel.planning.plan_result import Plan as Plan
    from iomodel.planning.prefix_cache import PrefixCache as PrefixCache
    from iomodel.planning.simulation.simulate import simulate as simulate
    from iomodel.planning.simulation.simulation_result import Simulation as Simulation
    from iomodel.planning.speculation import Speculation as Speculation
    from iomodel.planning.step.layout import Layout as Layout
    from iomodel.planning.step.lora import Lora as Lora
    from iomodel.planning.step.step import step as step
    from iomodel.planning.step.step_result import StepTime as StepTime
    from iomodel.planning.step.step_search import crossover_context as crossover_context
    from iomodel.planning.sweep_plans import sweep_plans as sweep_plans
    from iomodel.planning.training.train_step import train_step as train_step
    from iomodel.planning.training.training_memory import TrainingMemory as TrainingMemory
    from iomodel.planning.training.training_result import TrainingStep as TrainingStep
    from iomodel.solving.batch.solutions import Solutions as Solutions
    from iomodel.solving.solution import Solution as Solution
    from iomodel.solving.solve import solve as solve
    from iomodel.solving.solve_many import solve_many as solve_many
    from iomodel.solving.staircase import Staircase as Staircase
    from iomodel.solving.staircase import staircase as staircase
    from iomodel.solving.tile_times import TileTimes as TileTimes
    from iomodel.solving.tile_times import tile_times as tile_times
    from iomodel.studies.compare import compare as compare
    from iomodel.studies.compare_time import TimeComparison as TimeComparison
    from iomodel.studies.comparison import Comparison as Comparison
    from iomodel.studies.crossovers.crossovers import crossovers as crossovers
    from iomodel.studies.crossovers.crossovers_result import Crossover as Crossover
    from iomodel.studies.crossovers.crossovers_result import Crossovers as Crossovers
    from iomodel.studies.diagnosis.diagnose import Diagnosis as Diagnosis
    from iomodel.studies.diagnosis.diagnose import diagnose as diagnose
    from iomodel.studies.estimate import estimate as estimate
    from iomodel.studies.estimate_array import estimate_array as estimate_array
    from iomodel.studies.estimate_array_result import EstimateArray as EstimateArray
    from iomodel.studies.judge import Judgement as Judgement
    from iomodel.studies.judge import judge as judge
    from iomodel.studies.least_sram import crossover as crossover
    from iomodel.studies.least_sram import least_sram as least_sram
    from iomodel.studies.sweeps.sweep import sweep as sweep
    from iomodel.studies.trace.trace import Trace as Trace
    from iomodel.studies.trace.trace import trace as trace
    from iomodel.timing.estimate_result import Estimate as Estimate
    from iomodel.timing.parameters import Parameters as Parameters
    from iomodel.workloads.attention import Attention as Attention
    from iomodel.workloads.cross_entropy import CrossEntropy as CrossEntropy
    from iomodel.workloads.linear import Linear as Linear
    from iomodel.workloads.masks.block_mask import BlockMask as BlockMask
    from iomodel.workloads.masks.documents import Documents as Documents
    from iomodel.workloads.mlp import MLP as MLP
    from iomodel.workloads.mlp import Experts as Experts
    from iomodel.workloads.recurrence import Recurrence as Recurrence
    from iomodel.workloads.varlen import VarlenAttention as VarlenAttention
    from iomodel.workloads.window import Window as Window

_PUBLIC = {
    "algorithms": ("list_algorithms",),
    "counting.bounds": (
        "Bound",
        "lower_bounds",
    ),
    "counting.cost": (
        "Cost",
        "cost",
        "linear_cost",
    ),
    "counting.cost_array": (
        "CostArray",
        "cost_array",
    ),
    "counting.evaluation.evaluate": ("evaluate",),
    "counting.expressions": (
        "Expressions",
        "expressions",
    ),
    "counting.messages": (
        "Messages",
        "messages",
    ),
    "counting.optimum": (
        "Optimum",
        "optimum",
    ),
    "devices.calibration.calibrate": ("calibrate",),
    "devices.calibration.result": ("Calibration",),
    "devices.device": (
        "Hardware",
        "hardware",
        "list_hardware",
    ),
    "errors": (
        "IOModelError",
        "InfeasibleError",
        "InputError",
        "SpecError",
        "UnfinishedError",
        "UnknownNameError",
    ),
    "explorer.explore": ("explore",),
    "integrations.nsight.audit": ("audit",),
    "integrations.nsight.result": ("Audit",),
    "models.registry": (
        "list_models",
        "model",
    ),
    "models.spec": ("ModelSpec",),
    "nests.execution": ("Execution",),
    "nests.implementation": ("Implementation",),
    "nests.residency": ("Residency",),
    "placement.implementations": (
        "implementation",
        "list_implementations",
    ),
    "placement.check": (
        "Check",
        "check",
    ),
    "planning.context_parallel": ("context_parallel",),
    "planning.context_result": ("ContextParallel",),
    "planning.disaggregated": ("disaggregate",),
    "planning.disaggregated_result": ("Disaggregation",),
    "planning.engine_arguments": ("engine_arguments",),
    "planning.engine_flags": (
        "EngineFlags",
        "engine_flags",
    ),
    "planning.fleet": ("fleet",),
    "planning.fleet_result": ("Fleet",),
    "planning.pareto": ("pareto",),
    "planning.pareto_result": (
        "Pareto",
        "ParetoPoint",
    ),
    "planning.plan": ("plan",),
    "planning.prefix_cache": ("PrefixCache",),
    "planning.plan_result": ("Plan",),
    "planning.sweep_plans": ("sweep_plans",),
    "planning.simulation.simulation_result": ("Simulation",),
    "planning.simulation.simulate": ("simulate",),
    "planning.speculation": ("Speculation",),
    "planning.step.layout": ("Layout",),
    "planning.step.lora": ("Lora",),
    "planning.step.step_result": ("StepTime",),
    "planning.step.step_search": ("crossover_context",),
    "planning.step.step": ("step",),
    "planning.training.training_memory": ("TrainingMemory",),
    "planning.training.training_result": ("TrainingStep",),
    "planning.training.train_step": ("train_step",),
    "solving.batch.solutions": ("Solutions",),
    "solving.solution": ("Solution",),
    "solving.solve": ("solve",),
    "solving.solve_many": ("solve_many",),
    "solving.staircase": (
        "Staircase",
        "staircase",
    ),
    "solving.tile_times": (
        "TileTimes",
        "tile_times",
    ),
    "studies.compare": ("compare",),
    "studies.compare_time": ("TimeComparison",),
    "studies.comparison": ("Comparison",),
    "studies.crossovers.crossovers": ("crossovers",),
    "studies.crossovers.crossovers_result": (
        "Crossover",
        "Crossovers",
    ),
    "studies.diagnosis.diagnose": (
        "Diagnosis",
        "diagnose",
    ),
    "studies.estimate": ("estimate",),
    "studies.estimate_array": ("estimate_array",),
    "studies.estimate_array_result": ("EstimateArray",),
    "studies.judge": (
        "Judgement",
        "judge",
    ),
    "studies.least_sram": (
        "crossover",
        "least_sram",
    ),
    "studies.sweeps.sweep": ("sweep",),
    "studies.trace.trace": (
        "Trace",
        "trace",
    ),
    "timing.parameters": ("Parameters",),
    "timing.estimate_result": ("Estimate",),
    "workloads.attention": ("Attention",),
    "workloads.linear": ("Linear",),
    "workloads.masks.block_mask": ("BlockMask",),
    "workloads.masks.documents": ("Documents",),
    "workloads.cross_entropy": ("CrossEntropy",),
    "workloads.mlp": ("MLP", "Experts"),
    "workloads.recurrence": ("Recurrence",),
    "workloads.varlen": ("VarlenAttention",),
    "workloads.window": ("Window",),
}
"""The public names of each module."""
_HOMES = {name: f"{__name__}.{module}" for module, names in _PUBLIC.items() for name in names}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - a list, made


_MODULES = ("algorithms", "errors", "nests", "plots", "testing", "torch", "triton")
"""The modules that are public by themselves."""


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
