"""Plans, fleets and training steps over named dimensions, as an xarray Dataset: in this process or over a cluster."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from iomodel.common.keywords import strict
from iomodel.common.validation import as_choice
from iomodel.devices.device import Hardware
from iomodel.errors import InputError, IOModelError, UnknownNameError, shown
from iomodel.models.spec import ModelSpec
from iomodel.planning.call_arguments import renamed
from iomodel.planning.fleet import fleet
from iomodel.planning.plan import plan
from iomodel.planning.step.layout import Layout
from iomodel.planning.training.train_step import train_step
from iomodel.studies.sweeps.dataset import import_xarray
from iomodel.studies.sweeps.run import each, workers

if TYPE_CHECKING:
    from xarray import Dataset

QUESTIONS: dict[str, Callable[..., Any]] = {"plan": plan, "fleet": fleet, "train_step": train_step}
FIGURES = {
    "plan": ("batch", "ttft", "tpot", "tokens_per_second", "joules_per_token"),
    "fleet": ("best.devices", "best.replicas", "best.price_per_hour", "best.operating.ttft", "best.operating.tpot"),
    "train_step": ("seconds", "tokens_per_second_per_device", "mfu", "memory.total", "fits"),
}
"""Figures of a question by default."""
LISTS = ("overlap", "layouts")
"""Fields whose single value is a list, besides the devices of a fleet; a dimension of them is a list of lists."""
UNITS = {
    **dict.fromkeys(("ttft", "tpot", "seconds", "serial_seconds"), "s"),
    **dict.fromkeys(("tokens_per_second", "tokens_per_second_per_device", "requests_per_second"), "1/s"),
    **dict.fromkeys(("total", "weights", "usable", "parameters", "gradients", "optimizer", "activations"), "B"),
    "joules_per_token": "J",
    "price_per_hour": "1/h",
}
"""Units by the last name of a figure; others are numbers without a unit."""
TASK = 32
"""Points that a thread or a process answers at a time."""
POINTS = 1_000_000
"""Most points of a sweep."""


@strict
def sweep_plans(
    question: str, *, figures: Sequence[str] | None = None, scheduler: Any = "threads", **fields: Any
) -> Dataset:
    """Answer a planning question at every point of a grid.

    Parameters
    ----------
    question : {"plan", "fleet", "train_step"}
        The function of that name.
    figures : sequence of str, optional
        Numbers of its result, by the names of its fields and properties, with dots: `"memory.total"`. By default those
        of `iomodel.planning.sweep_plans.FIGURES`.
    scheduler : "threads", dask.distributed.Client or str
        Where points are answered: in this process, on a cluster, or on the one at an address.
    **fields
        Arguments of the function, and those of :class:`iomodel.Layout`, which make its layout: each a value, or a list
        or range of values, which makes it a dimension. Where a value is a list, a dimension is a list of lists.

    Returns
    -------
    xarray.Dataset
        One variable of floats for each figure, NaN where a point has no answer, as where nothing fits; `refused` says
        why there, and is empty elsewhere.

    Raises
    ------
    UnknownNameError, InputError
        An unknown name; a figure that is no number; too many points; xarray or Dask is missing. If no point has an
        answer, the error of the first.

    Examples
    --------
    >>> asked = {"model": "llama-3-8b", "hardware": ["h100-sxm5", "a100-sxm4-80gb"], "output": 256}
    >>> times = sweep_plans("plan", prompt=[1024, 2048, 4096], figures=["ttft"], **asked)
    >>> wide, narrow = (times.ttft.sel(hardware=name) for name in asked["hardware"])
    >>> dict(times.sizes), bool((wide < narrow).all())
    ({'prompt': 3, 'hardware': 2}, True)
    """
    xarray = import_xarray()
    as_choice("question", question, QUESTIONS)
    constants, axes = _axes(question, renamed(question, fields))
    names = _figures(question, figures, axes)
    sizes = {name: len(values) for name, values in axes.items()}
    count = math.prod(sizes.values())
    if count > POINTS:
        raise InputError(f"{next(iter(axes))}: {count:,} points given; allowed: up to {POINTS:,} in a sweep of plans")
    answers: list[tuple[tuple[float, ...] | None, str]] = [(None, "")] * count
    first: IOModelError | None = None
    with workers(scheduler) as (pool, width):
        for (start, _), replies in each(partial(_answers, question, names, constants), _tasks(axes), pool, width):
            for place, reply in enumerate(replies):
                if isinstance(reply, IOModelError):
                    first = first or reply
                    answers[start + place] = None, str(reply)
                else:
                    answers[start + place] = reply, ""
    if first is not None and all(reply is None for reply, _ in answers):
        raise first
    shape = tuple(sizes.values())
    blank = (math.nan,) * len(names)
    table = np.array([blank if reply is None else reply for reply, _ in answers], dtype=float)
    variables: dict[str, Any] = {
        name: (tuple(sizes), table[:, place].reshape(shape), {"units": UNITS.get(name.rpartition(".")[2], "1")})
        for place, name in enumerate(names)
    }
    reasons = np.array([reason for _, reason in answers], dtype=str).reshape(shape)
    variables["refused"] = tuple(sizes), reasons, {"long_name": "reason of a point without an answer"}
    result: Dataset = xarray.Dataset(
        variables,
        {name: (name, _labels(values)) for name, values in axes.items()},
        {"question": question, **{name: _label(value) for name, value in constants.items()}},
    )
    return result


def _figures(question: str, figures: Any, axes: Mapping[str, list[Any]]) -> tuple[str, ...]:
    if figures is None:
        return tuple(name for name in FIGURES[question] if name not in axes)
    if isinstance(figures, str) or not isinstance(figures, Sequence) or not figures:
        raise InputError(f"figures: {shown(figures)} given; allowed: a list of names, such as {FIGURES[question][1]}")
    for name in figures:
        if not isinstance(name, str):
            raise InputError(f"figures: {shown(name)} given; allowed: names, such as {FIGURES[question][1]}")
        if name in axes:
            raise InputError(f"figures: {name} given, which is a dimension; allowed: others")
    return tuple(dict.fromkeys(figures))


def _axes(question: str, fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Divide fields into constants and dimensions, and refuse unknown ones."""
    accepted = tuple(inspect.signature(QUESTIONS[question]).parameters)
    known = (*accepted, *(Layout.model_fields if "layout" in accepted else ()))
    constants: dict[str, Any] = {}
    axes: dict[str, list[Any]] = {}
    for name, value in fields.items():
        if name not in known:
            raise UnknownNameError("field", name, known)
        if not isinstance(value, list | tuple | range):
            constants[name] = value
            continue
        if value[POINTS : POINTS + 1]:  # of a range, without listing it
            raise InputError(f"{name}: more than {POINTS:,} values given; allowed: up to {POINTS:,} points in a sweep")
        values = list(value)
        single = name in LISTS or (question == "fleet" and name == "hardware")
        if single and not any(isinstance(entry, list | tuple) for entry in values):
            constants[name] = values
            continue
        if not values:
            raise InputError(f"{name}: an empty list given; allowed: a value, or a list of values")
        axes[name] = values
    if "layout" in fields and (both := [name for name in Layout.model_fields if name in fields]):
        raise InputError(f"{both[0]}: given with layout; allowed: one of both")
    return constants, axes


def _tasks(axes: Mapping[str, list[Any]]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield points in groups, each with the place of its first."""
    group: list[dict[str, Any]] = []
    start = 0
    for place, values in enumerate(product(*axes.values())):
        group.append(dict(zip(axes, values, strict=True)))
        if len(group) == TASK:
            yield start, group
            start, group = place + 1, []
    if group:
        yield start, group


def _answers(
    question: str, names: tuple[str, ...], constants: Mapping[str, Any], task: tuple[int, list[dict[str, Any]]]
) -> list[tuple[float, ...] | IOModelError]:
    """Answer the points of a task: numbers, or the error of a point without an answer."""
    replies: list[tuple[float, ...] | IOModelError] = []
    for point in task[1]:
        arguments = {**constants, **point}
        degrees = {name: arguments.pop(name) for name in Layout.model_fields if name in arguments}
        try:
            if degrees:
                arguments["layout"] = Layout(**degrees)
            result = _asked(question, arguments)
        except IOModelError as error:
            replies.append(error)
            continue
        replies.append(tuple(_number(result, name) for name in names))
    return replies


def _asked(question: str, arguments: dict[str, Any]) -> Any:
    try:
        inspect.signature(QUESTIONS[question]).bind(**arguments)
    except TypeError as error:
        raise InputError(f"{question}: {error}") from None
    return QUESTIONS[question](**arguments)


def _number(result: Any, name: str) -> float:
    """Return a figure of a result; NaN for None."""
    value = result
    for part in name.split("."):
        if not hasattr(value, part) or part.startswith("_"):
            known = [entry for entry in dir(value) if not entry.startswith("_")]
            raise UnknownNameError("figures", part, known)
        value = getattr(value, part)
    if value is None:
        return math.nan
    if not isinstance(value, bool | int | float):
        raise InputError(f"figures: {name} given, which is {type(value).__name__}; allowed: numbers")
    return float(value)


def _labels(values: Sequence[Any]) -> Any:
    """Return the labels of a coordinate: numbers unchanged, other values as text."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return np.array(values)
    return np.array([str(_label(value)) for value in values])


def _label(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, Hardware):
        return value.label
    if isinstance(value, ModelSpec):
        return value.label
    if isinstance(value, list | tuple):
        return " ".join(shown(entry) if isinstance(entry, list | tuple) else str(_label(entry)) for entry in value)
    return str(value)
