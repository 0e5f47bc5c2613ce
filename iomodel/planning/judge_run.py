"""Judgement of a measured benchmark: the figures of the same set-up as planned, and the changes that explain them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from iomodel.common.display import Result, Table, trusted
from iomodel.common.keywords import strict
from iomodel.common.option_groups import check_names, listing, options_in
from iomodel.common.results import Record, column, printed
from iomodel.common.tabular import Tabular
from iomodel.common.validation import as_integer
from iomodel.devices.device import Hardware, as_device, names_meant
from iomodel.errors import InputError, IOModelError, shown
from iomodel.models.file_types import file_type
from iomodel.models.registry import ModelSpec
from iomodel.planning.benchmark_files import BenchmarkRun, StatedSetup, read_benchmark
from iomodel.planning.engine_arguments import GGML_CACHES, of_gguf, shipped_name
from iomodel.planning.engines import BENCH, ENGINES, GGML, as_engine, name_and_release
from iomodel.planning.formatting import layout_text
from iomodel.planning.intervals import tpot_interval, ttft_interval
from iomodel.planning.memory_parts import logged_tokens
from iomodel.planning.memory_plan import memory_plan
from iomodel.planning.plan import plan
from iomodel.planning.simulation.simulate import simulate
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step_arguments import PRECISIONS, as_model

SHARE_OF_PARTS = 0.03
"""Tolerance of the parts of memory of an engine, as tests hold them to public start-up logs [-]."""
MOST_SIMULATED = 400
"""Most random arrivals of a simulation; longer runs have the same means."""
FEW_TURNS = 4
"""Requests per client below which the start and the end of a run are a large part of it [-]."""
OWN_ENGINES = {
    BENCH: BENCH, "vllm bench throughput": "vllm", "sglang.bench_offline_throughput": "sglang", "llama-bench": GGML,
}  # fmt: skip
"""Programs that run an engine of their own."""
BETTER = 1.1
"""Ratio of rates from which a change is worth a try [-]."""
FIGURES = {
    "ttft": ("TTFT", "ms", 1e3),
    "tpot": ("TPOT", "ms", 1e3),
    "tokens_per_second": ("output tokens/s", "1/s", 1.0),
    "requests_per_second": ("requests/s", "1/s", 1.0),
    "weights": ("weights", "GB", 1e-9),
    "kv_bytes": ("memory of the cache", "GB", 1e-9),
    "kv_tokens": ("tokens of the cache", "tokens", 1.0),
    "requests_that_fit": ("requests that fit", "-", 1.0),
}
"""Label, printed unit and factor of each figure."""
MEMORY = ("weights", "kv_bytes", "kv_tokens", "requests_that_fit")
REMEDIES = ("weights", "cache", "tensor")
"""First words of the changes that can be made to a run."""
BRANDS = ("nvidia", "amd", "intel", "geforce", "instinct", "tesla", "graphics", "gpu", "tensor", "core")


@dataclass(frozen=True)
class JudgedFigure(Record):
    """A measured figure beside its prediction.

    Attributes
    ----------
    name : str
        ``ttft``, ``tpot`` [s], ``tokens_per_second``, ``requests_per_second`` [1/s], ``weights``, ``kv_bytes`` [B],
        ``kv_tokens`` or ``requests_that_fit``.
    measured, predicted, low, high : float
        Figure of the file, and that of the plan with the interval of eight in ten published ones.
    """

    derived = ("error", "inside")

    name: str = field(metadata=column("figure", lambda name: FIGURES[name][0]))
    measured: float
    predicted: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Predicted over measured, less one [-]."""
        return self.predicted / self.measured - 1

    @property
    def inside(self) -> bool:
        """Measured figure within the interval."""
        return self.low <= self.measured <= self.high

    def cells(self) -> tuple[str, ...]:
        """Write the row of the printed table."""
        _, unit, factor = FIGURES[self.name]
        numbers = [f"{factor * value:,.4g}" for value in (self.measured, self.predicted, self.low, self.high)]
        return (
            f"{FIGURES[self.name][0]} [{unit}]", *numbers[:2], f"{numbers[2]} .. {numbers[3]}",
            f"{100 * self.error:+.0f} %", "yes" if self.inside else "no",
        )  # fmt: skip


@dataclass(frozen=True)
class JudgedChange(Record):
    """A change of the planned set-up.

    Attributes
    ----------
    change : str
        Description.
    error : float
        Mean ratio of its figures to the measured ones, in either direction, less one [-].
    tokens_per_second : float or None
        Predicted rate of output tokens [1/s].
    remedy : bool
        The change can be made; the others say what the run may have had.
    """

    change: str = field(metadata=column("change"))
    error: float = field(metadata=column(">error\n[%]", lambda error: f"{100 * error:.0f}"))
    tokens_per_second: float | None = field(
        metadata=column(">output\ntokens/s", lambda rate: "" if rate is None else f"{rate:,.0f}")
    )
    remedy: bool = False


@dataclass(frozen=True)
class JudgedRun(Result, Tabular):
    """A benchmark, or the start of an engine, judged by a plan of the same set-up.

    Attributes
    ----------
    source : str
        Program that wrote the file.
    model, hardware : str
        Names.
    layout : Layout
        Parallel layout of a replica.
    setting : mapping
        Rest of the planned set-up.
    figures : tuple of JudgedFigure
        Measured figures beside the predicted ones.
    changes : tuple of JudgedChange
        Changes of the set-up, the nearest to the measurement first.
    limits : tuple of str
        Limiting resources of the plan.
    assumed, left_out, notes : tuple of str
        Assumptions, effects without a time, and choices of the reader.
    """

    derived = ("error", "inside")

    source: str
    model: str
    hardware: str
    layout: Layout
    setting: Mapping[str, Any]
    figures: tuple[JudgedFigure, ...]
    changes: tuple[JudgedChange, ...]
    limits: tuple[str, ...]
    assumed: tuple[str, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    @printed(column(">error\n[%]"))
    def error(self) -> float:
        """Mean ratio of the predicted to the measured figures, in either direction, less one [-]."""
        return _error({each.name: each.predicted for each in self.figures}, {f.name: f.measured for f in self.figures})

    @property
    def inside(self) -> bool:
        """All figures within their intervals."""
        return all(each.inside for each in self.figures)

    @property
    def explained(self) -> tuple[str, ...]:
        """Changes that bring the prediction nearer to the measurement, the nearest first."""
        return tuple(each.change for each in self.changes if each.error < 0.7 * self.error)

    @property
    def tries(self) -> tuple[str, ...]:
        """Changes with a rate more than a tenth above the planned one."""
        own = next((each.predicted for each in self.figures if each.name == "tokens_per_second"), None)
        if own is None:
            return ()
        better = [each for each in self.changes if each.remedy and (each.tokens_per_second or 0.0) > BETTER * own]
        return tuple(each.change for each in sorted(better, key=lambda each: -(each.tokens_per_second or 0.0)))

    def records(self) -> list[dict[str, Any]]:
        """Return a mapping per figure."""
        return [each.to_dict() for each in self.figures]

    def tables(self) -> list[Table | str]:
        """Return the tables of the terminal."""
        where = f"{self.model} on {self.hardware} ({layout_text(self.layout)})"
        title = f"{self.source}: {where}, {', '.join(f'{name} {value}' for name, value in self.setting.items())}"
        names = ("figure", ">measured", ">planned", ">interval", ">error", "inside")
        drawn: list[Table | str] = [Table(title, names, [each.cells() for each in self.figures])]
        if self.changes:
            drawn.append(Table.of("The same with one change", JudgedChange, self.changes))
        drawn.append(self._verdict())
        drawn += [f"limit: {line}" for line in self.limits]
        drawn += [f"to try: {line}" for line in self.tries]
        return [*drawn, *trusted(self.left_out, self.assumed), *(f"note: {line}" for line in self.notes)]

    def _verdict(self) -> str:
        if self.inside:
            return "explained: every figure is within its interval"
        if self.explained:
            return f"nearest to the measurement: {self.explained[0]}"
        return "not explained by one of these changes"


class Setup(NamedTuple):
    """Set-up of a run: what is planned, and under which load; `started` if memory alone was measured.

    `others` are further devices that the name of the device may mean. No server, no cached prefix and no other engine
    is possible in a `bare` run.
    """

    model: ModelSpec | str
    device: Hardware
    layout: Layout
    prompt: int
    output: int
    clients: int | None
    load: float | None
    requests: int | None
    replicas: int
    service: dict[str, Any]
    started: bool
    others: tuple[str, ...] = ()
    bare: bool = False


@strict
@listing(options_in(StatedSetup).values())
def judge_run(
    file: str | Path,
    hardware: Hardware | str | None = None,
    *,
    layout: Layout | None = None,
    replicas: int | None = None,
    **stated: Unpack[StatedSetup],
) -> JudgedRun:
    """Judge the result of a benchmark, or the start-up log of an engine, by a plan of the same set-up.

    The arguments replace what the file states, or add what it lacks. A closed loop of clients is planned, also where
    they are too few for the arrivals; random arrivals, and runs with fewer than four requests per client, such as one
    whose requests are all there at its start, are simulated; a start-up log is compared with the memory of the engine.

    Parameters
    ----------
    file : str or Path
        What `vllm bench`, `sglang.bench_serving`, `sglang.bench_offline_throughput`, `trtllm-bench`, genai-perf,
        AIPerf, GuideLLM, llama-bench, InferenceMAX or MLPerf write, or print; or the log of vLLM or SGLang.
    hardware : Hardware or str, optional
        The device.
    layout : Layout, optional
        Parallel layout of a replica.
    replicas : int, optional
        Replicas behind the server, by default one.
    **stated

    Raises
    ------
    InputError, UnknownNameError, InfeasibleError
        The file cannot be read, the set-up lacks a part, or cannot be planned.

    Examples
    --------
    >>> import json, os, tempfile
    >>> run = {"hw": "h200", "conc": 4, "isl": 1024, "osl": 1024, "tp": 1, "model": "meta-llama/Llama-3.1-8B-Instruct",
    ...        "tput_per_gpu": 1000.0, "mean_ttft": 0.03, "mean_tpot": 0.0055, "framework": "vllm", "precision": "bf16"}
    >>> path = os.path.join(tempfile.mkdtemp(), "result.json")
    >>> with open(path, "w") as file:
    ...     json.dump(run, file)
    >>> judged = judge_run(path)
    >>> judged.hardware, [figure.name for figure in judged.figures]
    ('h200-sxm', ['ttft', 'tpot'])
    """
    check_names(judge_run, stated)
    run = read_benchmark(file)
    given = {name: value for name, value in {"hardware": hardware, **stated}.items() if value is not None}
    whole = {**(_of_llama_bench(run, given) if run.source == "llama-bench" else run.setting), **given}
    if "clients" in given:
        whole.pop("load", None)
    setup, notes = _setup(run, whole, layout, replicas)
    measured = _measured(run, setup)
    planned = _planned(setup)
    figures = tuple(
        JudgedFigure(name, measured[name], *planned.figures[name]) for name in FIGURES if name in measured
        if name in planned.figures
    )  # fmt: skip
    if not figures:
        raise InputError(f"file: {', '.join(run.measured)} measured; allowed: one of {', '.join(FIGURES)}")
    return JudgedRun(
        source=run.source,
        model=planned.model,
        hardware=setup.device.label,
        layout=setup.layout,
        setting=_told(setup),
        figures=figures,
        changes=_changes(setup, {each.name: each.measured for each in figures}),
        limits=planned.limits,
        assumed=planned.assumed,
        left_out=planned.left_out,
        notes=(*run.notes, *notes, *planned.notes),
    )


def _setup(run: BenchmarkRun, stated: dict[str, Any], layout: Layout | None, replicas: int | None) -> tuple[Setup, Any]:
    """Complete the set-up of a file."""
    notes = []
    device, count, others = _device(stated.get("hardware"))
    if isinstance(stated.get("hardware"), str) and stated["hardware"] != device.id and "hardware" in run.setting:
        notes.append(f"device {device.id} for {shown(stated['hardware'])}")
    if stated.get("model") is None:
        raise InputError("model: the file names none; allowed: the name of a model, such as llama-3.1-8b")
    named = shipped_name(stated["model"]) if isinstance(stated["model"], str) else stated["model"]
    placed, layers = stated.get("gpu_layers"), len(as_model(named).layers)
    if placed is not None and placed < layers:
        notes.append(f"{placed} of {layers} layers are on the device in the file; all are planned there")
    used = layout or Layout(
        tensor_parallel=stated.get("tensor_parallel", 1),
        pipeline_parallel=stated.get("pipeline_parallel", 1),
        expert_parallel=stated.get("expert_parallel", 1),
    )
    copies = as_integer("replicas", replicas) if replicas is not None else max(1, count // used.devices)
    started = not run.measured.keys() - set(MEMORY)
    for name in ("prompt", "output"):
        if stated.get(name) is None and not started:
            raise InputError(f"{name}: the file states no lengths; allowed: mean tokens, as {name}=1024")
    service: dict[str, Any] = {
        name: stated[name] for name in ("memory_utilization", "step_tokens", "step_requests") if name in stated
    }
    engine: str | None
    engine, release = name_and_release(str(stated.get("engine")))
    if engine not in ENGINES and engine != GGML:
        engine, release = OWN_ENGINES.get(run.source), ""
    if engine is not None:
        service["engine"] = f"{engine}=={release}" if release else engine
    service |= stated["types"] if "types" in stated else _types(stated, engine, notes)
    if (drafts := str(run.setting.get("speculation", "none")).lower()) not in ("none", "false"):
        notes.append(f"speculative decoding ({shown(drafts)}) of the file is left out; each step gives one token")
    load, requests = stated.get("load"), stated.get("requests")
    clients = stated.get("clients") or (None if load or started else requests)
    bare = engine == GGML and OWN_ENGINES.get(run.source) == GGML
    if not (clients or load or started or bare):
        notes.append("the file states neither clients nor a load: as many requests at a time as fit")
    if run.source == BENCH and requests and clients == run.setting.get("clients", 0) >= requests / 2:
        clients = requests  # the mean in flight, at least half of requests that are all there at the start
    setup = Setup(
        model=named,
        device=device,
        layout=used,
        prompt=stated.get("prompt") or max(1, stated.get("context", 4096) - 1),
        output=stated.get("output") or 1,
        clients=clients,
        load=load,
        requests=requests,
        replicas=copies,
        service=service,
        started=started,
        others=others,
        bare=bare,
    )
    return setup, notes


def _of_llama_bench(run: BenchmarkRun, given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert what llama-bench states: a file, its type in words, all devices by name, and the types of K and of V.

    One request runs, its prompt or its output of one token where the file has no test of it. A type that is `given`,
    by itself or in the name of the model, replaces that of the file.
    """
    stated = {"prompt": 1, "output": 1, **run.setting}
    if "model" in stated:
        stated["model"], _ = of_gguf(stated["model"])
    devices = str(stated.get("hardware", "")).split(", ")
    if len({*devices}) == 1 and devices[0]:
        stated["hardware"] = devices[0]
        stated["pipeline_parallel"] = 1 if stated.get("split") == "none" else len(devices)
    kept = [str(stated.get(name, "f16")).lower() for name in ("key_dtype", "value_dtype")]
    caches = dict.fromkeys(GGML_CACHES.get(each, each) for each in kept)
    types = {"kv_dtype": "/".join(caches), **_weights_in_words(str(stated.get("precision", "")))}
    if "precision" in given or (isinstance(given.get("model"), str) and of_gguf(given["model"])[1] is not None):
        types.pop("weight_dtype", None)
    stated["types"] = {**types, **{name: given[name] for name in ("precision", "kv_dtype") if name in given}}
    return stated


def _weights_in_words(kind: str) -> dict[str, str]:
    """Return the type of weights in a description of llama.cpp, such as "llama 8B Q4_K - Medium"."""
    words = re.search(r"([a-z]+\d+(?:_\w+)?)(?: (moe|mix))?(?: - (\w+).*)?(?: \(guessed\))?$", kind.lower())
    if words is None:
        return {}
    kind = f"{words[1].removesuffix('_s')}_m" if words[2] == "mix" else words[1]  # IQ3_S mix is IQ3_M
    named = [f"{kind}_{end}" for end in (words[2], (words[3] or "")[:1]) if end]
    known = next(filter(None, map(file_type, [*named, kind])), GGML_CACHES.get(kind))
    return {} if known is None else {"weight_dtype": known}


def _types(stated: Mapping[str, Any], engine: str | None, notes: list[str]) -> dict[str, Any]:
    """Return the precision and the type of the cache of a file, as far as they are known here.

    Where the file states a precision alone, the cache has the default of the engine: fp8 in the checkpoints of
    TensorRT-LLM, else bf16.
    """
    found: dict[str, Any] = {}
    named = str(stated.get("model")).lower()
    in_name = next((word for word in ("nvfp4", "fp8", "mxfp4") if word in named), "")
    precision = str(stated.get("precision") or in_name).lower()
    known = {"fp4": "nvfp4", "w4a16": "int4", "bfloat16": "bf16"}.get(precision, precision)
    if known in PRECISIONS and known != "bf16":
        found["precision"] = known
    elif known not in ("", "bf16", "none"):
        notes.append(f"precision {shown(precision)} of the file is passed over")
    cache = str(stated.get("kv_dtype") or "").lower().split("_")[0]
    if cache in ("fp8", "int8", "nvfp4", "int4"):
        found["kv_dtype"] = cache
    elif known in ("fp8", "int8", "nvfp4", "mxfp4", "int4") and engine is not None:
        found["kv_dtype"] = "fp8" if engine in ("tensorrt-llm", BENCH) else "bf16"
    return found


def _device(named: object) -> tuple[Hardware, int, tuple[str, ...]]:
    """Find a device, the number of them in a name such as "4xNVIDIA_L40S", without it 1, and others of the name."""
    if named is None:
        raise InputError("hardware: the file names no device; allowed: one, such as h100-sxm5")
    if not isinstance(named, str):
        return as_device(named), 1, ()  # type: ignore[arg-type]
    words = named.lower().replace("_", "-").replace(" ", "-")
    number, times, rest = words.partition("x")
    count = int(number) if times and number.isascii() and number.isdigit() and len(number) < 5 else 1
    words = rest.lstrip("-") if count > 1 or number == "1" else words
    short = "-".join(word for word in words.split("-") if word and word not in BRANDS)
    family = short.partition("-")[0]
    likely = (named, short, family) if count == 1 else (short, family)
    name = next(filter(names_meant, likely), named)
    device = as_device(name)
    return device, count, tuple(other for other in names_meant(name) if other != device.id)


def _measured(run: BenchmarkRun, setup: Setup) -> dict[str, float]:
    """Return the figures of all devices."""
    found = dict(run.measured)
    each = found.pop("tokens_per_device", None)
    if each is not None:
        found["tokens_per_second"] = each * setup.layout.devices * setup.replicas
    return found


class Planned(NamedTuple):
    """Predicted figures with their intervals, and what is told beside them."""

    model: str
    figures: dict[str, tuple[float, float, float]]
    limits: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _planned(setup: Setup) -> Planned:
    if setup.started:
        return _of_memory(setup)
    if setup.load is not None and setup.clients is not None and not _short(setup):
        # Clients hold a request back, and do not yet count its time, while as many as their most are in flight
        # (the semaphore of vllm/benchmarks/serve.py and of sglang/bench_serving.py).
        held = _of_clients(setup)
        return held if held.figures["requests_per_second"][0] <= setup.load else _simulated(setup)
    return _simulated(setup) if setup.load is not None or _short(setup) else _of_clients(setup)


def _short(setup: Setup) -> bool:
    """Tell whether the clients of a closed loop have few requests each, in a layout that can be simulated."""
    few = setup.requests is not None and setup.requests < FEW_TURNS * (setup.clients or 1)
    return few and setup.requests != 1 and setup.layout.pipeline_parallel == 1


def _of_clients(setup: Setup) -> Planned:
    """Plan a closed loop of clients, or as many requests as fit."""
    count = setup.replicas * setup.layout.devices
    clients = None if setup.clients is None else max(setup.clients, setup.replicas)
    answer = plan(
        setup.model, setup.device, count=count, layout=setup.layout, prompt=setup.prompt, output=setup.output,
        clients=clients, **setup.service,
    )  # fmt: skip
    first, span = answer.ttft, answer.ttft_interval
    if setup.bare:
        first = answer.figures.ttft_alone
        span = ttft_interval(answer.prefill.model, first)
    spans = {"ttft": span or (first, first), "tpot": answer.tpot_interval}
    rates = {"tokens_per_second": answer.tokens_per_second, "requests_per_second": answer.requests_per_second}
    limits = (f"{answer.prefill_bound} in a prefill, {answer.decode_bound} in a decode step",)
    times = {"ttft": first, "tpot": answer.tpot}
    return Planned(
        answer.model, _with_spans(times, spans, rates), limits, answer.assumed, answer.left_out, answer.notes
    )


def _simulated(setup: Setup) -> Planned:
    """Simulate random arrivals at one of the replicas, or a closed loop from its start to its end."""
    requests, clients = (
        None if each is None else max(1, -(-each // setup.replicas)) for each in (setup.requests, setup.clients)
    )
    if setup.load is None:
        arrivals: dict[str, Any] = {"concurrency": clients, "requests": requests}
    else:
        arrivals = {"load": setup.load / setup.replicas, "requests": min(requests or MOST_SIMULATED, MOST_SIMULATED)}
    answer = simulate(
        setup.model, setup.device, prompt=setup.prompt, output=setup.output, layout=setup.layout,
        **arrivals, **setup.service,
    )  # fmt: skip
    spec = as_model(setup.model)
    batch = max(1, round(answer.mean_batch))
    times = {"ttft": answer.ttft.mean, "tpot": answer.tpot.mean}
    spans = {"ttft": ttft_interval(spec, answer.ttft.mean), "tpot": tpot_interval(spec, batch, answer.tpot.mean)}
    rates = {
        "tokens_per_second": setup.replicas * answer.tokens_per_second,
        "requests_per_second": setup.replicas * answer.requests_per_second,
    }
    limits = (f"utilisation of the engine {100 * answer.utilization:.0f} %",)
    figures = _with_spans(times, spans, rates)
    return Planned(answer.model, figures, limits, answer.assumed, answer.left_out, answer.notes)


def _with_spans(
    times: Mapping[str, float | None], spans: Mapping[str, tuple[float, float] | None], rates: Mapping[str, float]
) -> dict[str, tuple[float, float, float]]:
    """Join the times with their intervals; rates have the inverse interval of the time per token, or of the first."""
    found = {
        name: (value, *span) for name, value in times.items() if value and (span := spans[name]) is not None
    }  # fmt: skip
    value, *ends = found.get("tpot") or found.get("ttft") or (1.0, 1.0, 1.0)
    low, high = (end / value for end in ends)
    return {**found, **{name: (rate, rate / high, rate / low) for name, rate in rates.items()}}


def _of_memory(setup: Setup) -> Planned:
    """Plan the memory of an engine."""
    answer = memory_plan(
        setup.model, setup.device, layout=setup.layout, prompt=setup.prompt, output=setup.output, **setup.service
    )
    fit = answer.memory
    length = setup.prompt + setup.output
    tokens = logged_tokens(fit, as_engine(setup.service.get("engine")), length)
    parts: dict[str, float] = {"weights": fit.weights, "kv_bytes": fit.left, "kv_tokens": tokens}
    parts["requests_that_fit"] = fit.tokens / length if fit.concurrency is None else fit.concurrency / fit.groups
    low, high = 1 - SHARE_OF_PARTS, 1 + SHARE_OF_PARTS
    figures = {name: (float(value), low * value, high * value) for name, value in parts.items()}
    return Planned(answer.model, figures, notes=(*(f"log: {line}" for line in fit.log), *answer.notes))


def _error(predicted: Mapping[str, float], measured: Mapping[str, float]) -> float:
    """Return the mean ratio of figures to the measured ones in either direction, less one [-]."""
    ratios = [abs(log(max(predicted[name], 1e-12) / measured[name])) for name in measured if name in predicted]
    return exp(sum(ratios) / len(ratios)) - 1 if ratios else float("inf")


def _changes(setup: Setup, measured: Mapping[str, float]) -> tuple[JudgedChange, ...]:
    """Plan the set-up with one change at a time."""
    tried = []
    for change, changed in _variants(setup):
        try:
            figures = {name: value for name, (value, *_) in _planned(changed).figures.items()}
        except IOModelError:
            continue
        if not all(figures[name] for name in measured if name in figures):
            continue  # the changed set-up does not fit
        remedy = change.startswith(REMEDIES)
        tried.append(JudgedChange(change, _error(figures, measured), figures.get("tokens_per_second"), remedy))
    return tuple(sorted(tried, key=lambda each: each.error))


def _variants(setup: Setup) -> list[tuple[str, Setup]]:
    """List changes of a set-up that a file often leaves out."""

    def using(**service: Any) -> Setup:
        kept = {name: value for name, value in {**setup.service, **service}.items() if value is not None}
        return setup._replace(service=kept)

    found: list[tuple[str, Setup]] = []
    precision = setup.service.get("precision")
    for other in ("fp8", "bf16"):
        if precision != other and not (precision is None and other == "bf16"):
            found.append((f"weights, products and cache in {other}", using(precision=other)))
    if "kv_dtype" not in setup.service and precision != "fp8":
        found.append(("cache in fp8", using(kv_dtype="fp8")))
    for name in () if setup.bare else ENGINES:
        if name_and_release(str(setup.service.get("engine")))[0] != name:
            found.append((f"engine {name}", using(engine=name)))
    found += [(f"device {name}", setup._replace(device=as_device(name))) for name in setup.others]
    tensor = setup.layout.tensor_parallel
    for degree in (2 * tensor, tensor // 2):
        if degree and (setup.started or degree > tensor):
            layout = setup.layout.model_copy(update={"tensor_parallel": degree})
            found.append((f"tensor parallelism of {degree}", setup._replace(layout=layout)))
    if not setup.started and not setup.bare:
        from iomodel.planning.prefix_cache import PrefixCache

        found.append(("half of each prompt cached", using(prefix_cache=PrefixCache(hit_rate=0.5))))
        if setup.clients and setup.clients > 1:
            found.append(("half of the clients at a time", setup._replace(clients=-(-setup.clients // 2))))
    return found


def _told(setup: Setup) -> dict[str, Any]:
    """Return the set-up as it is told."""
    told: dict[str, Any] = {"prompt": setup.prompt, "output": setup.output}
    for name in ("clients", "load"):
        if getattr(setup, name) is not None:
            told[name] = getattr(setup, name)
    if setup.replicas > 1:
        told["replicas"] = setup.replicas
    return {**told, **setup.service}
