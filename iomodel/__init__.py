"""Exact HBM traffic, fastest tiles, lower bounds and times of attention kernels, layers and served models.

`__init__.pyi` lists the public names. Each is imported on its first use: `import iomodel` alone loads no other library.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import lazy_loader as lazy

_public, __dir__, __all__ = lazy.attach_stub(__name__, __file__)

_MOVED = {
    "devices": ("Parameters", "calibrate", "judge"),
    "errors": ("SpecError", "UnfinishedError"),
    "explorer": ("explore",),
    "kernels": ("Execution", "Implementation", "Residency", "implementation", "tile_times"),
    "planning": ("context_parallel", "crossover_context", "engine_arguments", "engine_flags", "messages"),
    "results": (
        *("Audit", "Bound", "Calibration", "ContextParallel", "Crossover", "Crossovers", "Disaggregation"),
        *("EngineFlags", "Expressions", "Fleet", "Judgement", "Messages", "Optimum", "Pareto", "ParetoPoint"),
        *("Simulation", "Staircase", "TileTimes", "Trace", "TrainingMemory", "TrainingStep"),
    ),
    "testing": ("audit",),
    "theory": ("evaluate", "least_sram"),
}
"""Names that were public here, by the room that has them now."""
_RENAMED = {
    "crossover": ("studies.least_sram", "iomodel.crossovers([a, b], workload, tiles=...).pair(a, b).first"),
    "linear_cost": ("counting.cost", "iomodel.cost('gemm', layer, tiles=...)"),
    "TimeComparison": ("studies.comparison", "iomodel.Comparison"),
    "Solutions": ("solving.batch.solutions", "iomodel.SolutionArray"),
    "sweep_plans": ("planning.sweep_plans", "iomodel.sweep"),
    "solve_many": ("solving.solve_many", "iomodel.solve_array, whose objective on a device is the time by default"),
}
"""Names that have another spelling now, each with its module and the new spelling."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _public(name)
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    for room, names in _MOVED.items():
        if name in names:
            return _old(name, f"iomodel.{room}.{name}", room)
    if name in _RENAMED:
        home, new = _RENAMED[name]
        return _old(name, new, home)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _old(name: str, new: str, home: str) -> Any:
    """Return what an old name means, with a warning at the line that asks the root for it."""
    from iomodel.common.deprecation import warn_renamed

    warn_renamed(name, new)
    return getattr(import_module(f"{__name__}.{home}"), name)
