"""Command that plans prefill and decode on separate devices."""

from __future__ import annotations

from typing import Any

from iomodel.cli.numbers import rate, real
from iomodel.cli.options import Json
from iomodel.cli.output import emit
from iomodel.cli.plan import MEMORY, REQUEST, TYPES, Model, Prices, integers, price_table, serving
from iomodel.cli.required import require
from iomodel.cli.signature import option, with_options
from iomodel.devices.device import list_hardware

POOLS = [
    option("prefill", "The device that prefills (required).", "Pools", "NAME|FILE", list_hardware),
    option("decode", "The device that decodes (required).", "Pools", "NAME|FILE", list_hardware),
    option("link", "Bandwidth from device to device, such as 50GB/s (required).", "Pools", "RATE"),
    option("prefill_tensor_parallel", "Ranks of tensor parallelism that prefill (the fewest that fit).", "Pools"),
    option("decode_tensor_parallel", "Ranks of tensor parallelism that decode (the fewest that fit).", "Pools"),
    option("batch", "Requests decoded together in a replica (all that fit).", "Pools"),
    option("load", "Requests per second, such as 20 (one replica of each).", "Pools", "RATE"),
]


@with_options(REQUEST, POOLS, TYPES, MEMORY)
def disaggregate(model: Model, *, price: Prices = None, json: Json = False, **arguments: Any) -> None:
    """Plan prefill and decode on separate devices, with the transfer of the cache between them.

    Example:
      iomodel disaggregate llama-3-8b --prefill h100-sxm5 --decode h200-sxm --link 50GB/s --prompt 2048 --output 256
    """
    from iomodel.planning.disaggregated import disaggregate as run
    from iomodel.planning.step.layout import Layout

    require(arguments, ("prefill", "decode", "link", "prompt", "output"))
    fields: dict[str, Any] = integers(arguments, ("prompt", "output", "batch"))
    for pool in ("prefill", "decode"):
        degrees = integers(arguments, (f"{pool}_tensor_parallel",))
        fields |= {f"{pool}_layout": Layout(tensor_parallel=ranks) for ranks in degrees.values()}
    fields["link"] = rate("link", arguments["link"])
    if arguments["load"] is not None:
        fields["load"] = real(arguments["load"])
    fields |= {"prices": price_table(price or [])}
    emit(run(model, arguments["prefill"], arguments["decode"], **fields, **serving(arguments)), json)
