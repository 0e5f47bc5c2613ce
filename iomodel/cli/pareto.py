"""Command that searches deployments for the front of throughput and speed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from iomodel.cli.numbers import duration, real
from iomodel.cli.numbers import integers as listed_integers
from iomodel.cli.options import DTYPES, Json
from iomodel.cli.output import emit
from iomodel.cli.plan import (
    ADAPTERS,
    CACHE,
    DRAFTS,
    EMIT,
    MEMORY,
    REQUEST,
    Devices,
    Model,
    Prices,
    emit_plan,
    integers,
    planned,
    price_table,
    serving,
)
from iomodel.cli.required import require
from iomodel.cli.signature import option, switch, with_options
from iomodel.common.output_files import writable
from iomodel.errors import InputError

SEARCH = [
    option("batches", "Batches to try, such as 1,8,64 (powers of two).", "Search", "LIST"),
    option("weight_dtypes", "Types of the weights to try, such as bf16,fp8 (the model's).", "Search", "LIST"),
    option("kv_dtypes", "Types of the cache to try, such as bf16,fp8 (the model's).", "Search", "LIST"),
    option("max_count", "Most devices of a replica (8).", "Search"),
    option("dtype", f"{', '.join(DTYPES)} (the model's).", "Search", "NAME", DTYPES),
    option("precision", "Weights, products and cache: bf16, fp8, int8, fp4, mxfp4, int4.", "Search", "NAME"),
    option("linear_dtype", "Type of the products of linear layers (that of the weights or --dtype).", "Search", "NAME"),
    option("page_size", "Tokens per page of the cache, such as 16.", "Search"),
    option("power_utilization", "Share of the TDP that a device draws (1).", "Search", "SHARE"),
]
TARGETS = [
    option("ttft", "Target time to the first token, such as 0.5 or 500ms.", "Targets", "TIME"),
    option("tpot", "Target time per output token, such as 50ms.", "Targets", "TIME"),
    option("percentile", "Simulated percentile that keeps them: p50, p90 or p99.", "Targets", "NAME"),
]
OUTPUT = [
    option("out", "A picture (.png, .svg) or a table of all points (.csv).", "Output", "FILE"),
    switch("force", "Replace an existing file.", "Output"),
]


@with_options(REQUEST, SEARCH, TARGETS, MEMORY, CACHE, DRAFTS, ADAPTERS, OUTPUT, [EMIT])
def pareto(
    model: Model, *, hardware: Devices = None, price: Prices = None, json: Json = False, **arguments: Any
) -> None:
    """Search devices, layouts, types and batches for the highest throughput at every speed per user.

    Example:
      iomodel pareto llama-3-8b --hardware h100-sxm5 --prompt 1024 --output 128 --max-count 2 --tpot 20ms
    """
    from iomodel.planning.pareto import pareto as run

    require(arguments, ("prompt", "output"))
    target = _target(arguments)
    fields: dict[str, Any] = integers(arguments, ("prompt", "output", "max_count"))
    fields |= {name: duration(name, arguments[name]) for name in ("ttft", "tpot") if arguments[name] is not None}
    if arguments["batches"] is not None:
        fields["batches"] = listed_integers("batches", arguments["batches"])
    for name in ("weight_dtypes", "kv_dtypes"):
        if arguments[name] is not None:
            fields[name] = [entry.strip() for entry in arguments[name].split(",")]
    if arguments["power_utilization"] is not None:
        fields["power_utilization"] = real(arguments["power_utilization"])
    if arguments["percentile"] is not None:
        fields["percentile"] = arguments["percentile"]
    fields["prices"] = price_table(price or [])
    types = {"weight_dtype": None, "kv_dtype": None}
    result = run(model, hardware or None, **fields, **serving({**arguments, **types}))
    if target is not None:
        _write(result, target)
    if arguments["emit"] is None:
        emit(result, json)
        return
    best = result.cheapest
    if best is None:
        raise InputError("emit: given without a target; allowed: with --ttft or --tpot, which choose a point")
    where = {"count": best.devices, "layout": best.layout, "batch": best.batch}
    chosen_types = {"weight_dtype": best.weight_dtype, "kv_dtype": best.kv_dtype}
    kinds = {name: value for name, value in chosen_types.items() if arguments[f"{name}s"] is not None}
    names, lengths = hardware or list(fields["prices"]), integers(arguments, ("prompt", "output"))
    chosen = planned(model, best.device, names, **where, **lengths, **{**serving({**arguments, **types}), **kinds})
    emit_plan(chosen, arguments["emit"], json)


def _target(arguments: dict[str, Any]) -> Path | None:
    """Check the output file before the search."""
    if arguments["out"] is None:
        return None
    try:
        return writable(
            arguments["out"], (".png", ".svg", ".csv"), overwrite=bool(arguments["force"]), switch="--force"
        )
    except InputError as error:
        raise InputError(str(error).replace("output:", "out:", 1)) from None


def _write(result: Any, target: Path) -> None:
    if target.suffix.lower() == ".csv":
        result.to_pandas().to_csv(target, index=False)
        return
    from iomodel.plots import pareto as draw
    from iomodel.plots import save

    save(draw(result), target)
