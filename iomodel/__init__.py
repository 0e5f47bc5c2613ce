"""Symbolic IO complexity of attention: exact HBM traffic and proven tiles."""

from iomodel.algorithms import list_algorithms
from iomodel.bounds import Bound, lower_bounds
from iomodel.compare import Comparison, compare
from iomodel.cost import Cost, cost
from iomodel.errors import InfeasibleError, InputError, IOModelError, SpecError, UnknownNameError
from iomodel.evaluate import evaluate
from iomodel.expressions import Expressions, expressions
from iomodel.hardware import Hardware, hardware, list_hardware
from iomodel.inverse import crossover, least_sram
from iomodel.optimum import Optimum, optimum
from iomodel.solve import Solution, solve
from iomodel.workload import Attention, Window

__all__ = [
    "Attention",
    "Bound",
    "Comparison",
    "Cost",
    "Expressions",
    "Hardware",
    "IOModelError",
    "InfeasibleError",
    "InputError",
    "Optimum",
    "Solution",
    "SpecError",
    "UnknownNameError",
    "Window",
    "compare",
    "cost",
    "crossover",
    "evaluate",
    "expressions",
    "hardware",
    "least_sram",
    "list_algorithms",
    "list_hardware",
    "lower_bounds",
    "optimum",
    "solve",
]
