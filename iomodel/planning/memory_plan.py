"""Memory of a plan without its times: weights, caches and the requests that fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

from iomodel.common.display import Result, Table
from iomodel.devices.device import Hardware, as_device
from iomodel.models.registry import ModelSpec
from iomodel.planning.formatting import layout_text
from iomodel.planning.layouts import SERVER, with_least_layout
from iomodel.planning.memory_parts import size_row
from iomodel.planning.service import as_service
from iomodel.planning.service_memory import Fit
from iomodel.planning.service_options import ServiceOptions, check_names, takes
from iomodel.planning.step.layout import Layout


@dataclass(frozen=True)
class MemoryPlan(Result):
    """Memory of a replica, without times.

    Attributes
    ----------
    model, hardware : str
        Names.
    layout : Layout
        Parallel layout of the replica.
    prompt, output : int
        Tokens of a prompt, and of its output [tokens].
    memory : Fit
        Memory of the device with the least room, and the requests that fit.
    batch : int
        Requests that the replica takes: those that fit, up to the limit of the engine [-].
    missing : str
        Error of a plan with times; empty if that was not asked.
    notes : tuple of str
        Warnings about the figures of the model's file.
    """

    model: str
    hardware: str
    layout: Layout
    prompt: int
    output: int
    memory: Fit
    batch: int
    missing: str = ""
    notes: tuple[str, ...] = ()

    def tables(self) -> list[Table | str]:
        """Return the tables of the terminal."""
        fit = self.memory
        rows = [
            size_row("memory per device", fit.capacity),
            size_row("  usable", fit.usable),
            *(size_row(f"  {part.name}", part.bytes) for part in fit.parts),
            ("cache per token, on one device", f"{fit.token_bytes:,} B", ""),
            ("cache per request, on one device", f"{fit.request_bytes:,} B", ""),
            ("tokens of cache that fit", f"{fit.tokens:,}", ""),
            ("requests that fit a replica", f"{fit.fits:,}", ""),
        ]
        where = f"{self.model} on {self.hardware} ({layout_text(self.layout)})"
        drawn: list[Table | str] = [
            Table(f"Memory of {where}: {self.prompt:,} + {self.output:,} tokens", ("", ">", ">"), rows)
        ]
        drawn += [f"log: {line}" for line in fit.log]
        drawn += [f"missing: times, because of {self.missing}"] if self.missing else []
        return [*drawn, *(f"note: {note}" for note in self.notes)]


@takes(ServiceOptions)
def memory_plan(
    model: ModelSpec | str,
    hardware: Hardware | str,
    *,
    layout: Layout | None = None,
    prompt: int,
    output: int,
    **service: Unpack[ServiceOptions],
) -> MemoryPlan:
    """Compute the memory of a replica without its times: whether a model starts, and how many requests fit.

    Nothing but the capacity of the device is needed, so that models and devices are answered that have no times.

    Parameters
    ----------
    model : ModelSpec or str
        The model, its name, or its file.
    hardware : Hardware or str
        The device.
    layout : Layout, optional
        Parallel layout of a replica; by default the least tensor parallelism that holds the model and one request, on
        up to eight devices.
    prompt : int
        Tokens of a prompt.
    output : int
        Tokens of its output.
    **service

    Raises
    ------
    UnknownNameError, InputError, SpecError
        A name is unknown, a number is out of range, or the capacity of the device is not on file.

    Examples
    --------
    >>> from iomodel.planning.memory_plan import memory_plan
    >>> found = memory_plan("deepseek-v4-flash", "b200", prompt=8192, output=1024, engine="vllm")
    >>> found.layout.tensor_parallel, found.memory.fits > 0
    (1, True)
    """
    check_names(memory_plan, service)
    device = as_device(hardware)
    served = as_service(model, prompt, output, Layout() if layout is None else layout, **service)
    if layout is None:
        served = with_least_layout(served, device, SERVER)
    return MemoryPlan(
        model=served.name,
        hardware=device.label,
        layout=served.layout,
        prompt=served.prompt,
        output=served.output,
        memory=served.memory(device),
        batch=served.most_requests(device),
        notes=served.model.notes,
    )
