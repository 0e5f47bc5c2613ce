"""Symbolic IO complexity of attention: exact HBM traffic and proven tiles."""

from iomodel.algorithms import list_algorithms
from iomodel.block_mask import BlockMask
from iomodel.bounds import Bound, lower_bounds
from iomodel.calibrate import calibrate
from iomodel.calibrate_result import Calibration
from iomodel.check import Check, check
from iomodel.compare import Comparison, compare
from iomodel.compare_time import TimeComparison
from iomodel.cost import Cost, cost
from iomodel.diagnose import Diagnosis, diagnose
from iomodel.documents import Documents
from iomodel.errors import InfeasibleError, InputError, IOModelError, SpecError, UnknownNameError
from iomodel.estimate import estimate
from iomodel.estimate_result import Estimate
from iomodel.evaluate import evaluate
from iomodel.execution import Execution
from iomodel.expressions import Expressions, expressions
from iomodel.hardware import Hardware, hardware, list_hardware
from iomodel.inverse import crossover, least_sram
from iomodel.judge import Judgement, judge
from iomodel.optimum import Optimum, optimum
from iomodel.parameters import Parameters
from iomodel.residency import Residency
from iomodel.solution import Solution
from iomodel.solve import solve
from iomodel.trace import Trace, trace
from iomodel.workload import Attention, VarlenAttention, Window

__all__ = [
    "Attention",
    "BlockMask",
    "Bound",
    "Calibration",
    "Check",
    "Comparison",
    "Cost",
    "Diagnosis",
    "Documents",
    "Estimate",
    "Execution",
    "Expressions",
    "Hardware",
    "IOModelError",
    "InfeasibleError",
    "InputError",
    "Judgement",
    "Optimum",
    "Parameters",
    "Residency",
    "Solution",
    "SpecError",
    "TimeComparison",
    "Trace",
    "UnknownNameError",
    "VarlenAttention",
    "Window",
    "calibrate",
    "check",
    "compare",
    "cost",
    "crossover",
    "diagnose",
    "estimate",
    "evaluate",
    "expressions",
    "hardware",
    "judge",
    "least_sram",
    "list_algorithms",
    "list_hardware",
    "lower_bounds",
    "optimum",
    "solve",
    "trace",
]
