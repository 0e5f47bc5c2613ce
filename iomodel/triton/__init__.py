"""Triton's autotuner: configs that fit and are fast, without a compiler and without a GPU.

Triton itself is imported only where a `triton.Config` is made or the current device is asked for.
"""

from iomodel.placement.triton_check import TritonCheck
from iomodel.placement.triton_check import check_triton as check
from iomodel.triton.current import perf_model, prune
from iomodel.triton.listing import configs, flex_options
from iomodel.triton.pruner import Judged, Pruner, pruner

__all__ = ["Judged", "Pruner", "TritonCheck", "check", "configs", "flex_options", "perf_model", "prune", "pruner"]
