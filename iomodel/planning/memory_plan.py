"""Memory of a plan without its times: weights, caches and the requests that fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Unpack

from iomodel.common.display import Result, Table
from iomodel.common.keywords import strict
from iomodel.common.results import Record, column
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware, as_device
from iomodel.errors import InputError
from iomodel.models.registry import ModelSpec
from iomodel.planning.call_arguments import of_command, settled
from iomodel.planning.engine_arguments import Command, is_command, read_command
from iomodel.planning.engines import GGML
from iomodel.planning.formatting import layout_text, seconds
from iomodel.planning.layouts import SERVER, check_count, divided, with_least_layout, with_most_room
from iomodel.planning.memory_parts import size_row, token_rows
from iomodel.planning.service import Service, as_service
from iomodel.planning.service_memory import Fit
from iomodel.planning.service_options import PlanOptions, takes
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step_arguments import as_model


@dataclass(frozen=True)
class LayoutRoom(Record):
    """Room for caches under one layout of a replica.

    Attributes
    ----------
    layout : Layout
        The layout.
    tokens, fits : int
        Tokens of cache that a replica holds [tokens]; requests that fit [-].
    """

    layout: Layout = field(metadata=column("layout", layout_text))
    tokens: int = field(metadata=column(">tokens of cache that fit", ","))
    fits: int = field(metadata=column(">requests that fit", ","))


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
        Tokens of a prompt, and of its output; together the longest request if neither was given [tokens].
    memory : Fit
        Memory of the device with the least room, and the requests that fit.
    batch : int
        Requests that the replica takes: those that fit, up to the limit of the engine [-].
    replicas : int
        Replicas on the devices; one without a count [-].
    least_step : float or None
        Time to read the weights of a token once at the bandwidth of the device, a lower bound on a decode step that
        needs no peak; None without lengths or a bandwidth, with drafts, and where ranks divide experts [s].
    missing : str
        Error of a plan with times; empty if that was not asked.
    notes : tuple of str
        Warnings about the figures of the model's file.
    assumed : tuple of str
        Options of a command line that are passed over.
    layouts : tuple of LayoutRoom
        Room under each layout that was tried, where none was given.
    """

    model: str
    hardware: str
    layout: Layout
    prompt: int
    output: int
    memory: Fit
    batch: int
    replicas: int = 1
    least_step: float | None = None
    missing: str = ""
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    layouts: tuple[LayoutRoom, ...] = ()

    def tables(self) -> list[Table | str]:
        """Return the tables of the terminal."""
        fit = self.memory
        rows = [
            size_row("memory per device", fit.capacity),
            size_row("  usable", fit.usable),
            *(size_row(f"  {part.name}", part.bytes) for part in fit.parts),
            ("cache per token, on one device", f"{fit.token_bytes:,} B", ""),
            ("cache per request, on one device", f"{fit.request_bytes:,} B", ""),
            *((*row, "") for row in token_rows(fit, self.prompt + self.output)),
            (f"requests of {self.prompt + self.output:,} tokens that fit a replica", f"{fit.fits:,}", ""),
        ]
        if self.least_step is not None and self.missing:
            rows.append(("decode step, at least, for the weights", seconds(self.least_step), ""))
            rows.append(("output tokens/s of one request, at most", f"{1 / self.least_step:,.1f}", ""))
        layout, devices = layout_text(self.layout), self.replicas * self.layout.devices
        replicas = layout if self.replicas == 1 else f"{self.replicas:,} replicas of {layout}"
        where = f"{self.model} on {devices:,} x {self.hardware} ({replicas})"
        drawn: list[Table | str] = [Table(f"Memory of {where}", ("", ">", ">"), rows)]
        if len(self.layouts) > 1:
            drawn.append(Table.of("Layouts of a replica", LayoutRoom, self.layouts))
        drawn += [f"log: {line}" for line in fit.log]
        drawn += [f"missing: times, because of {self.missing}"] if self.missing else []
        drawn += [f"assumed: {each}" for each in self.assumed]
        return [*drawn, *(f"note: {note}" for note in self.notes)]


@strict
@takes(PlanOptions)
def memory_plan(
    model: ModelSpec | str,
    hardware: Hardware | str,
    *,
    prompt: int | None = None,
    output: int | None = None,
    count: int | None = None,
    **service: Unpack[PlanOptions],
) -> MemoryPlan:
    """Compute the memory of a replica without its times: whether a model starts, and how many requests fit.

    Nothing but the capacity of the device is needed, so that models and devices are answered that have no times.
    Without a layout, the tensor parallelism is the least that holds the model and one request, on up to eight devices;
    on a stated number of devices it is the one with which they take most requests in all.

    Parameters
    ----------
    model : ModelSpec or str
        The model, its name, or its file; or the command line that starts an engine.
    hardware : Hardware or str
        The device.
    prompt, output : int, optional
        Tokens of a prompt, and of its output; by default those of the longest request of the command line or the model.
    count : int, optional
        Devices, all of whose memory is used; by default those of one replica.
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
    name, given, own, ignored = of_command(model, service, count=count)
    asked = settled(memory_plan, given, **own)
    device, spec, timed = as_device(hardware), as_model(name), prompt is not None
    if prompt is None and output is None:
        command = read_command(str(model)) if is_command(model) else Command({}, ())
        prompt, output = _longest(command, spec)
        if is_command(model) and command.arguments.get("engine") == GGML:  # its cache has any length
            spec = spec.model_copy(update={"max_positions": max(prompt + output, spec.max_positions or 0)})
    served = as_service(spec, prompt, output, asked.start, **asked.service).on(device)
    devices = None if asked.own["count"] is None else as_integer("count", asked.own["count"])
    tried: list[Service] = []
    if asked.layout is None:
        tried = divided(served, device, SERVER if devices is None else devices)
        served = with_least_layout(served, device) if devices is None else with_most_room(served, device, devices)
    check_count(served, devices)
    alone = timed and served.layout.expert_parallel == 1 and served.speculation is None
    bandwidth = device.memory.hbm.bandwidth if alone else None
    return MemoryPlan(
        model=served.name,
        hardware=device.label,
        layout=served.layout,
        prompt=served.prompt,
        output=served.output,
        memory=served.memory(device),
        batch=served.most_requests(device),
        replicas=(devices or served.devices) // served.devices,
        least_step=None if bandwidth is None else served.weights.of_token() / bandwidth.value,
        notes=served.model.notes,
        assumed=ignored,
        layouts=tuple(LayoutRoom(each.layout, *_room(each.memory(device))) for each in tried),
    )


def _room(fit: Fit) -> tuple[int, int]:
    """Return the tokens of cache and the requests that fit; none where the weights do not."""
    return max(0, fit.tokens), fit.fits


def _longest(command: Command, spec: ModelSpec) -> tuple[int, int]:
    """Return the prompt and the output of the longest request of a command line, or of a model [tokens]."""
    longest = next(iter(command.limit.values()), spec.max_positions)
    if longest is None or longest < 2:
        raise InputError("prompt, output: not given; allowed: both, for a model without a longest context of 2 or more")
    return longest - 1, 1
