"""Commands that draw pictures, such as `iomodel plot roofline` and `iomodel plot times`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from iomodel.cli import call_commands as calls
from iomodel.cli import values
from iomodel.cli.algorithm_names import list_algorithms
from iomodel.cli.call_commands import timed_tiles
from iomodel.cli.common_options import DEVICE, Json, devices_of
from iomodel.cli.common_options import DEVICES as SEVERAL
from iomodel.cli.documented import given, of
from iomodel.cli.numbers import sizes
from iomodel.cli.output import emit
from iomodel.cli.required import require
from iomodel.cli.shared_options import (
    ALGORITHM,
    IMPLEMENTATION,
    LAUNCHED,
    SOLVE,
    TILE,
    WORKLOAD,
    Algorithm,
    algorithm_names,
)
from iomodel.cli.signature import option, switch, with_options
from iomodel.devices.device import list_hardware
from iomodel.errors import InputError
from iomodel.workloads.attention import as_attention
from iomodel.workloads.varlen import as_call

plot = typer.Typer(help="Draw a picture to a PNG, SVG, PDF or PGF file.", rich_markup_mode="rich", add_completion=False)

Algorithms = Annotated[
    list[str], typer.Argument(help=f"One or several of {', '.join(list_algorithms())}", autocompletion=algorithm_names)
]
FILE = [
    option("out", "Output file, ending in .png, .svg, .pdf or .pgf (iomodel-PICTURE.png).", "Output", "FILE"),
    switch("force", "Replace an existing file.", "Output"),
    option("style", "Style: notebook, paper or slides (notebook).", "Output", "NAME", ("notebook", "paper", "slides")),
    option("width", "Width, such as 3.3in or '84 mm' (that of the style).", "Output", "LENGTH"),
    option("height", "Height (that of the picture).", "Output", "LENGTH"),
    option("font", "Family of all texts, such as serif.", "Output", "NAME"),
    switch("no_title", "Leave out the title and the line below it, which --json has as the caption.", "Output"),
    switch("dark", "Light ink on dark paper.", "Output"),
]
DEVICES = option("hardware", "Devices to mark, separated by commas.", "Device", "LIST", list_hardware)
SRAM = option("sram", "SRAM sizes, such as '32 KiB, 64 KiB' (automatic).", "Solver", "LIST")
TILES = of(SOLVE, "Solver", "alignment min_block_kv")
BARE = of(SOLVE, "Solver", "sram_bytes sram_elements alignment")
TIMED = of(SOLVE, "Solver", "min_block_kv min_blocks_per_sm")


@plot.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        names = ", ".join(getattr(context.command, "commands", ()))
        raise InputError(f"plot: no picture given; allowed: {names}; see 'iomodel plot --help'")


@plot.command()
@with_options(WORKLOAD, [SEVERAL, IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM, FILE)
def roofline(algorithms: Algorithms, *, json: Json = False, **arguments: Any) -> None:
    """Draw estimates under the roofs of a device, or of several.

    Example:
      iomodel plot roofline flash2 flash3 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --out roofline.svg
    """
    from iomodel.plots import roofline as draw

    devices = devices_of(arguments)
    if not devices:
        require(arguments, ("hardware",))

    def picture() -> Any:
        each = [{**arguments, "hardware": device} for device in devices]
        return draw([known for one in each for known in _estimates(algorithms, one)], devices)

    _drawn("roofline", arguments, json, picture)


@plot.command()
@with_options(WORKLOAD, [DEVICE, IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM, FILE)
def breakdown(algorithms: Algorithms, *, json: Json = False, **arguments: Any) -> None:
    """Draw the estimated time of every resource, with the limiting one marked.

    Example:
      iomodel plot breakdown flash2 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --out breakdown.svg
    """
    from iomodel.plots import breakdown as draw

    _drawn("breakdown", arguments, json, lambda: draw(_estimates(algorithms, arguments)))


@plot.command()
@with_options(WORKLOAD, [DEVICES, SRAM], TILES, ALGORITHM, FILE)
def traffic(algorithms: Algorithms, *, json: Json = False, **arguments: Any) -> None:
    """Draw requests against SRAM, with the lower bounds.

    Example:
      iomodel plot traffic flash2 --hardware a100-sxm4-80gb,h100-sxm5 --q-len 4096 --head-dim 64 --out traffic.svg
    """
    from iomodel.plots import traffic_against_sram

    def draw() -> Any:
        names = arguments["hardware"]
        devices = None if names is None else [name.strip() for name in names.split(",")]
        requested = None if arguments["sram"] is None else sizes("sram", arguments["sram"])
        steps = given(arguments, SOLVE, "alignment min_block_kv")
        chosen = values.options(arguments)
        call = as_call(values.workload(arguments))
        return traffic_against_sram(algorithms, call, devices, requested, **steps, **chosen)

    _drawn("traffic", arguments, json, draw)


@plot.command()
@with_options(WORKLOAD, [DEVICE, IMPLEMENTATION], TIMED, ALGORITHM, FILE)
def times(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Draw the time of every tile that fits a device, with the fastest and the shipped tile marked.

    Example:
      iomodel plot times flash3 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --out times.svg
    """
    from iomodel.plots import tile_times as draw

    _drawn("times", arguments, json, lambda: draw(timed_tiles(algorithm, arguments)))


@plot.command()
@with_options(WORKLOAD, [DEVICE], BARE, [IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM, FILE)
def feasible(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Draw the feasible tiles, coloured by their traffic, and mark a given tile.

    Example:
      iomodel plot feasible flash2 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --out map.svg
    """
    from iomodel.plots import feasible_tiles

    def draw() -> Any:
        tile = values.tiles(arguments, TILE)
        more = {**values.tiles(arguments, LAUNCHED), **values.options(arguments)}
        more |= {name: value for name, value in values.budget(arguments).items() if value is not None}
        call = as_call(values.workload(arguments, algorithm))
        return feasible_tiles(algorithm, call, marks={"given": tile} if tile else {}, **more)

    _drawn("feasible", arguments, json, draw)


@plot.command()
@with_options(WORKLOAD, [DEVICE], TILE, ALGORITHM, FILE)
def moves(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Draw the schedule of a small call: each tile that moves, a lane for each tensor.

    Example:
      iomodel plot moves flash2 --q-len 64 --head-dim 16 --block-q 16 --block-kv 16 --out moves.svg
    """
    from iomodel.plots import moves as draw
    from iomodel.studies.trace.trace import trace

    tile, chosen = values.tiles(arguments, TILE), values.options(arguments)
    call, device = values.workload(arguments, algorithm), arguments["hardware"]
    _drawn("moves", arguments, json, lambda: draw(trace(algorithm, call, device, tile or None, **chosen)))


@plot.command()
@with_options(WORKLOAD, [DEVICE, IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM, FILE)
def chip(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Draw the buffers of a thread block in shared memory, registers and tensor memory, by default of the shipped tile.

    Example:
      iomodel plot chip flash3 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --out chip.svg
    """
    from iomodel.plots import on_chip as draw

    require(arguments, ("hardware",))
    tile, chosen = values.tiles(arguments), values.options(arguments)
    call, kernels = as_attention(values.workload(arguments, algorithm)), arguments["implementation"]
    _drawn(
        "chip", arguments, json, lambda: draw(algorithm, call, arguments["hardware"], tile or None, kernels, **chosen)
    )


@plot.command()
@with_options(*calls.CROSSED, FILE)
def crossover(algorithms: calls.Contenders, *, json: Json = False, **arguments: Any) -> None:
    """Draw traffic, work or time of algorithms over a length, and mark where the best one changes.

    Example:
      iomodel plot crossover flash1 standard --head-dim 64 --block-q 64 --block-kv 64 --out crossover.svg
    """
    from iomodel.plots import crossover as draw

    _drawn("crossover", arguments, json, lambda: draw(calls.crossed(algorithms, arguments)))


@plot.command()
@with_options(*calls.STEPPED, FILE)
def staircase(algorithms: Algorithms, *, json: Json = False, **arguments: Any) -> None:
    """Draw the least traffic at every size of the memory, above the lower bound for every schedule.

    Example:
      iomodel plot staircase flash2 flash1 --q-len 2048 --head-dim 64 --out staircase.svg
    """
    from iomodel.plots import staircase as draw

    _drawn("staircase", arguments, json, lambda: draw([calls.stepped(name, arguments) for name in algorithms]))


def _estimates(algorithms: list[str], arguments: dict[str, Any]) -> list[Any]:
    """Estimate each algorithm, at the given tiles or at its fastest."""
    from iomodel.studies.estimate import estimate

    require(arguments, ("hardware",))
    tiles = values.tiles(arguments) or None
    call, chosen = as_attention(values.workload(arguments)), values.options(arguments)
    device, kernels = arguments["hardware"], arguments["implementation"]
    return [estimate(name, call, device, tiles, implementation=kernels, **chosen) for name in algorithms]


def _drawn(picture: str, arguments: dict[str, Any], json: bool, draw: Callable[[], Any]) -> None:
    """Draw a picture, write it, and print its path; check the path before drawing."""
    from iomodel.plots.canvas import save, writable
    from iomodel.plots.styles import style

    output = f"iomodel-{picture}.png" if arguments["out"] is None else arguments["out"]
    overwrite = bool(arguments["force"])
    writable(output, overwrite=overwrite)
    given_looks = {name: arguments[name] for name in ("width", "height", "font") if arguments[name] is not None}
    title = False if arguments["no_title"] else None
    with style(arguments["style"] or "notebook", title=title, dark=bool(arguments["dark"]), **given_looks):
        figure: Any = draw()
    path = save(figure, output, overwrite=overwrite)
    name, caption = " ".join(figure.get_suptitle().split()), figure.caption
    answer = {"output": str(path), "title": name, "caption": caption, "bytes": path.stat().st_size}
    emit(answer if json else f"{name}: {path}", json, kind="plot")
