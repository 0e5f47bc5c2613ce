"""A plan as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iomodel.planning.text import gigabytes, layout_text, money, seconds
from iomodel.show import escape_markup, table

if TYPE_CHECKING:
    from iomodel.planning.result import Plan

Row = tuple[str, str]


def tables(plan: Plan) -> Any:
    """Return the plan, its batches, and what more of each resource buys."""
    from rich.console import Group

    drawn = [table(_title(plan), ("", ">value"), [*_memory(plan), *_times(plan), *_rates(plan)])]
    if len(plan.batches) > 1:
        columns = (">batch", ">TPOT", ">decode step", ">tokens/s", ">requests/s")
        drawn.append(table("One replica at other batches", columns, _batches(plan)))
    if plan.sensitivities:
        columns = ("one more, on each device", ">TTFT", ">TPOT", ">tokens/s", ">requests that fit")
        drawn.append(table("What more would buy", columns, _sensitivities(plan)))
    return Group(*drawn, *(f"note: {escape_markup(note)}" for note in plan.prefill.model.notes))


def _title(plan: Plan) -> str:
    each = f"{plan.replicas} x ({layout_text(plan.layout)})"
    return f"{plan.model} on {plan.count} x {plan.hardware}, {each}: {plan.prompt:,} + {plan.output:,} tokens"


def _memory(plan: Plan) -> list[Row]:
    fit = plan.memory
    return [
        ("memory of a device", gigabytes(fit.capacity)),
        ("  of that to be used", gigabytes(fit.usable)),
        ("  weights", gigabytes(fit.weights)),
        ("  overhead", gigabytes(fit.overhead)),
        ("  left for the KV cache", gigabytes(fit.left)),
        ("KV cache of a token, on a device", f"{fit.token_bytes:,} B"),
        ("KV cache of a request, on a device", f"{fit.request_bytes:,} B"),
        ("requests that fit a replica", f"{fit.fits:,}"),
    ]


def _times(plan: Plan) -> list[Row]:
    at = plan.figures
    context = "never" if plan.crossover_context is None else f"{plan.crossover_context:,} tokens"
    return [
        ("batch of a replica", f"{at.batch:,}"),
        (f"TTFT without a queue, bound by {plan.prefill_bound}", seconds(at.ttft)),
        (f"decode step, bound by {plan.decode_bound}", seconds(at.step)),
        ("TPOT with the prefills in between", seconds(at.tpot)),
        ("attention overtakes the products at", context),
    ]


def _rates(plan: Plan) -> list[Row]:
    rows = [
        ("output tokens/s of a replica", f"{plan.figures.tokens_per_second:,.0f}"),
        (f"output tokens/s of all, bound by {plan.throughput_bound}", f"{plan.tokens_per_second:,.0f}"),
        ("requests/s of all", f"{plan.requests_per_second:,.3g}"),
    ]
    both, output = plan.cost_per_million_tokens, plan.cost_per_million_output_tokens
    if both is not None and output is not None:
        rows.append(("price of 10^6 tokens, prompts and outputs", money(both)))
        rows.append(("price of 10^6 output tokens, prompts free", money(output)))
    return rows


def _batches(plan: Plan) -> list[tuple[str, ...]]:
    return [
        (
            f"{row.batch:,}",
            seconds(row.tpot),
            seconds(row.step),
            f"{row.tokens_per_second:,.0f}",
            f"{row.requests_per_second:,.3g}",
        )
        for row in plan.batches
    ]


def _sensitivities(plan: Plan) -> list[tuple[str, ...]]:
    return [
        (
            f"{one.unit} of {one.resource}" if one.unit != "SM" else "SM",
            f"{1e6 * one.ttft:+,.3g} us",
            f"{1e6 * one.tpot:+,.3g} us",
            f"{one.tokens_per_second:+,.3g}",
            f"{one.fits:+,.3g}",
        )
        for one in plan.sensitivities
    ]
