"""The pictures of the command line: `iomodel plot roofline | traffic | feasible | breakdown | crossover`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from iomodel.algorithms import list_algorithms
from iomodel.commands import crossover as crossings
from iomodel.commands import values
from iomodel.commands.numbers import integer, sizes
from iomodel.commands.options import ALGORITHM, BUDGET, DEVICE, LAUNCHED, RESIDENCY, TILE, WORKLOAD, Algorithm, Json
from iomodel.commands.output import emit
from iomodel.commands.signature import option, switch, with_options
from iomodel.errors import InputError
from iomodel.hardware import list_hardware
from iomodel.workload import as_attention

app = typer.Typer(help="Draw a picture to a PNG or SVG file.", rich_markup_mode="rich")

Algorithms = Annotated[
    list[str],
    typer.Argument(help=f"One or several of {', '.join(list_algorithms())}", autocompletion=list_algorithms),
]
FILE = [
    option("output", "The picture: a file that ends in .png or .svg (needed).", "Output", "FILE"),
    switch("force", "Replace a file that is there.", "Output"),
]
DEVICES = option("hardware", "Devices to mark, with commas between them.", "Device", "LIST", tuple(list_hardware()))
SRAM = [
    option("sram", "SRAM sizes, such as '32 KiB, 64 KiB' (chosen if not given).", "Solver", "LIST"),
    *(known for known in BUDGET if known.name in ("alignment", "min_block_kv")),
]
BARE = [known for known in BUDGET if known.name in ("sram_bytes", "sram_elements", "alignment")]
LYING = [known for known in RESIDENCY if known.name == "residency"]
TILE_NAMES = [parameter.name for parameter in TILE]
LAUNCH_NAMES = [parameter.name for parameter in LAUNCHED]


@app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        names = ", ".join(getattr(context.command, "commands", ()))
        raise InputError(f"plot: no picture given; allowed: {names}; 'iomodel plot --help' says more")


@app.command()
@with_options(WORKLOAD, [DEVICE], LAUNCHED, TILE, ALGORITHM, FILE)
def roofline(algorithms: Algorithms, *, json: Json = False, **given: Any) -> None:
    """Draw estimates under the roofs of a device.

    Example:
      iomodel plot roofline flash2 flash3 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --output roofline.svg
    """
    from iomodel.plots import roofline as draw

    _drawn(given, json, lambda: draw(_estimates(algorithms, given), given["hardware"]))


@app.command()
@with_options(WORKLOAD, [DEVICE], LAUNCHED, TILE, ALGORITHM, FILE)
def breakdown(algorithms: Algorithms, *, json: Json = False, **given: Any) -> None:
    """Draw the estimated time of every resource, and which one binds.

    Example:
      iomodel plot breakdown flash2 --hardware h100-sxm5 --q-len 8192 --head-dim 128 --output breakdown.svg
    """
    from iomodel.plots import breakdown as draw

    _drawn(given, json, lambda: draw(_estimates(algorithms, given)))


@app.command()
@with_options(WORKLOAD, [DEVICES], SRAM, ALGORITHM, FILE)
def traffic(algorithms: Algorithms, *, json: Json = False, **given: Any) -> None:
    """Draw HBM traffic against SRAM, beside the lower bounds.

    Example:
      iomodel plot traffic flash2 --hardware a100-sxm4-80gb,h100-sxm5 --q-len 4096 --head-dim 64 --output traffic.svg
    """
    from iomodel.plots import traffic_against_sram

    def draw() -> Any:
        devices = [name.strip() for name in given["hardware"].split(",")] if given["hardware"] is not None else None
        wanted = None if given["sram"] is None else sizes("sram", given["sram"])
        steps = {name: integer(name, given[name]) for name in ("alignment", "min_block_kv") if given[name] is not None}
        chosen = values.options(given, list_algorithms())
        return traffic_against_sram(algorithms, values.workload(given), devices, wanted, **steps, **chosen)

    _drawn(given, json, draw)


@app.command()
@with_options(WORKLOAD, [DEVICE], BARE, LYING, LAUNCHED, TILE, ALGORITHM, FILE)
def feasible(algorithm: Algorithm, *, json: Json = False, **given: Any) -> None:
    """Draw which tiles fit, coloured by their traffic; a tile that is given is marked.

    Example:
      iomodel plot feasible flash2 --hardware h100-sxm5 --residency gpu --q-len 8192 --head-dim 128 --output map.svg
    """
    from iomodel.plots import feasible_tiles

    def draw() -> Any:
        tile = values.tiles(given, TILE_NAMES)
        more = {**values.tiles(given, LAUNCH_NAMES), **values.options(given, list_algorithms())}
        more |= {name: value for name, value in values.budget(given).items() if value is not None}
        return feasible_tiles(algorithm, values.workload(given), marks={"given": tile} if tile else {}, **more)

    _drawn(given, json, draw)


@app.command()
@with_options(*crossings.GROUPS, FILE)
def crossover(algorithms: crossings.Contenders, *, json: Json = False, **given: Any) -> None:
    """Draw what algorithms move, compute or take over a length, and mark where another becomes the least.

    Example:
      iomodel plot crossover flash1 standard --head-dim 64 --block-q 64 --block-kv 64 --output crossover.svg
    """
    from iomodel.plots import crossover as draw

    _drawn(given, json, lambda: draw(crossings.found(algorithms, given)))


def _estimates(algorithms: list[str], given: dict[str, Any]) -> list[Any]:
    """An estimate for each algorithm, at the tiles given or at its own."""
    from iomodel.estimate import estimate

    if given["hardware"] is None:
        raise InputError("hardware: none given; allowed: a device, such as --hardware h100-sxm5")
    tiles = values.tiles(given, [*LAUNCH_NAMES, *TILE_NAMES]) or None
    call, chosen = as_attention(values.workload(given)), values.options(given, list_algorithms())
    return [estimate(name, call, given["hardware"], tiles, **chosen) for name in algorithms]


def _drawn(given: dict[str, Any], json: bool, draw: Callable[[], Any]) -> None:
    """Draw, write the file, say where it is; a file that cannot be written is found out before anything is drawn."""
    from iomodel.plots.canvas import save, writable

    if given["output"] is None:
        raise InputError("output: none given; allowed: a file that ends in .png or .svg, such as --output picture.svg")
    overwrite = bool(given["force"])
    writable(given["output"], overwrite=overwrite)
    figure = draw()
    path = save(figure, given["output"], overwrite=overwrite)
    title = figure.get_suptitle()
    emit({"output": str(path), "title": title, "bytes": path.stat().st_size} if json else f"{title}: {path}", json)
