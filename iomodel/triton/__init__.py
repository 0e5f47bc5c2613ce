"""Triton's kernels: counts of their traffic, and configs that fit and are fast, without a compiler and without a GPU.

Triton itself is imported only where a kernel is counted, a `triton.Config` is made or the current device is asked for.
"""

from iomodel.placement.triton_check import TritonCheck
from iomodel.placement.triton_check import check_triton as check
from iomodel.placement.triton_description import KernelDescription, describe
from iomodel.triton.formula_fit import Inference
from iomodel.triton.formula_inference import infer
from iomodel.triton.kernel_count import KernelCount, TensorCount
from iomodel.triton.kernel_counter import count, launches
from iomodel.triton.listing import configs, flex_options
from iomodel.triton.pruner import Judged, Pruned, Pruner, perf_model, prune, pruner
from iomodel.triton.rules import rule

__all__ = [
    "Inference",
    "Judged",
    "KernelCount",
    "KernelDescription",
    "Pruned",
    "Pruner",
    "TensorCount",
    "TritonCheck",
    "check",
    "configs",
    "count",
    "describe",
    "flex_options",
    "infer",
    "launches",
    "perf_model",
    "prune",
    "pruner",
    "rule",
]
