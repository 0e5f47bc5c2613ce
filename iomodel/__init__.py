"""Symbolic IO complexity of attention: exact HBM traffic and proven tiles."""

from iomodel.algorithms import list_algorithms
from iomodel.block_mask import BlockMask
from iomodel.bounds import Bound, lower_bounds
from iomodel.check import Check, check
from iomodel.compare import Comparison, compare
from iomodel.cost import Cost, cost
from iomodel.documents import Documents
from iomodel.errors import InfeasibleError, InputError, IOModelError, SpecError, UnknownNameError
from iomodel.evaluate import evaluate
from iomodel.expressions import Expressions, expressions
from iomodel.hardware import Hardware, hardware, list_hardware
from iomodel.inverse import crossover, least_sram
from iomodel.optimum import Optimum, optimum
from iomodel.residency import Residency
from iomodel.solution import Solution
from iomodel.solve import solve
from iomodel.workload import Attention, VarlenAttention, Window

__all__ = [
    "Attention",
    "BlockMask",
    "Bound",
    "Check",
    "Comparison",
    "Cost",
    "Documents",
    "Expressions",
    "Hardware",
    "IOModelError",
    "InfeasibleError",
    "InputError",
    "Optimum",
    "Residency",
    "Solution",
    "SpecError",
    "UnknownNameError",
    "VarlenAttention",
    "Window",
    "check",
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
