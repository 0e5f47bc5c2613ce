"""Commands about schedules: `optimum` and `bounds`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from iomodel.cli import values
from iomodel.cli.common_options import Json
from iomodel.cli.documented import given, of
from iomodel.cli.masks import mask as typed_mask
from iomodel.cli.output import emit
from iomodel.cli.shared_options import ALGORITHM, KIND, WORKLOAD, Tiled, algorithm_names
from iomodel.cli.signature import with_options
from iomodel.common import labels
from iomodel.common.display import Table
from iomodel.workloads.attention import Attention

BOUNDS = "counting.bounds:lower_bounds"
Bounded = Annotated[
    str | None,
    typer.Argument(
        help="The algorithm, whose classes of bounds apply; by default the bounds of every schedule.",
        autocompletion=algorithm_names,
        show_default=False,
    ),
]


ORDERS = (
    "order for one head: N^2 d^2 / M for M >= d^2, N^2 d / sqrt(M) below (Saha and Ye, ICML 2024, arXiv:2402.07443); "
    "exact forms in docs/theory.md"
)
"""The orders of the bounds, in the letters of the papers."""


@with_options(KIND, ALGORITHM)
def optimum(
    algorithm: Tiled,
    *,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX.", rich_help_panel="Output")] = False,
    json: Json = False,
    **arguments: Any,
) -> None:
    """Derive the tiles of least traffic as formulas of N, d and M, with the leading term of the traffic.

    Example:
      iomodel optimum flash2 --mask causal
    """
    from iomodel.counting.optimum import optimum as derive

    direction = arguments["direction"] or "forward"
    best = derive(algorithm, typed_mask(arguments, algorithm), direction, **values.options_by_name(arguments))
    emit(best.latex() if latex else best if json else str(best), json and not latex)


@with_options(
    WORKLOAD, of(BOUNDS, "Memory: at most one", "hardware sram_bytes sram_elements"), of(BOUNDS, "Solver", "units")
)
def bounds(algorithm: Bounded = None, *, json: Json = False, **arguments: Any) -> None:
    """Compute the lower bounds on HBM traffic in a memory, each with the class of schedules that it holds for.

    Without a memory: the compulsory traffic, which no memory lessens.

    Example:
      iomodel bounds flash2 --q-len 8192 --head-dim 128 --sram-bytes '227 KiB'
    """
    from iomodel.counting.bounds import lower_bounds, visible_pairs
    from iomodel.counting.without_tiles import without_tiles
    from iomodel.studies.comparison import counted_pairs

    call: Any = values.workload(arguments, algorithm)
    found = lower_bounds(
        call, algorithm=algorithm, **given(arguments, BOUNDS, "hardware sram_bytes sram_elements units")
    )
    anywhere = not given(arguments, BOUNDS, "hardware sram_bytes sram_elements")
    intensity = without_tiles(algorithm, call).intensity if anywhere and algorithm else None
    if json:
        least = {} if intensity is None else {"intensity": intensity}
        values_of = {name: bound.to_dict() for name, bound in found.items()}
        emit({"bounds": values_of, "visible_pairs": visible_pairs(call), **least}, as_json=True, kind="bounds")
        return
    rows = [(name, f"{bound.elements:,}", f"{bound.bytes:,}", bound.holds_for) for name, bound in found.items()]
    title = f"lower bounds on the {labels.REQUESTS} of {algorithm or 'every schedule that forms each product once'}"
    notes = counted_pairs(call)
    if isinstance(call, Attention) and call.direction == "forward":
        notes.append(ORDERS)
    if intensity is not None:
        notes.append(f"intensity at this traffic: {intensity:,.4g} FLOP/B of the visible pairs")
    if anywhere:
        notes.append("the other bounds need a memory: one of --hardware, --sram-bytes, --sram-elements")
    emit(Table(title, ("bound", ">elements", ">bytes", "holds for"), rows, notes))
