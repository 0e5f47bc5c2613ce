"""The command that says from where on one algorithm beats another."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from iomodel.algorithms import list_algorithms
from iomodel.commands import values
from iomodel.commands.numbers import integer
from iomodel.commands.options import ALGORITHM, BUDGET, LAUNCHED, TILE, WORKLOAD, Json
from iomodel.commands.output import emit
from iomodel.commands.signature import option, switch, with_options
from iomodel.crossings.axes import AXES
from iomodel.crossings.metrics import METRICS
from iomodel.errors import InputError
from iomodel.workload import as_attention

Contenders = Annotated[
    list[str],
    typer.Argument(
        help=f"Two or more of {', '.join(list_algorithms())}; options and tiles of one alone after a colon, as "
        "'split_kv:splits=4,no-lse'.",
        autocompletion=list_algorithms,
        show_default=False,
    ),
]
VARIED = [
    option(
        "over", f"What is varied: {', '.join(AXES)} (length, queries and keys alike).", "Crossover", "NAME", tuple(AXES)
    ),
    option("metric", f"What is compared: {', '.join(METRICS)} (bytes).", "Crossover", "NAME", tuple(METRICS)),
    option("start", "Where to begin (1).", "Crossover"),
    option("limit", "Where to end (65536 for a length).", "Crossover"),
    option("step", "Look at start, start + step, ... only (1).", "Crossover"),
    switch("exhaustive", "Look at every point; at every one where that is soon done.", "Crossover", both_ways=True),
]
MEMORY = [known for known in BUDGET if known.name in ("hardware", "sram_bytes", "sram_elements", "alignment")]
GROUPS = (VARIED, WORKLOAD, MEMORY, LAUNCHED, TILE, ALGORITHM)
UNKNOWN = ("q_len", "head_dim")
"""Not asked for where it is what is to vary that is wrong."""
LENGTHS = {"length": ("q_len",), "q_len": ("q_len",), "head_dim": ("head_dim",)}
"""Fields that a call needs and that the question itself replaces."""


@with_options(*GROUPS)
def crossover(algorithms: Contenders, *, json: Json = False, **given: Any) -> None:
    """Say from which length, width, batch or memory on one algorithm beats another, exactly and as a formula.

    Example:
      iomodel crossover flash1 standard --head-dim 64 --block-q 64 --block-kv 64
    """
    emit(found(algorithms, given), json)


def found(algorithms: list[str], given: dict[str, Any]) -> Any:
    """The answer to what was typed."""
    from iomodel.crossovers import crossovers

    over = given["over"] if given["over"] is not None else "length"
    replaced = LENGTHS.get(over, ()) if over in AXES else UNKNOWN
    typed = {**given, **{name: "1" for name in replaced if given[name] is None}}
    if given["q_lens"] is not None:
        raise InputError("q_lens: given; allowed: sequences of one length, --q-len, or --over length")
    fields = {name: given[name] for name in ("over", "metric", "exhaustive") if given[name] is not None}
    fields |= {name: integer(name, given[name]) for name in ("start", "limit", "step") if given[name] is not None}
    sizes = values.tiles(given, [entry.name for entry in (*LAUNCHED, *TILE)]) or None
    memory = {name: value for name, value in _budget(given).items() if value is not None}
    chosen = values.options(given, list_algorithms())
    call = as_attention(values.workload(typed))
    return crossovers(algorithms, call, **memory, tiles=sizes, progress=True, **fields, **chosen)


def _budget(given: dict[str, Any]) -> dict[str, Any]:
    return values.budget({**given, **dict.fromkeys(("min_block_kv", "min_blocks_per_sm", "epsilon"))})
