"""Tables of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iomodel.common.display import Table, trusted
from iomodel.planning.figures import Figures
from iomodel.planning.sensitivity import Sensitivity
from iomodel.planning.text import gigabytes, layout_text, money, rate, seconds

if TYPE_CHECKING:
    from iomodel.planning.result import Plan

Row = tuple[str, str]
BATCH = ("batch", "tpot", "step", "tokens_per_second", "requests_per_second")
"""Columns of the batches, in their order."""


def tables(plan: Plan) -> list[Table | str]:
    """Build the tables of a plan: the plan, its batches, and its sensitivities."""
    drawn: list[Table | str] = [Table(_title(plan), ("", ">value"), [*_memory(plan), *_times(plan), *_rates(plan)])]
    if len(plan.batches) > 1:
        drawn.append(Table.of("One replica at other batches", Figures, plan.batches, names=BATCH))
    if plan.sensitivities:
        table = Table.of("Effect of more resources", Sensitivity, plan.sensitivities)
        drawn.append(table.with_names("one more per device", [effect.title for effect in plan.sensitivities]))
    return [*drawn, *trusted(plan.left_out, plan.assumed), *(f"note: {note}" for note in plan.notes)]


def _title(plan: Plan) -> str:
    layout = layout_text(plan.layout)
    replicas = layout if plan.replicas == 1 else f"{plan.replicas} replicas of {layout}"
    return f"{plan.model} on {plan.count} x {plan.hardware} ({replicas}): {plan.prompt:,} + {plan.output:,} tokens"


def _memory(plan: Plan) -> list[Row]:
    fit = plan.memory
    return [
        ("memory per device", gigabytes(fit.capacity)),
        ("  usable", gigabytes(fit.usable)),
        (_weights(plan), gigabytes(fit.weights)),
        ("  overhead", gigabytes(fit.overhead)),
        *_shared(plan),
        ("  left for the KV cache", gigabytes(fit.left)),
        (_token(fit.cache_ranks), f"{fit.token_bytes:,} B"),
        ("KV cache per request, on one device", f"{fit.request_bytes:,} B"),
        ("requests that fit a replica", f"{fit.fits:,}"),
    ]


def _token(ranks: int) -> str:
    where = "one device" if ranks == 1 else f"one device of {ranks} that divide the tokens"
    return f"KV cache per token, on {where}"


def _shared(plan: Plan) -> list[Row]:
    cache = plan.prefix_cache
    if cache is None:
        return []
    device, host, disk = cache.tiers(plan.prompt, plan.page_size)
    cached = f"{device:,}" if not host + disk else f"{device:,} + {host:,} on the host + {disk:,} on disk"
    return [(f"  shared prefix; prompts find {cached} tokens cached", gigabytes(plan.memory.shared_bytes))]


def _weights(plan: Plan) -> str:
    lora = plan.lora
    if lora is None:
        return "  weights"
    return f"  weights, with adapters of rank {lora.rank:,}: {lora.adapters:,}"


def _drafts(plan: Plan) -> list[Row]:
    drafts = plan.speculation
    if drafts is None:
        return []
    return [(f"tokens of a step, of 1 and {drafts.tokens} drafts", f"{drafts.tokens_per_step:.3g}")]


def _times(plan: Plan) -> list[Row]:
    reached = plan.figures
    per_token = "decode step" if plan.speculation is None else "decode step per token"
    context = "never" if plan.crossover_context is None else f"{plan.crossover_context:,} tokens"
    return [
        ("batch per replica", f"{reached.batch:,}"),
        (f"TTFT without a queue, bound by {plan.prefill_bound}", seconds(reached.ttft)),
        *_drafts(plan),
        (f"{per_token}, bound by {plan.decode_bound}", seconds(reached.step)),
        ("TPOT with the prefills in between", seconds(reached.tpot)),
        ("attention overtakes the products at", context),
    ]


def _rates(plan: Plan) -> list[Row]:
    rows = [
        ("output tokens/s per replica", f"{plan.figures.tokens_per_second:,.0f}"),
        (f"output tokens/s in total, bound by {plan.throughput_bound}", f"{plan.tokens_per_second:,.0f}"),
        ("requests/s in total", rate(plan.requests_per_second)),
    ]
    both, output = plan.cost_per_million_tokens, plan.cost_per_million_output_tokens
    if both is not None and output is not None:
        rows.append(("price per 10^6 tokens, prompts and outputs", money(both)))
        rows.append(("price per 10^6 output tokens, prompts free", money(output)))
    return rows
