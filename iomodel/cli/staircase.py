"""Command that solves a call for every size of the memory."""

from __future__ import annotations

from typing import Any

from iomodel.cli import values
from iomodel.cli.algorithm_names import list_algorithms
from iomodel.cli.options import ALGORITHM, BUDGET, WORKLOAD, Algorithm, Json
from iomodel.cli.output import emit
from iomodel.cli.signature import option, with_options

MEMORY = [
    option("unit", "Unit of the memory: elements (default), the papers' M; or bytes.", "Solver", "NAME"),
    *(known for known in BUDGET if known.name in ("alignment", "min_block_kv")),
]
GROUPS = (WORKLOAD, MEMORY, ALGORITHM)


@with_options(*GROUPS)
def staircase(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """List the least traffic at every size of the memory, with the tiles and a lower bound.

    Example:
      iomodel staircase flash2 --q-len 8192 --head-dim 64 --alignment 16
    """
    emit(solved(algorithm, arguments), json)


def solved(algorithm: str, arguments: dict[str, Any]) -> Any:
    """Compute the staircase for the given arguments."""
    from iomodel.solving.staircase import staircase

    complete = {"hardware": None, "epsilon": None, **arguments}
    limits = {name: value for name, value in values.budget(complete).items() if name != "hardware"}
    if arguments["unit"] is not None:
        limits["unit"] = arguments["unit"]
    chosen = values.options(arguments, list_algorithms())
    return staircase(algorithm, values.workload(arguments, algorithm), **limits, **chosen)
