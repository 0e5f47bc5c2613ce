"""Commands for capacity planning: the plan of a model on devices, and the fleet for a load."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from iomodel.cli.numbers import duration, integer, rate, real, size
from iomodel.cli.options import DEVICE, DTYPES, KV_DTYPES, Json
from iomodel.cli.output import emit
from iomodel.cli.required import require
from iomodel.cli.signature import option, switch, with_options
from iomodel.devices.device import list_hardware
from iomodel.errors import InputError, shown
from iomodel.planning.engines import ENGINES

Model = Annotated[str, typer.Argument(help="A model, or its file: YAML, or a config.json.", show_default=False)]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="DEVICE=PRICE",
        help="Price per device and hour, such as h100-sxm5=2.5; may be repeated.",
        rich_help_panel="Fleet",
        show_default=False,
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--hardware",
        metavar="NAME|FILE",
        help="A device to choose from; may be repeated (those with a price).",
        rich_help_panel="Fleet",
        autocompletion=list_hardware,
        show_default=False,
    ),
]
REQUEST = [
    option("prompt", "Tokens of a prompt (required).", "Request"),
    option("output", "Tokens of an output (required).", "Request"),
]
TYPES = [
    option("dtype", f"{', '.join(DTYPES)} (the model's).", "Types", "NAME", DTYPES),
    option("weight_dtype", "Type of the weights (the model's), such as fp8.", "Types", "NAME"),
    option("kv_dtype", "Type of the KV cache (--dtype), such as fp8.", "Types", "NAME", KV_DTYPES),
    option("precision", "Weights, products and cache: bf16, fp8, int8, fp4, mxfp4, int4.", "Types", "NAME"),
    option("linear_dtype", "Type of the products of linear layers (that of the weights or --dtype).", "Types", "NAME"),
    option("page_size", "Tokens per page of the cache, such as 16.", "Types"),
]
MEMORY = [
    option("memory_utilization", "Usable share of a device's memory (0.9, or the engine's).", "Memory", "SHARE"),
    option("overhead_bytes", "Memory for anything but weights and cache (2 GiB, or the engine's).", "Memory", "SIZE"),
    option("engine", "Engine to assume: vllm, sglang or tensorrt-llm.", "Memory", "NAME", tuple(ENGINES)),
]
CACHE = [
    option("shared_tokens", "Tokens of a prefix that all requests share, cached once (0).", "Prefix cache"),
    option("hit_rate", "Share of the other tokens of a prompt that are cached (0).", "Prefix cache", "SHARE"),
    option("host_rate", "Share of them that is loaded from the memory of the host (0).", "Prefix cache", "SHARE"),
    option("disk_rate", "Share of them that is loaded from a disk (0).", "Prefix cache", "SHARE"),
    switch("cascade", "Read the shared prefix once for all requests of a decode step.", "Prefix cache"),
]
PLAN = [
    option("count", "Devices (those of one replica).", "Layout"),
    option("tensor_parallel", "Ranks of tensor parallelism (the fewest that fit).", "Layout"),
    option("pipeline_parallel", "Stages of pipeline parallelism (1).", "Layout"),
    option("expert_parallel", "Ranks of expert parallelism (1).", "Layout"),
    option("decode_context_parallel", "Ranks that divide the tokens of the cache (1).", "Layout"),
    option("redundant_experts", "Further copies of experts, so that ranks divide them (0).", "Layout"),
    option("devices_per_node", "Devices of a node, with one of the above; a network joins nodes (all).", "Layout"),
    option("network_bandwidth", "Bandwidth between nodes per device, such as 25GB/s (50GB/s).", "Layout", "RATE"),
    option("batch", "Requests decoded together in a replica (all that fit).", "Request"),
    option("price", "Price per device and hour, such as 2.5.", "Price", "PRICE"),
    switch("sensitivity", "Show the effect of one more GB/s, GB, SM and TFLOP/s.", "Output"),
]
TARGETS = [
    option("load", "Requests per second, such as 20 (required).", "Fleet", "RATE"),
    option("ttft", "Target mean time to the first token, such as 0.5 or 500ms (required).", "Fleet", "TIME"),
    option("tpot", "Target mean time per output token, such as 0.05 or 50ms (required).", "Fleet", "TIME"),
    option("objective", "Minimised quantity: devices (default) or cost.", "Fleet", "NAME", ("devices", "cost")),
    option("max_count", "Largest number of devices (1024).", "Fleet"),
]
DRAFTS = [
    option("draft_tokens", "Draft tokens that each step verifies, such as 3.", "Speculation"),
    option("acceptance", "Probability that a draft token is accepted (with --draft-tokens).", "Speculation", "SHARE"),
    option("draft", "mtp (default), ngram, or the name of a smaller model.", "Speculation", "NAME"),
]
ADAPTERS = [
    option("lora_rank", "Rank of the adapters (LoRA) beside attention and dense MLPs, such as 16.", "Adapters"),
    option("lora_adapters", "Adapters on each device at once (1).", "Adapters"),
    option("lora_active", "Different adapters among the requests of a step (all).", "Adapters"),
]
EMIT = option(
    "emit",
    "Print the command line of an engine in place of the tables: vllm, sglang or trtllm.",
    "Output",
    "ENGINE",
    ("vllm", "sglang", "trtllm"),
)
DEGREES = (
    "tensor_parallel",
    "pipeline_parallel",
    "expert_parallel",
    "decode_context_parallel",
    "redundant_experts",
    "devices_per_node",
)


@with_options(REQUEST, [DEVICE], PLAN, TYPES, MEMORY, CACHE, DRAFTS, ADAPTERS, [EMIT])
def plan(model: Model, *, json: Json = False, **arguments: Any) -> None:
    """Plan a model on some devices: memory, speed, limiting resource, and cost per token.

    MODEL may also be the command line of an engine, such as 'vllm serve meta-llama/Llama-3.1-8B -tp 2'.

    Example:
      iomodel plan llama-3-8b --hardware h100-sxm5 --prompt 2048 --output 256 --price 2.5
    """
    from iomodel.planning.plan import plan as run
    from iomodel.planning.step.layout import Layout

    require(arguments, ("hardware", "prompt", "output"))
    fields: dict[str, Any] = _of_engine(model)
    fields |= integers(arguments, ("count", "prompt", "output", "batch"))
    degrees: dict[str, Any] = integers(arguments, DEGREES)
    if arguments["network_bandwidth"] is not None:
        degrees["network_bandwidth"] = rate("network_bandwidth", arguments["network_bandwidth"])
    if degrees:
        fields["layout"] = Layout(**degrees)
    if arguments["price"] is not None:
        fields["price_per_hour"] = real(arguments["price"])
    if arguments["sensitivity"]:
        fields["sensitivity"] = True
    question = {"model": model, **fields, **serving(arguments)}
    result = run(question.pop("model"), arguments["hardware"], **question)
    emit_plan(result, arguments["emit"], json)


@with_options(REQUEST, TARGETS, TYPES, MEMORY, CACHE, DRAFTS, ADAPTERS, [EMIT])
def fleet(
    model: Model, *, hardware: Devices = None, price: Prices = None, json: Json = False, **arguments: Any
) -> None:
    """Find the smallest or the cheapest fleet that serves a load within latency targets.

    Example:
      iomodel fleet llama-3-8b --load 20 --prompt 2048 --output 256 --ttft 0.5 --tpot 0.05 --hardware h100-sxm5
    """
    from iomodel.planning.fleet import fleet as run

    require(arguments, ("prompt", "output", "load", "ttft", "tpot"))
    fields: dict[str, Any] = integers(arguments, ("prompt", "output", "max_count"))
    fields |= {name: duration(name, arguments[name]) for name in ("ttft", "tpot")}
    if arguments["objective"] is not None:
        fields["objective"] = arguments["objective"]
    fields |= {"load": real(arguments["load"]), "prices": price_table(price or [])}
    result = run(model, hardware or None, **fields, **serving(arguments))
    if arguments["emit"] is None:
        emit(result, json)
        return
    best, lengths = result.best, integers(arguments, ("prompt", "output"))
    where = {"count": best.devices, "layout": best.layout}
    chosen = planned(model, best.device, hardware or list(fields["prices"]), **where, **lengths, **serving(arguments))
    emit_plan(chosen, arguments["emit"], json)


def serving(arguments: dict[str, Any]) -> dict[str, Any]:
    """Collect the options for types, memory and the prefix cache, shared by the commands for capacity."""
    fields: dict[str, Any] = {
        name: arguments[name]
        for name in ("dtype", "weight_dtype", "kv_dtype", "precision", "linear_dtype", "engine")
        if arguments[name]
    }
    fields |= integers(arguments, ("page_size",))
    if arguments["memory_utilization"] is not None:
        fields["memory_utilization"] = real(arguments["memory_utilization"])
    if arguments["overhead_bytes"] is not None:
        fields["overhead_bytes"] = size("overhead_bytes", arguments["overhead_bytes"])
    cache: dict[str, Any] = integers(arguments, ("shared_tokens",))
    rates = ("hit_rate", "host_rate", "disk_rate")
    cache |= {name: real(arguments[name]) for name in rates if arguments.get(name) is not None}
    cache |= {"cascade": True} if arguments.get("cascade") else {}
    if cache:
        from iomodel.planning.prefix_cache import PrefixCache

        fields["prefix_cache"] = PrefixCache(**cache)
    return fields | drafts(arguments) | adapters(arguments)


def adapters(arguments: dict[str, Any]) -> dict[str, Any]:
    """Collect the options of adapters, if there are any."""
    adapter = integers(arguments, ("lora_rank", "lora_adapters", "lora_active"))
    if not adapter:
        return {}
    if "lora_rank" not in adapter:
        raise InputError("lora_rank: none given with adapters; allowed: --lora-rank 16")
    from iomodel.planning.step.lora import Lora

    return {"lora": Lora(**{name.removeprefix("lora_"): value for name, value in adapter.items()})}


def drafts(arguments: dict[str, Any]) -> dict[str, Any]:
    """Collect the options of speculation, if there are any."""
    values = {name: arguments.get(name) for name in ("draft_tokens", "acceptance", "draft")}
    if all(value is None for value in values.values()):
        return {}
    from iomodel.planning.speculation import Speculation

    if values["draft_tokens"] is None or values["acceptance"] is None:
        name = "draft_tokens" if values["draft_tokens"] is None else "acceptance"
        raise InputError(f"{name}: none given with speculation; allowed: --draft-tokens 3 --acceptance 0.8")
    kind = {} if values["draft"] is None else {"draft": values["draft"]}
    tokens = integer("draft_tokens", values["draft_tokens"])
    return {"speculation": Speculation(tokens=tokens, acceptance=real(values["acceptance"]), **kind)}


def _of_engine(model: str) -> dict[str, Any]:
    """Read the arguments from the command line of an engine, if the model is one."""
    if not {"vllm", "sglang", "sglang.launch_server"} & {*model.split()} or len(model.split()) < 2:
        return {}
    from iomodel.planning.engine_arguments import engine_arguments

    return engine_arguments(model)


def planned(model: str, device: str, names: Iterable[str], **fields: Any) -> Any:
    """Plan the device of a result, which may come from a file."""
    from iomodel.devices.device import as_device
    from iomodel.planning.plan import plan as run

    devices = [as_device(name) for name in names]
    return run(model, next(candidate for candidate in devices if device in (candidate.id, candidate.name)), **fields)


def emit_plan(result: Any, engine: str | None, as_json: bool) -> None:
    """Print a plan, or the command line of an engine for it."""
    if engine is None:
        emit(result, as_json)
        return
    from iomodel.planning.engine_flags import engine_flags

    flags = engine_flags(result, engine)
    emit(flags.to_dict() if as_json else flags.text, as_json)


def integers(arguments: dict[str, Any], names: Iterable[str]) -> dict[str, int]:
    """Parse the given options that hold integers."""
    return {name: integer(name, arguments[name]) for name in names if arguments.get(name) is not None}


def price_table(typed: list[str]) -> dict[str, Any] | None:
    """Parse the price of each device, without duplicates; None if there are none."""
    prices: dict[str, Any] = {}
    for entry in typed:
        name, price = _price(entry)
        if name in prices:
            raise InputError(f"price: {name} is given twice; allowed: one price for each device")
        prices[name] = price
    return prices or None


def _price(typed: str) -> tuple[str, Any]:
    """Parse DEVICE=PRICE."""
    name, equals, price = typed.partition("=")
    if not equals or not name or not price:
        raise InputError(f"price: {shown(typed)} given; allowed: DEVICE=PRICE, such as h100-sxm5=2.5")
    return name, real(price)
