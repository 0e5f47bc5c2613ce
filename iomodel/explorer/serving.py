"""Serving figures of the page: plans of shipped models on a grid of devices, GPUs and loads."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any

from iomodel.common.progress import watched
from iomodel.devices.device import hardware as find_hardware
from iomodel.errors import IOModelError
from iomodel.models.registry import model as find_model
from iomodel.planning.layouts import no_room
from iomodel.planning.replica_figures import figures
from iomodel.planning.service import as_service
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step_result import bound_of
from iomodel.planning.steps import ReplicaSteps


@dataclass(frozen=True)
class ServingGrid:
    """Points at which the page has plans: one replica, with tensor parallelism across its GPUs.

    Attributes
    ----------
    model, hardware : tuple of str
        Names of shipped models and devices.
    gpus : tuple of int
        GPUs of the replica [-].
    prompt : tuple of int
        Tokens of a prompt [tokens].
    batch : tuple of int
        Requests decoded together [-].
    output : int
        Tokens of an output [tokens].
    """

    model: tuple[str, ...] = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b", "deepseek-v3")
    hardware: tuple[str, ...] = ("h100-sxm5", "h200-sxm", "b200", "mi300x")
    gpus: tuple[int, ...] = (1, 2, 4, 8)
    prompt: tuple[int, ...] = (2048, 16384)
    batch: tuple[int, ...] = (1, 16, 64, 256)
    output: int = 256


MEANING = {
    "model": "model",
    "hardware": "GPU",
    "gpus": "GPUs of a replica",
    "prompt": "tokens of a prompt",
    "batch": "requests decoded together",
}
"""Labels of the axes of the grid, in the order of the keys of its plans."""


def serving_fields(grid: ServingGrid) -> dict[str, dict[str, Any]]:
    """Describe the fields of the serving view, in the order of a link."""
    first = {"gpus": 1, "batch": 16}
    axes = {field.name: getattr(grid, field.name) for field in fields(grid) if field.name in MEANING}
    return {
        f"serve_{name}": {
            "choices": list(map(str, values)),
            "default": str(first[name] if first.get(name) in values else values[0]),
            "label": MEANING[name],
        }
        for name, values in axes.items()
    }


def serving(grid: ServingGrid, progress: bool = False) -> dict[str, Any]:
    """Compute the plans of a grid, as :func:`iomodel.plan` has them.

    >>> grid = ServingGrid(model=("llama-3.1-8b",), hardware=("h100-sxm5",), gpus=(1,), prompt=(2048,), batch=(1, 9999))
    >>> one = serving(grid)["plans"]["llama-3.1-8b|h100-sxm5|1|2048"]
    >>> one["fits"], one["prefill_bound"], list(one["batches"])
    (182, 'matrix', ['1'])
    """
    points = list(product(grid.model, grid.hardware, grid.gpus, grid.prompt))
    watched_points = watched(points, len(points), progress, "plans")
    return {
        **asdict(grid),
        "names": {name: find_hardware(name).name for name in grid.hardware},
        "titles": {name: find_model(name).title for name in grid.model},
        "plans": {"|".join(map(str, point)): _plan(grid, *point) for point in watched_points},
    }


def _plan(grid: ServingGrid, model: str, name: str, gpus: int, prompt: int) -> dict[str, Any]:
    """Compute the plans of one replica at the batches that fit, or state why none fits."""
    device = find_hardware(name)
    try:
        service = as_service(model, prompt, grid.output, Layout(tensor_parallel=gpus)).on(device)
        memory, steps = service.memory(device), ReplicaSteps(service, device)
        if not memory.fits:
            return {"refused": str(no_room(service, device))}
        prefill = steps.prefill()
        middle = sum(service.contexts) // 2
        batches = {
            str(batch): {
                "ttft": reached.ttft,
                "tpot": reached.tpot,
                "tokens_per_second": reached.tokens_per_second / gpus,
                "decode_bound": bound_of(steps.decode(batch, middle)),
            }
            for batch in grid.batch
            if batch <= memory.fits
            for reached in [figures(service, device, batch)]
        }
    except IOModelError as error:
        return {"refused": str(error)}
    return {
        "fits": memory.fits,
        "weights": memory.weights,
        "usable": memory.usable,
        "request_bytes": memory.request_bytes,
        "prefill_bound": bound_of(prefill),
        "notes": list(prefill.model.notes),
        "batches": batches,
    }
