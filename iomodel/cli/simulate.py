"""Command that simulates a serving engine."""

from __future__ import annotations

from typing import Any

from iomodel.cli.numbers import duration, real
from iomodel.cli.options import DEVICE, Json
from iomodel.cli.output import emit
from iomodel.cli.plan import ADAPTERS, CACHE, DRAFTS, MEMORY, TYPES, Model, integers, serving
from iomodel.cli.required import require
from iomodel.cli.signature import option, with_options

POLICIES = ("prefill-first", "chunked")
REQUESTS = [
    option("prompt", "Tokens of each prompt, without a trace.", "Requests"),
    option("output", "Tokens of each output, without a trace.", "Requests"),
    option("trace", "CSV file with the columns arrival, prompt and output.", "Requests", "FILE"),
    option("concurrency", "Clients of a closed loop.", "Requests"),
    option("load", "Poisson arrivals per second, such as 20.", "Requests", "RATE"),
    option("requests", "Number of requests (1000, or all rows of a trace).", "Requests"),
    option("seed", "Seed of random arrivals and lengths (0).", "Requests"),
]
ENGINE = [
    option("policy", "prefill-first (default) or chunked.", "Engine", "NAME", POLICIES),
    option("token_budget", "Most tokens of a step (8192).", "Engine"),
    option("batch", "Most requests in the engine (all that fit).", "Engine"),
    option("host_seconds", "Host time of each step, such as 2ms (0).", "Engine", "TIME"),
    option("tensor_parallel", "Ranks of tensor parallelism (the fewest that fit).", "Engine"),
    option("decode_context_parallel", "Ranks that divide the tokens of the cache (1).", "Engine"),
]


@with_options(REQUESTS, [DEVICE], ENGINE, TYPES, MEMORY, CACHE, DRAFTS, ADAPTERS)
def simulate(model: Model, *, json: Json = False, **arguments: Any) -> None:
    """Simulate a serving engine: percentiles of the time to the first token and of the time per output token.

    Example:
      iomodel simulate llama-3-8b --hardware h100-sxm5 --prompt 2048 --output 256 --load 4 --policy chunked
    """
    from iomodel.planning.simulation.simulate import simulate as run
    from iomodel.planning.step.layout import Layout

    require(arguments, ("hardware",))
    fields: dict[str, Any] = integers(
        arguments, ("prompt", "output", "concurrency", "requests", "seed", "token_budget", "batch")
    )
    degrees = integers(arguments, ("tensor_parallel", "decode_context_parallel"))
    if degrees:
        fields["layout"] = Layout(**degrees)
    if arguments["load"] is not None:
        fields["load"] = real(arguments["load"])
    if arguments["host_seconds"] is not None:
        fields["host_seconds"] = duration("host_seconds", arguments["host_seconds"])
    fields |= {name: arguments[name] for name in ("trace", "policy") if arguments[name] is not None}
    emit(run(model, arguments["hardware"], **fields, **serving(arguments)), json)
