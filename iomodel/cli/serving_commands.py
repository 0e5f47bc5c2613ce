"""Commands for models on devices: `plan`, `step`, `fleet`, `pareto`, `disaggregate`, `simulate` and `train`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from iomodel.cli.common_options import DEVICE, Json
from iomodel.cli.documented import GROUPS, function, given, objects, of
from iomodel.cli.numbers import integer, real
from iomodel.cli.output import emit
from iomodel.cli.required import require
from iomodel.cli.signature import Options, option, switch, with_options
from iomodel.common.output_files import writable
from iomodel.common.yaml_files import spec_names
from iomodel.devices.device import list_hardware
from iomodel.errors import InputError, IOModelError, MissingRateError, shown

PLAN, FLEET, PARETO = "planning.plan:plan", "planning.fleet:fleet", "planning.pareto:pareto"
POOLS, SIMULATION = "planning.disaggregated:disaggregate", "planning.simulation.simulate:simulate"
STEP, TRAINING = "planning.step.step:step", "planning.training.train_step:train_step"
LAYOUT = GROUPS["layout"]
TIMED = ("batch", "clients", "load", "ttft", "tpot", "sensitivity", "emit")
"""Options of a plan that need times."""
UNSIZED = "no prompt and output given, such as --prompt 2048 --output 256"
RANKS = "Ranks that divide the heads and the widths of each layer (the best of a search)."
SEARCHED = of(LAYOUT.path, "Layout", LAYOUT.names, tensor_parallel=RANKS)
"""Degrees of a layout, of which a search completes those that are not given."""

Model = Annotated[
    str,
    typer.Argument(
        help="A model, or its file: YAML, or a config.json; or the command line that starts an engine.",
        autocompletion=lambda: spec_names("models"),
        show_default=False,
    ),
]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="[DEVICE=]PRICE",
        help="Price per device and hour: of all devices, as 2.5, or of one, as h100-sxm5=2.5; may be repeated.",
        rich_help_panel="Price",
        show_default=False,
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--hardware",
        metavar="NAME|FILE",
        help="A device to choose from; may be repeated (those with a price).",
        rich_help_panel="Device",
        autocompletion=list_hardware,
        show_default=False,
    ),
]
EMIT = option(
    "emit",
    "Print the command line of an engine in place of the tables: vllm, sglang or trtllm.",
    "Output",
    "ENGINE",
    ("vllm", "sglang", "trtllm"),
)


def service(path: str) -> list[Callable[[], Options]]:
    """Declare the options of a service with the parameters of a function."""
    types = "dtype weight_dtype kv_dtype linear_dtype precision page_size attention_algorithm"
    groups = [group.options for group in GROUPS.values() if group is not LAYOUT]
    return [
        of(path, "Types", types),
        of(path, "Memory", "memory_utilization overhead_bytes engine step_tokens step_requests moe_backend"),
        *groups,
    ]


@with_options(
    of(PLAN, "Request", "prompt output batch clients load ttft tpot", required="required for times"),
    [DEVICE],
    of(PLAN, "Layout", "count"),
    SEARCHED,
    *service(PLAN),
    of(PLAN, "Output", "sensitivity"),
    [EMIT],
)
def plan(model: Model, *, price: Prices = None, json: Json = False, **arguments: Any) -> None:
    """Plan a model on some devices: memory, speed, limiting resource, and cost per token.

    MODEL may also be the command line of an engine, such as 'vllm serve meta-llama/Llama-3.1-8B -tp 2'. Without a
    prompt and an output the answer is the memory alone, with requests of the model's context.

    Example:
      iomodel plan llama-3-8b --hardware h100-sxm5 --prompt 2048 --output 256 --price 2.5
    """
    unsized = arguments["prompt"] is None and arguments["output"] is None
    unsized = unsized and price is None and all(arguments[name] is None for name in TIMED)
    require(arguments, ("hardware",) if unsized else ("hardware", "prompt", "output"))
    question = _asked(arguments, PLAN)
    if unsized:
        emit(_memory_alone(model, question, UNSIZED), json)
        return
    prices = _price_table(price, [arguments["hardware"]])
    if prices is not None:
        question["price"] = _only_price(prices, arguments["hardware"])
    try:
        answer = _answer(PLAN, model, **question)
    except MissingRateError as error:
        if arguments["emit"] is not None:
            raise
        emit(_memory_alone(model, question, str(error)), json)
        return
    _emit_plan(answer, arguments["emit"], json)


def _memory_alone(model: Any, question: Mapping[str, Any], missing: str) -> Any:
    """Answer the memory of a plan whose times are unknown, and state why they are."""
    asked = {name: value for name, value in question.items() if name not in ("price", "layouts", *TIMED)}
    return replace(_answer("planning.memory_plan:memory_plan", model, **asked), missing=missing)


def _answer(path: str, model: Any, *devices: Any, **question: Any) -> Any:
    """Call a planning function; an error states the options of a command line that are passed over."""
    try:
        return function(path)(model, *devices, **question)
    except IOModelError as error:
        said = _passed_over(model)
        if said:
            error.args = (f"{error}; {said}", *error.args[1:])
        raise


def _passed_over(model: Any) -> str:
    """State the options of a command line without an effect; empty for a model, and for a line that is refused."""
    from iomodel.planning.engine_arguments import is_command, read_command

    try:
        return read_command(model).passed_over if is_command(model) else ""
    except IOModelError:
        return ""


@with_options(
    of(STEP, "Step", "batch q_len kv_len logits shared_keys prompt_tokens", q_len="New tokens per sequence (1).",
       kv_len="Keys per sequence, the new tokens included (of a prefill, --q-len)."),
    [DEVICE],
    LAYOUT.options,
    *service(STEP),
)  # fmt: skip
def step(model: Model, *, json: Json = False, **arguments: Any) -> None:
    """Time one forward step: a prefill, where every key is new, or the decoding of one token per sequence.

    Example:
      iomodel step llama-3-8b --hardware h100-sxm5 --batch 64 --kv-len 4096
    """
    decoding = ("kv_len",) if arguments["q_len"] in (None, "1") else ()
    require(arguments, ("hardware", *decoding))
    emit(function(STEP)(model, **{"q_len": 1, **_asked(arguments, STEP)}), json)


@with_options(
    of(FLEET, "Request", "prompt output"),
    of(FLEET, "Fleet", "load clients ttft tpot objective max_devices deviations"),
    SEARCHED,
    *service(FLEET),
    [EMIT],
)
def fleet(
    model: Model, *, hardware: Devices = None, price: Prices = None, json: Json = False, **arguments: Any
) -> None:
    """Find the smallest or the cheapest fleet that serves a load within latency targets.

    Example:
      iomodel fleet llama-3-8b --load 20 --prompt 2048 --output 256 --ttft 0.5 --tpot 0.05 --hardware h100-sxm5
    """
    require({**arguments, "hardware": hardware or price}, ("hardware", "prompt", "output", "ttft", "tpot"))
    prices = _price_table(price, hardware)
    result = _answer(FLEET, model, hardware or None, price=prices, **_asked(arguments, FLEET))
    if arguments["emit"] is None:
        emit(result, json)
        return
    fields = {**_point(arguments), "count": result.best.devices, "layout": result.best.layout}
    _emit_plan(function(PLAN)(model, _device(result.best, hardware or prices), **fields), arguments["emit"], json)


@with_options(
    of(PARETO, "Request", "prompt output"),
    of(PARETO, "Search", "batches weight_dtypes kv_dtypes replica_devices power_utilization"),
    of(PARETO, "Targets", "load ttft tpot percentile"),
    SEARCHED,
    *service(PARETO),
    [
        option("out", "A picture (.png, .svg) or a table of all points (.csv).", "Output", "FILE"),
        switch("force", "Replace an existing file.", "Output"),
        EMIT,
    ],
)
def pareto(
    model: Model, *, hardware: Devices = None, price: Prices = None, json: Json = False, **arguments: Any
) -> None:
    """Search devices, layouts, types and batches for the highest throughput at every speed per user.

    Example:
      iomodel pareto llama-3-8b --hardware h100-sxm5 --prompt 1024 --output 128 --replica-devices 2 --tpot 20ms
    """
    require({**arguments, "hardware": hardware or price}, ("hardware", "prompt", "output"))
    target, prices = _target(arguments), _price_table(price, hardware)
    result = _answer(PARETO, model, hardware or None, price=prices, **_asked(arguments, PARETO))
    if target is not None:
        _write(result, target)
    if arguments["emit"] is None:
        emit(result, json)
        return
    best = result.cheapest
    if best is None:
        raise InputError("emit: given without a target; allowed: with --ttft or --tpot, which choose a point")
    fields = {**_point(arguments), "count": best.devices, "layout": best.layout, "batch": best.batch}
    fields |= {name: getattr(best, name) for name in ("weight_dtype", "kv_dtype") if arguments[f"{name}s"] is not None}
    _emit_plan(function(PLAN)(model, _device(best, hardware or prices), **fields), arguments["emit"], json)


@with_options(
    of(POOLS, "Request", "prompt output"),
    of(POOLS, "Pools", "prefill decode link batch load tpot"),
    [
        option("prefill_tensor_parallel", "Ranks of tensor parallelism that prefill (the best).", "Pools"),
        option("decode_tensor_parallel", "Ranks of tensor parallelism that decode (the best).", "Pools"),
    ],
    *service(POOLS),
)
def disaggregate(model: Model, *, price: Prices = None, json: Json = False, **arguments: Any) -> None:
    """Plan prefill and decode on separate devices, with the transfer of the cache between them.

    Example:
      iomodel disaggregate llama-3-8b --prefill h100-sxm5 --decode h200-sxm --prompt 2048 --output 256
    """
    require(arguments, ("prefill", "prompt", "output"))
    ranks = {pool: arguments[f"{pool}_tensor_parallel"] for pool in ("prefill", "decode")}
    layouts = {
        f"{pool}_layout": function(LAYOUT.path)(tensor_parallel=integer(f"{pool}_tensor_parallel", text))
        for pool, text in ranks.items()
        if text is not None
    }
    prices = _price_table(price, {arguments["prefill"], arguments["decode"] or arguments["prefill"]})
    emit(_answer(POOLS, model, price=prices, **layouts, **_asked(arguments, POOLS)), json)


@with_options(
    of(SIMULATION, "Requests", "prompt output lengths arrivals concurrency load requests scale seed", arrivals="A "
       "file of requests, CSV or JSON: arrival, prompt, output, or the names that traces and benchmarks use."),
    [DEVICE],
    of(SIMULATION, "Engine", "policy token_budget batch host_seconds"),
    SEARCHED,
    *service(SIMULATION),
)  # fmt: skip
def simulate(model: Model, *, json: Json = False, **arguments: Any) -> None:
    """Simulate a serving engine: percentiles of the time to the first token and of the time per output token.

    Example:
      iomodel simulate llama-3-8b --hardware h100-sxm5 --prompt 2048 --output 256 --load 4 --policy chunked
    """
    require(arguments, ("hardware",))
    emit(_answer(SIMULATION, model, **_asked(arguments, SIMULATION)), json)


@with_options(
    [DEVICE],
    of(TRAINING, "Step", "batch seq_len micro_batch framework recompute recompute_layers precision gradient_dtype "
       "kernels attention_algorithm attention_implementation measured",
       attention_implementation="Its kernels (the fastest)."),
    of(TRAINING, "Devices", "count data_parallel shard nodes_per_token virtual_stages overlap",
       overlap="Collectives beside products: data, tensor, pipeline, context, experts, none (first four)."),
    LAYOUT._replace(
        names="tensor_parallel pipeline_parallel expert_parallel context_parallel devices_per_node"
    ).options,
)  # fmt: skip
def train(model: Model, *, json: Json = False, **arguments: Any) -> None:
    """Estimate the time and the memory of a training step with Adam.

    Example:
      iomodel train llama-3-8b --hardware h100-sxm5 --batch 64 --seq-len 4096 --data-parallel 8 --recompute full
    """
    require(arguments, ("hardware", "batch", "seq_len"))
    fields = _asked(arguments, TRAINING)
    if "overlap" in fields:
        fields["overlap"] = [name for name in fields["overlap"].split(",") if name != "none"]
    emit(function(TRAINING)(model, **fields), json)


def _asked(arguments: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Collect the arguments of a function that are given, its objects included."""
    return {**given(arguments, path), **objects(arguments, path)}


def _point(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the arguments of a plan but for load and targets, which chose the point already."""
    return {name: value for name, value in _asked(arguments, PLAN).items() if name not in ("load", "ttft", "tpot")}


def _device(best: Any, names: Iterable[str] | None) -> Any:
    """Return the device of the best option of a search, which may come from a file."""
    from iomodel.devices.device import as_device

    devices = [as_device(name) for name in names or ()]
    return next(candidate for candidate in devices if best.device in (candidate.id, candidate.name))


def _emit_plan(result: Any, engine: str | None, as_json: bool) -> None:
    """Print a plan, or the command line of an engine for it."""
    if engine is None:
        emit(result, as_json, explained=True)
        return
    from iomodel.planning.engine_flags import engine_flags

    flags = engine_flags(result, engine)
    emit(flags if as_json else flags.text, as_json)


def _price_table(typed: list[str] | None, devices: Iterable[str] | None) -> dict[str, Any] | None:
    """Parse the price of each device, or one price of all of them, without duplicates; None if there are none."""
    prices: dict[str, Any] = {}
    for entry in typed or ():
        name, equals, price = entry.rpartition("=")
        names = [name] if equals else list(devices or ())
        if not price or not all(names) or not names:
            raise InputError(
                f"price: {shown(entry)} given; allowed: DEVICE=PRICE, such as h100-sxm5=2.5, or with --hardware a price"
            )
        for device in names:
            if device in prices:
                raise InputError(f"price: {device} is given twice; allowed: one price for each device")
            prices[device] = real(price)
    return prices or None


def _only_price(prices: Mapping[str, Any], device: str) -> Any:
    """Return the price of a plan's only device."""
    if [*prices] != [device]:
        raise InputError(f"price: given for {', '.join(prices)}; allowed: a price of {device}, the device of the plan")
    return prices[device]


def _target(arguments: Mapping[str, Any]) -> Path | None:
    """Check the output file before the search."""
    if arguments["out"] is None:
        return None
    return writable(arguments["out"], (".png", ".svg", ".csv"), overwrite=bool(arguments["force"]), switch="--force")


def _write(result: Any, target: Path) -> None:
    if target.suffix.lower() == ".csv":
        result.to_pandas().to_csv(target, index=False)
        return
    from iomodel.plots import pareto as draw
    from iomodel.plots import save

    save(draw(result), target)
