"""Pruning for the GPU of this process, with the sizes of a launch read from its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from iomodel.devices.device import hardware
from iomodel.errors import InputError
from iomodel.placement.triton_target import as_architecture
from iomodel.triton.pruner import Pruner, pruner

DEVICES = {
    80: "a100-sxm4-80gb", 86: "a10", 89: "rtx4090", 90: "h100-sxm5", 100: "b200", 120: "rtx5090",
}  # fmt: skip
"""The device that stands for an architecture; configs are ranked by it."""


def prune(configs: Iterable[Any], named_args: Mapping[str, Any], **kwargs: Any) -> list[Any]:
    """Prune an autotune list for the current GPU: `prune_configs_by={"early_config_prune": iomodel.triton.prune}`.

    The sizes of a forward pass are read from the arguments by their usual names; :func:`iomodel.triton.pruner` binds
    other names, kernels and devices.
    """
    return current()(configs, named_args, **kwargs)


def perf_model(**arguments: Any) -> float:
    """Predict the time of a launch on the current GPU: `prune_configs_by={"perf_model": ..., "top_k": 8}` [s]."""
    return current().perf_model(**arguments)


def current() -> Pruner:
    """Make the pruner of the current GPU."""
    return pruner(None, hardware(DEVICES[as_architecture(architecture())]))


def architecture() -> int | str:
    """Ask Triton for the architecture of the current GPU; raise InputError where there is none."""
    try:
        from triton.runtime import driver

        return driver.active.get_current_target().arch  # type: ignore[no-any-return]
    except (ImportError, RuntimeError) as error:
        raise InputError(
            f"hardware: no GPU that Triton knows ({error}); name one: iomodel.triton.pruner(workload, 'h100-sxm5')"
        ) from None
