"""Commands that choose tiles: `tiles`, `check` and `compare`."""

from __future__ import annotations

from typing import Any

import typer

from iomodel.cli import values
from iomodel.cli.algorithm_names import list_algorithms
from iomodel.cli.options import (
    ALGORITHM,
    APPROXIMATE,
    BUDGET,
    DEVICE,
    IMPLEMENTATION,
    KERNELS,
    LAUNCHED,
    OBJECTIVE,
    TILE,
    WORKLOAD,
    Algorithm,
    Json,
)
from iomodel.cli.output import emit
from iomodel.cli.signature import with_options
from iomodel.errors import InputError
from iomodel.workloads.attention import as_attention

TILE_NAMES = [parameter.name for parameter in TILE]
LAUNCH_NAMES = [parameter.name for parameter in LAUNCHED]


@with_options(WORKLOAD, BUDGET, KERNELS, ALGORITHM)
def tiles(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Find the fastest tiles on a device, or those with the least traffic in a memory, with a proof.

    Example:
      iomodel tiles flash3 --hardware h100-sxm5 --q-len 8192 --head-dim 128
    """
    from iomodel.solving.solve import solve

    chosen, form = values.options(arguments, list_algorithms()), arguments["emit"]
    limits = values.budget(arguments)
    if form is None:
        emit(solve(algorithm, values.workload(arguments, algorithm), **limits, **chosen), json)
        return
    from iomodel.solving.export import MOST, exported

    limits["top"] = MOST
    typer.echo(exported(solve(algorithm, values.workload(arguments, algorithm), **limits, **chosen), form))


@with_options(WORKLOAD, [DEVICE, IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM)
def check(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Check whether a tile fits a device, and show the limiting resource and the occupancy.

    Example:
      iomodel check flash2 --hardware a100-sxm4-80gb --q-len 8192 --head-dim 128 --block-q 128 --block-kv 64 --warps 4
    """
    from iomodel.placement.check import check as look

    if arguments["hardware"] is None:
        raise InputError("hardware: none given; allowed: a device, such as --hardware h100-sxm5")
    sizes, chosen = values.tiles(arguments, [*LAUNCH_NAMES, *TILE_NAMES]), values.options(arguments, list_algorithms())
    call, kernels = as_attention(values.workload(arguments, algorithm)), arguments["implementation"]
    emit(look(algorithm, call, arguments["hardware"], sizes, kernels, **chosen), json)


@with_options(WORKLOAD, BUDGET, [IMPLEMENTATION, OBJECTIVE, APPROXIMATE], ALGORITHM)
def compare(*, json: Json = False, **arguments: Any) -> None:
    """Solve every algorithm and list them side by side, by time on a device or by traffic in a memory.

    Example:
      iomodel compare --hardware a100-sxm4-80gb --q-len 4096 --head-dim 64
    """
    from iomodel.studies.compare import compare as solve_all

    chosen = values.options(arguments, list_algorithms())
    approximate = bool(arguments["approximate"])
    emit(solve_all(values.workload(arguments), **values.budget(arguments), approximate=approximate, **chosen), json)
