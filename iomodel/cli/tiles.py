"""Commands that choose tiles: `tiles`, `check` and `compare`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

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
    algorithm_names,
)
from iomodel.cli.output import emit
from iomodel.cli.required import require
from iomodel.cli.signature import with_options
from iomodel.common.display import group
from iomodel.errors import InputError, UnknownNameError
from iomodel.workloads.attention import as_attention
from iomodel.workloads.call import Call
from iomodel.workloads.varlen import as_call

if TYPE_CHECKING:
    from iomodel.solving.tile_times import TileTimes

Compared = Annotated[
    list[str] | None,
    typer.Argument(
        help=f"Algorithms, all by default: {', '.join(list_algorithms())}.",
        autocompletion=algorithm_names,
        show_default=False,
    ),
]
TILE_NAMES = [parameter.name for parameter in TILE]
MAPPED = ("hardware", "implementation", "min_block_kv", "min_blocks_per_sm")
"""Options of `tiles` that a map of times takes."""
LAUNCH_NAMES = [parameter.name for parameter in LAUNCHED]


@with_options(WORKLOAD, BUDGET, KERNELS, ALGORITHM)
def tiles(
    algorithm: Algorithm,
    *,
    map: Annotated[
        bool, typer.Option("--map", help="Print the time of every tile that fits, as a map.", rich_help_panel="Output")
    ] = False,
    json: Json = False,
    **arguments: Any,
) -> None:
    """Find the fastest tiles on a device, or those with the least traffic in a memory, with a proof.

    Example:
      iomodel tiles flash3 --hardware h100-sxm5 --q-len 8192 --head-dim 128
    """
    from iomodel.solving.solve import solve

    chosen, form = values.options(arguments, list_algorithms()), arguments["emit"]
    limits = values.budget(arguments)
    if map:
        emit(timed_tiles(algorithm, arguments), json)
        return
    if form is None:
        call = values.workload(arguments, algorithm)
        solution = solve(algorithm, call, **limits, **chosen)
        emit(solution, json)
        mapped = isinstance(call, Call) and solution.placed and solution.seconds and not limits.keys() - MAPPED
        if sys.stdout.isatty() and not json and mapped:
            emit(group(["", *timed_tiles(algorithm, arguments).map()]))
        return
    typer.echo(_source_text(algorithm, form, limits, chosen, arguments))


def _source_text(
    algorithm: str, form: str, limits: dict[str, Any], chosen: Mapping[str, Any], arguments: Mapping[str, Any]
) -> str:
    """Write the choices of least time as source text."""
    from iomodel.solving.export import FORMS, MOST, exported
    from iomodel.solving.solve import solve

    if form not in (forms := ["triton", *FORMS]):
        raise UnknownNameError("emit", form, forms)
    device, top = _device(arguments), limits.pop("top", None)
    taken = (
        "hardware",
        "implementation",
        "objective",
        *(("min_block_kv", "min_blocks_per_sm") if form in FORMS else ()),
    )
    refused = [name for name in (*limits, *(chosen if form == "triton" else ())) if name not in taken]
    if refused:
        raise InputError(f"{refused[0]}: given with emit {form!r}; allowed: {', '.join(taken)}, top")
    if limits.get("objective", "time") != "time":
        raise InputError(f"objective: {limits['objective']!r} given with emit; allowed: 'time'")
    call = values.workload(arguments, algorithm)
    if form != "triton":
        return exported(solve(algorithm, call, **{**limits, "top": MOST}, **chosen), form, top)
    from iomodel.triton.listing import AMD, source

    if limits.get("implementation", "triton") not in ("triton", AMD):
        raise InputError(
            f"implementation: {limits['implementation']!r} given with emit 'triton'; allowed: 'triton', {AMD!r}"
        )
    return source(algorithm, as_attention(call), device, top=top)


def timed_tiles(algorithm: str, arguments: Mapping[str, Any]) -> TileTimes:
    """Time every tile that fits the given device."""
    from iomodel.solving.tile_times import tile_times

    _device(arguments)
    limits, chosen = values.budget(arguments), values.options(arguments, list_algorithms())
    refused = [name for name in limits if name not in (*MAPPED, "objective") or limits[name] == "traffic"]
    refused += [name for name in ("emit",) if arguments.get(name) is not None]
    if refused:
        raise InputError(f"{refused[0]}: given for a map of times; allowed: {', '.join(MAPPED)}")
    limits.pop("objective", None)
    return tile_times(algorithm, as_call(values.workload(arguments, algorithm)), **limits, **chosen)


@with_options(WORKLOAD, [DEVICE, IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM)
def check(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Check whether a tile fits a device, and show the limiting resource and the occupancy.

    Example:
      iomodel check flash2 --hardware a100-sxm4-80gb --q-len 8192 --head-dim 128 --block-q 128 --block-kv 64 --warps 4
    """
    from iomodel.placement.check import check as look

    device = _device(arguments)
    sizes, chosen = values.tiles(arguments, [*LAUNCH_NAMES, *TILE_NAMES]), values.options(arguments, list_algorithms())
    call: Any = values.workload(arguments, algorithm)
    kernels = arguments["implementation"]
    emit(look(algorithm, call, device, sizes, kernels, **chosen), json)


@with_options(WORKLOAD, BUDGET, [IMPLEMENTATION, OBJECTIVE, APPROXIMATE], ALGORITHM)
def compare(algorithms: Compared = None, *, json: Json = False, **arguments: Any) -> None:
    """Solve several algorithms and list them side by side, by time on a device or by traffic in a memory.

    Example:
      iomodel compare flash2 flash3 split_kv --hardware h100-sxm5 --q-len 4096 --head-dim 64
    """
    from iomodel.studies.compare import compare as solve_all

    chosen = values.options(arguments, list_algorithms())
    call, approximate = (
        values.workload(arguments, algorithms[0] if algorithms else None),
        bool(arguments["approximate"]),
    )
    limits = values.budget(arguments)
    emit(solve_all(call, **limits, approximate=approximate, algorithms=algorithms or None, **chosen), json)


def _device(arguments: Mapping[str, Any]) -> str:
    """Return the device of a command that needs one."""
    require(arguments, ("hardware",))
    return str(arguments["hardware"])
