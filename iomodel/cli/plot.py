"""Commands that draw pictures, such as `iomodel plot roofline` and `iomodel plot times`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from iomodel.cli import crossover as crossings
from iomodel.cli import staircase as stairs
from iomodel.cli import values
from iomodel.cli.algorithm_names import list_algorithms
from iomodel.cli.numbers import integer, sizes
from iomodel.cli.options import (
    ALGORITHM,
    BUDGET,
    DEVICE,
    IMPLEMENTATION,
    KERNELS,
    LAUNCHED,
    TILE,
    WORKLOAD,
    Algorithm,
    Json,
    algorithm_names,
)
from iomodel.cli.output import emit
from iomodel.cli.required import require
from iomodel.cli.signature import option, switch, with_options
from iomodel.cli.tiles import timed_tiles
from iomodel.devices.device import list_hardware
from iomodel.errors import InputError
from iomodel.workloads.attention import as_attention
from iomodel.workloads.varlen import as_call

plot = typer.Typer(help="Draw a picture to a PNG or SVG file.", rich_markup_mode="rich", add_completion=False)

Algorithms = Annotated[
    list[str],
    typer.Argument(help=f"One or several of {', '.join(list_algorithms())}", autocompletion=algorithm_names),
]
FILE = [
    option("output", "Output file, ending in .png or .svg (iomodel-PICTURE.png).", "Output", "FILE"),
    switch("force", "Replace an existing file.", "Output"),
]
DEVICES = option("hardware", "Devices to mark, separated by commas.", "Device", "LIST", list_hardware)
SRAM = [
    option("sram", "SRAM sizes, such as '32 KiB, 64 KiB' (automatic).", "Solver", "LIST"),
    *(known for known in BUDGET if known.name in ("alignment", "min_block_kv")),
]
BARE = [known for known in BUDGET if known.name in ("sram_bytes", "sram_elements", "alignment")]
TIMED = [IMPLEMENTATION, *(known for known in (*BUDGET, *KERNELS) if known.name.startswith("min_block"))]
TILE_NAMES = [parameter.name for parameter in TILE]
LAUNCH_NAMES = [parameter.name for parameter in LAUNCHED]


@plot.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        names = ", ".join(getattr(context.command, "commands", ()))
        raise InputError(f"plot: no picture given; allowed: {names}; see 'iomodel plot --help'")


@plot.command()
@with_options(WORKLOAD, [DEVICE, IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM, FILE)
def roofline(algorithms: Algorithms, *, json: Json = False, **arguments: Any) -> None:
    """Draw estimates under the roofs of a device.

    Example:
      iomodel plot roofline flash2 flash3 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --output roofline.svg
    """
    from iomodel.plots import roofline as draw

    _drawn("roofline", arguments, json, lambda: draw(_estimates(algorithms, arguments), arguments["hardware"]))


@plot.command()
@with_options(WORKLOAD, [DEVICE, IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM, FILE)
def breakdown(algorithms: Algorithms, *, json: Json = False, **arguments: Any) -> None:
    """Draw the estimated time of every resource, with the limiting one marked.

    Example:
      iomodel plot breakdown flash2 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --output breakdown.svg
    """
    from iomodel.plots import breakdown as draw

    _drawn("breakdown", arguments, json, lambda: draw(_estimates(algorithms, arguments)))


@plot.command()
@with_options(WORKLOAD, [DEVICES], SRAM, ALGORITHM, FILE)
def traffic(algorithms: Algorithms, *, json: Json = False, **arguments: Any) -> None:
    """Draw HBM traffic against SRAM, with the lower bounds.

    Example:
      iomodel plot traffic flash2 --hardware a100-sxm4-80gb,h100-sxm5 --q-len 4096 --head-dim 64 --output traffic.svg
    """
    from iomodel.plots import traffic_against_sram

    def draw() -> Any:
        devices = (
            [name.strip() for name in arguments["hardware"].split(",")] if arguments["hardware"] is not None else None
        )
        requested = None if arguments["sram"] is None else sizes("sram", arguments["sram"])
        steps = {
            name: integer(name, arguments[name])
            for name in ("alignment", "min_block_kv")
            if arguments[name] is not None
        }
        chosen = values.options(arguments, list_algorithms())
        return traffic_against_sram(
            algorithms, as_call(values.workload(arguments)), devices, requested, **steps, **chosen
        )

    _drawn("traffic", arguments, json, draw)


@plot.command()
@with_options(WORKLOAD, [DEVICE], TIMED, ALGORITHM, FILE)
def times(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Draw the time of every tile that fits a device, with the fastest and the shipped tile marked.

    Example:
      iomodel plot times flash3 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --output times.svg
    """
    from iomodel.plots import tile_times as draw

    _drawn("times", arguments, json, lambda: draw(timed_tiles(algorithm, arguments)))


@plot.command()
@with_options(WORKLOAD, [DEVICE], BARE, [IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM, FILE)
def feasible(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Draw the feasible tiles, coloured by their traffic, and mark a given tile.

    Example:
      iomodel plot feasible flash2 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --output map.svg
    """
    from iomodel.plots import feasible_tiles

    def draw() -> Any:
        tile = values.tiles(arguments, TILE_NAMES)
        more = {**values.tiles(arguments, LAUNCH_NAMES), **values.options(arguments, list_algorithms())}
        more |= {name: value for name, value in values.budget(arguments).items() if value is not None}
        call = as_call(values.workload(arguments, algorithm))
        return feasible_tiles(algorithm, call, marks={"given": tile} if tile else {}, **more)

    _drawn("feasible", arguments, json, draw)


@plot.command()
@with_options(WORKLOAD, [DEVICE], TILE, ALGORITHM, FILE)
def moves(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Draw the schedule of a small call: each tile that moves, a lane for each tensor.

    Example:
      iomodel plot moves flash2 --q-len 64 --head-dim 16 --block-q 16 --block-kv 16 --output moves.svg
    """
    from iomodel.plots import moves as draw
    from iomodel.studies.trace.trace import trace

    tile, chosen = values.tiles(arguments, TILE_NAMES), values.options(arguments, list_algorithms())
    call, device = values.workload(arguments, algorithm), arguments["hardware"]
    _drawn("moves", arguments, json, lambda: draw(trace(algorithm, call, device, tile or None, **chosen)))


@plot.command()
@with_options(WORKLOAD, [DEVICE, IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM, FILE)
def chip(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Draw the buffers of a thread block in shared memory, registers and tensor memory, by default of the shipped tile.

    Example:
      iomodel plot chip flash3 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --output chip.svg
    """
    from iomodel.plots import on_chip as draw

    require(arguments, ("hardware",))
    tile, chosen = values.tiles(arguments, [*LAUNCH_NAMES, *TILE_NAMES]), values.options(arguments, list_algorithms())
    call, kernels = as_attention(values.workload(arguments, algorithm)), arguments["implementation"]
    _drawn(
        "chip", arguments, json, lambda: draw(algorithm, call, arguments["hardware"], tile or None, kernels, **chosen)
    )


@plot.command()
@with_options(*crossings.GROUPS, FILE)
def crossover(algorithms: crossings.Contenders, *, json: Json = False, **arguments: Any) -> None:
    """Draw traffic, work or time of algorithms over a length, and mark where the best one changes.

    Example:
      iomodel plot crossover flash1 standard --head-dim 64 --block-q 64 --block-kv 64 --output crossover.svg
    """
    from iomodel.plots import crossover as draw

    _drawn("crossover", arguments, json, lambda: draw(crossings.computed(algorithms, arguments)))


@plot.command()
@with_options(*stairs.GROUPS, FILE)
def staircase(algorithms: Algorithms, *, json: Json = False, **arguments: Any) -> None:
    """Draw the least traffic at every size of the memory, above the lower bound of any schedule.

    Example:
      iomodel plot staircase flash2 flash1 --q-len 2048 --head-dim 64 --output staircase.svg
    """
    from iomodel.plots import staircase as draw

    _drawn("staircase", arguments, json, lambda: draw([stairs.solved(name, arguments) for name in algorithms]))


def _estimates(algorithms: list[str], arguments: dict[str, Any]) -> list[Any]:
    """Estimate each algorithm, at the given tiles or at its fastest."""
    from iomodel.studies.estimate import estimate

    require(arguments, ("hardware",))
    tiles = values.tiles(arguments, [*LAUNCH_NAMES, *TILE_NAMES]) or None
    call, chosen = as_attention(values.workload(arguments)), values.options(arguments, list_algorithms())
    device, kernels = arguments["hardware"], arguments["implementation"]
    return [estimate(name, call, device, tiles, implementation=kernels, **chosen) for name in algorithms]


def _drawn(picture: str, arguments: dict[str, Any], json: bool, draw: Callable[[], Any]) -> None:
    """Draw a picture, write it, and print its path; check the path before drawing."""
    from iomodel.plots.canvas import save, writable

    output = f"iomodel-{picture}.png" if arguments["output"] is None else arguments["output"]
    overwrite = bool(arguments["force"])
    writable(output, overwrite=overwrite)
    figure = draw()
    path = save(figure, output, overwrite=overwrite)
    title = figure.get_suptitle()
    emit({"output": str(path), "title": title, "bytes": path.stat().st_size} if json else f"{title}: {path}", json)
