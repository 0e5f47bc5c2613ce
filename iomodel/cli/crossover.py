"""Command that finds where one algorithm overtakes another."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from iomodel.cli import values
from iomodel.cli.algorithm_names import list_algorithms
from iomodel.cli.numbers import integer
from iomodel.cli.options import ALGORITHM, BUDGET, LAUNCHED, TILE, WORKLOAD, Json, algorithm_names
from iomodel.cli.output import emit
from iomodel.cli.signature import option, switch, with_options
from iomodel.errors import InputError
from iomodel.studies.crossovers.contenders import AXES, METRICS
from iomodel.workloads.attention import as_attention

Contenders = Annotated[
    list[str],
    typer.Argument(
        help=f"Two or more of {', '.join(list_algorithms())}; options and tiles for one algorithm follow a colon, as "
        "'split_kv:splits=4'.",
        autocompletion=algorithm_names,
        show_default=False,
    ),
]
VARIED = [
    option("over", f"Axis: {', '.join(AXES)} (default: length, queries = keys).", "Crossover", "NAME", tuple(AXES)),
    option("metric", f"Metric: {', '.join(METRICS)} (default: bytes).", "Crossover", "NAME", tuple(METRICS)),
    option("start", "First point (default: 1).", "Crossover"),
    option("limit", "Last point (default: 65536 for a length).", "Crossover"),
    option("step", "Distance between points (default: 1).", "Crossover"),
    switch("exhaustive", "Evaluate every point (default: where that is fast).", "Crossover", both_ways=True),
]
MEMORY = [known for known in BUDGET if known.name in ("hardware", "sram_bytes", "sram_elements", "alignment")]
GROUPS = (VARIED, WORKLOAD, MEMORY, LAUNCHED, TILE, ALGORITHM)
UNKNOWN = ("q_len", "head_dim")
"""Fields not required if the varied dimension itself is invalid."""
LENGTHS = {"length": ("q_len",), "q_len": ("q_len",), "head_dim": ("head_dim",)}
"""Required fields of a call that the varied dimension replaces."""


@with_options(*GROUPS)
def crossover(algorithms: Contenders, *, json: Json = False, **arguments: Any) -> None:
    """Find the length, width, batch or memory at which one algorithm overtakes another, exactly and as a formula.

    Example:
      iomodel crossover flash1 standard --head-dim 64 --block-q 64 --block-kv 64
    """
    emit(computed(algorithms, arguments), json)


def computed(algorithms: list[str], arguments: dict[str, Any]) -> Any:
    """Compute the crossovers for the given arguments."""
    from iomodel.studies.crossovers.crossovers import crossovers

    over = arguments["over"] if arguments["over"] is not None else "length"
    replaced = LENGTHS.get(over, ()) if over in AXES else UNKNOWN
    typed = {**arguments, **{name: "1" for name in replaced if arguments[name] is None}}
    if arguments["q_lens"] is not None:
        raise InputError("q_lens: given; allowed: --q-len, for sequences of one length, or --over length")
    fields = {name: arguments[name] for name in ("over", "metric", "exhaustive") if arguments[name] is not None}
    fields |= {
        name: integer(name, arguments[name]) for name in ("start", "limit", "step") if arguments[name] is not None
    }
    sizes = values.tiles(arguments, [entry.name for entry in (*LAUNCHED, *TILE)]) or None
    memory = {name: value for name, value in _budget(arguments).items() if value is not None}
    chosen = values.options(arguments, list_algorithms())
    call = as_attention(values.workload(typed))
    return crossovers(algorithms, call, **memory, tiles=sizes, progress=True, **fields, **chosen)


def _budget(arguments: dict[str, Any]) -> dict[str, Any]:
    return values.budget({**arguments, **dict.fromkeys(("min_block_kv", "min_blocks_per_sm", "epsilon"))})
