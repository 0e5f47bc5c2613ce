"""Plans of many loads at once, from steps at knots: approximate, and hundreds of times as fast as single plans.

Batches and lengths of prompts are interpolated between the same knots as in a single plan, with an engine and without.
All of a plan but the decode steps at contexts between the knots of :mod:`iomodel.planning.load_steps` is then what
:func:`iomodel.plan` says. Plans with a prefix cache are computed one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack

import numpy as np

from iomodel.common.display import Result
from iomodel.common.keywords import strict
from iomodel.common.tabular import Tabular
from iomodel.common.validation import as_choice, as_integer
from iomodel.devices.device import Hardware
from iomodel.errors import InfeasibleError, InputError, SpecError, shown
from iomodel.models.registry import ModelSpec
from iomodel.planning.call_arguments import of_command, settled
from iomodel.planning.fleet import as_devices
from iomodel.planning.formatting import layout_text
from iomodel.planning.layout_search import EQUAL, candidates
from iomodel.planning.load_steps import LoadSteps
from iomodel.planning.replica_figures import figures, load_figures
from iomodel.planning.service import Service, as_service
from iomodel.planning.service_options import PlanOptions, TimedStepOptions, takes
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step import step

MOST_PLANS = 10_000_000
"""Most plans of one call."""
COLUMNS = (
    "batch", "fits", "ttft", "ttft_alone", "step", "tpot", "cycle_per_token", "requests_per_second",
    "tokens_per_second",
)  # fmt: skip
Infeasible = Literal["raise", "mark"]


@dataclass(frozen=True, eq=False)
class PlanArray(Result, Tabular):
    """The figures of :func:`iomodel.plan` as arrays of one shape; NaN, or 0 of a count, where nothing fits.

    Attributes
    ----------
    model : str
        Served model.
    hardware : array of str
        Device of each plan.
    layout : array of str
        Layout of a replica.
    prompt, output : array of int
        Tokens of a prompt, and of its output.
    replicas, devices, batch, fits : array of int
        Replicas and devices; requests decoded together in a replica, and those that fit [-].
    ttft, ttft_alone, step, tpot, cycle_per_token : array of float
        Times of :class:`iomodel.planning.replica_figures.Figures`; NaN as time per token of one output token [s].
    requests_per_second, tokens_per_second : array of float
        Rates of all replicas [1/s].
    """

    model: str
    hardware: Any
    layout: Any
    prompt: Any
    output: Any
    replicas: Any
    devices: Any
    batch: Any
    fits: Any
    ttft: Any
    ttft_alone: Any
    step: Any
    tpot: Any
    cycle_per_token: Any
    requests_per_second: Any
    tokens_per_second: Any
    layouts: Any = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Broadcast shape of all arguments."""
        shape: tuple[int, ...] = self.ttft.shape
        return shape

    @property
    def feasible(self) -> Any:
        """True where the batch fits."""
        return ~np.isnan(self.ttft)

    def __len__(self) -> int:
        return len(self.ttft)

    def __getitem__(self, place: Any) -> dict[str, Any]:
        """Return the columns of one plan, or of some."""
        return {name: values[place] for name, values in self._columns().items()}

    def _columns(self) -> dict[str, Any]:
        names = [name for name in self.__dataclass_fields__ if name not in ("model", "layouts")]
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return the columns as lists."""
        return {"model": self.model, **{name: values.tolist() for name, values in self._columns().items()}}

    def records(self) -> Any:
        """Return a mapping per plan."""
        flat = {name: values.ravel() for name, values in self._columns().items()}
        return [dict(zip(flat, row, strict=True)) for row in zip(*(v.tolist() for v in flat.values()), strict=True)]

    def tables(self) -> list[Any]:
        """Return a line with the number of plans and the range of their rates."""
        rates = self.tokens_per_second[self.feasible]
        ends = f"{rates.min():,.0f} to {rates.max():,.0f} output tokens/s" if rates.size else "none fits"
        return [f"{self.model}: {self.ttft.size:,} plans, {int(self.feasible.sum()):,} of which fit; {ends}"]


@strict
@takes(PlanOptions)
def plan_array(
    model: ModelSpec | str,
    hardware: Hardware | str | Sequence[Hardware | str],
    *,
    prompt: Any,
    output: Any,
    batch: Any = None,
    count: int | None = None,
    infeasible: Infeasible = "raise",
    **service: Unpack[PlanOptions],
) -> PlanArray:
    """Plan many loads at once: the figures of :func:`iomodel.plan` as arrays. Decode steps are approximate.

    Without a layout, each plan has the best of the search.

    Parameters
    ----------
    model : ModelSpec or str
        The model, its name, or its file; or the command line that starts an engine.
    hardware : Hardware, str, or a sequence of them
        The device, or devices that broadcast with the lengths.
    prompt, output : integers or arrays of them
        Tokens of a prompt, and of its output, which broadcast.
    batch : integers or arrays of them, optional
        Requests decoded together in a replica; by default as many as fit.
    count : int, optional
        Number of devices; by default those of one replica.
    infeasible : {"raise", "mark"}
        Raise an error where nothing fits, or mark such plans by NaN.
    **service

    Raises
    ------
    UnknownNameError, InputError, SpecError
        A name is unknown, a number is out of range, or a device lacks a required figure.
    InfeasibleError
        A plan does not fit, and is not marked.

    Examples
    --------
    >>> found = plan_array("llama-3-8b", "h100-sxm5", prompt=[512, 1024, 2048], output=[[128], [256]])
    >>> found.shape, bool((found.tokens_per_second[:, 0] > found.tokens_per_second[:, 2]).all())
    ((2, 3), True)
    """
    as_choice("infeasible", infeasible, ("raise", "mark"))
    name, told, own, _ = of_command(model, service, count=count)
    asked = settled(plan_array, told, **own)
    devices = as_devices(hardware, {})
    prompts, outputs = _integers("prompt", prompt), _integers("output", output)
    places = np.arange(len(devices)) if len(devices) > 1 else np.zeros((), dtype=int)
    batches = np.zeros((), dtype=int) if batch is None else _integers("batch", batch)
    prompts, outputs, batches, places = _broadcast(prompts, outputs, batches, places)
    if not 0 < prompts.size <= MOST_PLANS:
        raise InputError(f"prompt: {prompts.size:,} plans given; allowed: from 1 to {MOST_PLANS:,}")
    longest = int((prompts + outputs).argmax())
    ends = int(prompts.flat[longest]), int(outputs.flat[longest])
    served = as_service(name, *ends, asked.start, **asked.service)
    devices_given = None if asked.own["count"] is None else as_integer("count", asked.own["count"])
    flat = _Loads(prompts.ravel(), outputs.ravel(), batches.ravel())
    columns = _blank(prompts.size)
    for place, device in enumerate(devices):
        here = np.flatnonzero(places.ravel() == place)
        for column, values in _best(served.on(device), device, flat.at(here), devices_given, asked.layout).items():
            columns[column][here] = values
    missing = np.flatnonzero(np.isnan(columns["ttft"]))
    if len(missing) and infeasible == "raise":
        first = int(missing[0])
        raise InfeasibleError(
            f"prompt: {flat.prompt[first]:,} + {flat.output[first]:,} tokens given; allowed: fewer, or a smaller "
            "batch, because they do not fit; infeasible='mark' marks such plans",
            least=0,
            unit="B",
        )
    shape, texts = prompts.shape, ["" if one is None else layout_text(one) for one in columns["layouts"]]
    counted = {
        key: np.nan_to_num(columns.pop(key)).astype(np.int64) for key in ("batch", "fits", "replicas", "devices")
    }
    return PlanArray(
        model=served.name,
        hardware=np.array([device.label for device in devices])[places],
        layout=np.array(texts).reshape(shape),
        prompt=prompts,
        output=outputs,
        **{key: values.reshape(shape) for key, values in {**columns, **counted}.items()},
    )


def _blank(size: int) -> dict[str, Any]:
    """Return the columns of plans that do not fit."""
    columns: dict[str, Any] = {name: np.full(size, np.nan) for name in (*COLUMNS, "replicas", "devices")}
    return {**columns, "layouts": np.full(size, None, dtype=object)}


@dataclass(frozen=True)
class _Loads:
    """Prompts, outputs and batches of plans, as arrays of one axis; a batch of 0 is as many as fit."""

    prompt: Any
    output: Any
    batch: Any

    def at(self, places: Any) -> _Loads:
        return _Loads(self.prompt[places], self.output[places], self.batch[places])


def _broadcast(*arrays: Any) -> Any:
    try:
        return np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise InputError(f"prompt: arrays of shapes {shapes} given; allowed: shapes that broadcast") from None


def _integers(field_name: str, values: Any) -> Any:
    """Validate integers from 1 as an array."""
    try:
        numbers = np.asarray(values)
    except Exception:  # rows of different lengths, or an object that fails to convert
        numbers = np.empty(0, dtype=object)
    if numbers.dtype.kind not in "iu" or (numbers.size and numbers.min() < 1):
        raise InputError(f"{field_name}: {shown(values)} given; allowed: integers from 1, or arrays of them")
    return numbers.astype(np.int64)


def _best(
    service: Service, device: Hardware, loads: _Loads, count: int | None, layout: Layout | None
) -> Mapping[str, Any]:
    """Compute the figures of each plan at its best layout."""
    layouts = [layout] if layout is not None else candidates(service, device, count)
    size = len(loads.prompt)
    best, most = _blank(size), np.zeros(size)
    for tried in layouts:
        laid = service.laid_out(tried)
        if count is not None and count % laid.devices:
            continue
        replicas = 1 if count is None else count // laid.devices
        found = _figures(laid, device, loads)
        found |= {"replicas": np.full(size, replicas), "devices": np.full(size, replicas * laid.devices)}
        for name in ("requests_per_second", "tokens_per_second"):
            found[name] = found[name] * replicas
        rate = found["tokens_per_second"] / (found["devices"] if count is None else 1)
        better = np.nan_to_num(rate) > most * (EQUAL if most.any() else 1.0)
        most = np.where(better, rate, most)
        for name, values in found.items():
            best[name][better] = values[better]
        best["layouts"][better] = tried
    return best


def _figures(service: Service, device: Hardware, loads: _Loads) -> dict[str, Any]:
    """Compute the figures of each plan in one layout; NaN where it does not fit."""
    fits = _fits(service, device, loads)
    batch = np.where(loads.batch == 0, fits[1], loads.batch)
    good = np.flatnonzero((batch > 0) & (batch <= np.where(loads.batch == 0, fits[1], fits[0])))
    found = {name: np.full(len(batch), np.nan) for name in COLUMNS}
    if not len(good):
        return found
    part, sizes = loads.at(good), batch[good]
    values = (_at_knots if service.prefix_cache is None else _one_by_one)(service, device, part, sizes)
    for name, column in {**values, "batch": sizes, "fits": fits[0][good]}.items():
        found[name][good] = column
    return found


def _fits(service: Service, device: Hardware, loads: _Loads) -> tuple[Any, Any]:
    """Compute the requests that fit, and those that a replica takes.

    Requests of more tokens never fit more often, so that as many fit between two numbers of tokens with the same fits.
    """
    totals, places = np.unique(loads.prompt + loads.output, return_inverse=True)
    fits = np.full(len(totals), -1)

    def known(place: int) -> int:
        if fits[place] < 0:
            sized = replace(service, prompt=max(1, int(totals[place]) - 1), output=1)
            fits[place] = sized.memory(device).fits
        return int(fits[place])

    spans = [(0, len(totals) - 1)]
    while spans:
        first, last = spans.pop()
        if known(first) == known(last):
            fits[first : last + 1] = known(first)
        elif last - first > 1:
            middle = (first + last) // 2
            spans += [(first, middle), (middle, last)]
    most = {several: service.at_once(device, several) for several in np.unique(fits).tolist()}
    return fits[places], np.array([most[several] for several in fits.tolist()])[places]


def _one_by_one(service: Service, device: Hardware, loads: _Loads, batch: Any) -> dict[str, Any]:
    """Compute the figures of plans with a prefix cache, each as in a plan of its own."""
    rows = [
        figures(replace(service, prompt=int(prompt), output=int(output)), device, int(size))
        for prompt, output, size in zip(loads.prompt, loads.output, batch, strict=True)
    ]
    names = [name for name in COLUMNS if name not in ("batch", "fits")]
    return {name: np.array([getattr(row, name) for row in rows], dtype=float) for name in names}


def _at_knots(service: Service, device: Hardware, loads: _Loads, batch: Any) -> dict[str, Any]:
    """Compute the figures of plans from steps at knots, those of one output token apart."""
    found = {name: np.full(len(batch), np.nan) for name in COLUMNS}
    for here in (loads.output == 1, loads.output > 1):
        if here.any():
            steps = LoadSteps(service, device, loads.prompt[here], loads.output[here])
            for name, values in load_figures(steps, batch[here]).items():
                found[name][here] = np.nan if values is None else values
    return found


@strict
def step_array(
    model: ModelSpec | str,
    hardware: Hardware | str | Sequence[Hardware | str],
    *,
    batch: Any,
    q_len: Any,
    kv_len: Any,
    **options: Unpack[TimedStepOptions],
) -> Any:
    """Time many forward steps, each exactly as :func:`iomodel.step` and once for each distinct point [s].

    Parameters
    ----------
    model : ModelSpec or str
        The model, its name, or its file.
    hardware : Hardware, str, or a sequence of them
        The device, or devices that broadcast with the numbers.
    batch, q_len, kv_len : integers or arrays of them
        Sequences [-]; new tokens per sequence, and keys including the new tokens [tokens].
    **options
        Further options of :func:`iomodel.step`.

    Returns
    -------
    array of float
        Latency of each step; NaN where no tile fits or the device lacks a figure.

    Raises
    ------
    UnknownNameError, InputError
        As for :func:`iomodel.step`.

    Examples
    --------
    >>> times = step_array("llama-3-8b", "h100-sxm5", batch=[1, 8, 64], q_len=1, kv_len=[[1024], [8192]])
    >>> times.shape, bool((times[1] > times[0]).all())
    ((2, 3), True)
    """
    devices = as_devices(hardware, {})
    numbers = [_integers(name, value) for name, value in (("batch", batch), ("q_len", q_len), ("kv_len", kv_len))]
    places = np.arange(len(devices)) if len(devices) > 1 else np.zeros((), dtype=int)
    columns = _broadcast(*numbers, places)
    points, inverse = np.unique(np.stack([column.ravel() for column in columns]), axis=1, return_inverse=True)
    times = np.array([_timed(model, devices[where], (b, q, k), options) for b, q, k, where in points.T.tolist()])
    return times[inverse.ravel()].reshape(columns[0].shape)


def _timed(model: ModelSpec | str, device: Hardware, point: tuple[int, int, int], options: TimedStepOptions) -> float:
    size, queries, keys = point
    try:
        return step(model, device, batch=size, q_len=queries, kv_len=keys, **options).seconds
    except (SpecError, InfeasibleError):
        return float("nan")
