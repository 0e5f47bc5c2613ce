"""The commands of a capacity planner: what some devices do for a model, and the fleet that a load needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from iomodel.commands.numbers import duration, integer, real, size
from iomodel.commands.options import DEVICE, DTYPES, Json
from iomodel.commands.output import emit
from iomodel.commands.signature import option, switch, with_options
from iomodel.errors import InputError, shown
from iomodel.hardware import list_hardware

Model = Annotated[str, typer.Argument(help="A model, or its file: YAML, or a config.json.", show_default=False)]
Prices = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="DEVICE=PRICE",
        help="Price of one device an hour, such as h100-sxm5=2.5; once for each device.",
        rich_help_panel="Fleet",
        show_default=False,
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--hardware",
        metavar="NAME|FILE",
        help="A device to choose from; once for each (those that have a price).",
        rich_help_panel="Fleet",
        autocompletion=list_hardware,
        show_default=False,
    ),
]
REQUEST = [
    option("prompt", "Tokens of a request (needed).", "Request"),
    option("output", "Tokens of its answer (needed).", "Request"),
]
TYPES = [
    option("dtype", f"{', '.join(DTYPES)} (the model's).", "Types", "NAME", DTYPES),
    option("weight_dtype", "Type of the weights (the model's), such as fp8.", "Types", "NAME"),
    option("kv_dtype", "Type of the KV cache (as --dtype), such as fp8.", "Types", "NAME", DTYPES),
    option("page_size", "The cache lies in pages of so many tokens, such as 16.", "Types"),
]
MEMORY = [
    option("memory_utilization", "Share of a device's memory that may be used (0.9).", "Memory", "SHARE"),
    option("overhead_bytes", "What a device needs beside weights and cache (2 GiB).", "Memory", "SIZE"),
]
PLAN = [
    option("count", "Devices (1).", "Layout"),
    option("tensor_parallel", "Devices that share out each layer (the least that do).", "Layout"),
    option("pipeline_parallel", "Stages that the layers are divided into (1).", "Layout"),
    option("expert_parallel", "Ranks that the experts are divided among (1).", "Layout"),
    option("batch", "Requests that decode together in a replica (all that fit).", "Request"),
    option("price", "Price of one device an hour, such as 2.5.", "Price", "PRICE"),
    switch("sensitivity", "Say what one more GB/s, GB, SM and TFLOP/s would buy.", "Output"),
]
TARGETS = [
    option("load", "Requests that arrive a second, such as 20 (needed).", "Fleet", "RATE"),
    option("ttft", "Mean time to the first token wanted, such as 0.5 or 500ms (needed).", "Fleet", "TIME"),
    option("tpot", "Mean time per output token wanted, such as 0.05 or 50ms (needed).", "Fleet", "TIME"),
    option("objective", "What is to be least: devices (default) or cost.", "Fleet", "NAME", ("devices", "cost")),
    option("max_count", "The most devices there are (1024).", "Fleet"),
]
DEGREES = ("tensor_parallel", "pipeline_parallel", "expert_parallel")


@with_options(REQUEST, [DEVICE], PLAN, TYPES, MEMORY)
def plan(model: Model, *, json: Json = False, **given: Any) -> None:
    """Say what fits some devices, how fast a model answers on them, what binds, and what a token costs.

    Example:
      iomodel plan llama-3-8b --hardware h100-sxm5 --prompt 2048 --output 256 --price 2.5
    """
    from iomodel.decoder.layout import Layout
    from iomodel.plan import plan as run

    _needed(given, ("hardware", "prompt", "output"))
    fields: dict[str, Any] = _integers(given, ("count", "prompt", "output", "batch"))
    degrees = _integers(given, DEGREES)
    if degrees:
        fields["layout"] = Layout(**degrees)
    if given["price"] is not None:
        fields["price_per_hour"] = real(given["price"])
    if given["sensitivity"]:
        fields["sensitivity"] = True
    emit(run(model, given["hardware"], **fields, **_serving(given)), json)


@with_options(REQUEST, TARGETS, TYPES, MEMORY)
def fleet(model: Model, *, hardware: Devices = None, price: Prices = None, json: Json = False, **given: Any) -> None:
    """Find the smallest or the cheapest fleet that serves a load within latency targets.

    Example:
      iomodel fleet llama-3-8b --load 20 --prompt 2048 --output 256 --ttft 0.5 --tpot 0.05 --hardware h100-sxm5
    """
    from iomodel.fleet import fleet as run

    _needed(given, ("prompt", "output", "load", "ttft", "tpot"))
    fields: dict[str, Any] = _integers(given, ("prompt", "output", "max_count"))
    fields |= {name: duration(name, given[name]) for name in ("ttft", "tpot")}
    if given["objective"] is not None:
        fields["objective"] = given["objective"]
    fields |= {"load": real(given["load"]), "prices": _prices(price or [])}
    emit(run(model, hardware or None, **fields, **_serving(given)), json)


def _serving(given: dict[str, Any]) -> dict[str, Any]:
    """Types and memory, as both commands take them."""
    fields: dict[str, Any] = {name: given[name] for name in ("dtype", "weight_dtype", "kv_dtype") if given[name]}
    fields |= _integers(given, ("page_size",))
    if given["memory_utilization"] is not None:
        fields["memory_utilization"] = real(given["memory_utilization"])
    if given["overhead_bytes"] is not None:
        fields["overhead_bytes"] = size("overhead_bytes", given["overhead_bytes"])
    return fields


def _integers(given: dict[str, Any], names: Iterable[str]) -> dict[str, int]:
    return {name: integer(name, given[name]) for name in names if given[name] is not None}


def _needed(given: dict[str, Any], names: Iterable[str]) -> None:
    panel = {entry.name: entry for entry in (*REQUEST, *TARGETS, DEVICE)}
    for name in names:
        if given[name] is None:
            example = {"hardware": "h100-sxm5", "prompt": "2048", "output": "256"}.get(name, "0.5")
            assert name in panel
            raise InputError(f"{name}: none given; allowed: one, such as --{name} {example}")


def _prices(typed: list[str]) -> dict[str, Any] | None:
    """The price of each device, each once; None for none."""
    found: dict[str, Any] = {}
    for one in typed:
        name, price = _price(one)
        if name in found:
            raise InputError(f"price: {name} is given twice; allowed: one price for each device")
        found[name] = price
    return found or None


def _price(typed: str) -> tuple[str, Any]:
    """The device and its price."""
    name, equals, price = typed.partition("=")
    if not equals or not name or not price:
        raise InputError(f"price: {shown(typed)} given; allowed: DEVICE=PRICE, such as h100-sxm5=2.5")
    return name, real(price)
