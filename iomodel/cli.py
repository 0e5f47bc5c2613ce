"""The command line: arguments in, table or JSON out. Everything it says is computed by the library.

Exit codes: 0 with an answer; 1 with one line where no tile fits; 2 with one line where the input is at fault;
130 after Ctrl-C; 141 where the reader of a pipe has left.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from iomodel.algorithms import list_algorithms
from iomodel.commands import values
from iomodel.commands.calibrate import calibrate
from iomodel.commands.crossover import crossover
from iomodel.commands.diagnose import diagnose
from iomodel.commands.estimate import estimate, judge
from iomodel.commands.explore import explore
from iomodel.commands.masks import mask as typed_mask
from iomodel.commands.model import model
from iomodel.commands.options import (
    ALGORITHM,
    APPROXIMATE,
    BUDGET,
    DEVICE,
    KIND,
    LAUNCHED,
    OBJECTIVE,
    RESIDENCY,
    TILE,
    WORKLOAD,
    Algorithm,
    Json,
)
from iomodel.commands.output import ReaderLeftError, complain, emit, usage_fault
from iomodel.commands.plan import fleet, plan
from iomodel.commands.plot import app as plot
from iomodel.commands.signature import with_options
from iomodel.commands.sweep import sweep
from iomodel.commands.trace import trace
from iomodel.errors import InfeasibleError, InputError, IOModelError
from iomodel.features import FEATURES
from iomodel.hardware import list_hardware
from iomodel.workload import as_attention

app = typer.Typer(
    help="Exact HBM traffic of attention algorithms, and proven tiles.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
TILE_NAMES = [parameter.name for parameter in TILE]
LAUNCH_NAMES = [parameter.name for parameter in LAUNCHED]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            emit(f"iomodel {version('iomodel')}")
        except PackageNotFoundError:
            emit("iomodel (a checkout that is not installed)")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - the callback answers
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        names = ", ".join(getattr(context.command, "commands", ()))
        raise InputError(f"command: none given; allowed: {names}; 'iomodel --help' says more")


@app.command()
@with_options(WORKLOAD, BUDGET, RESIDENCY, ALGORITHM)
def tiles(algorithm: Algorithm, *, json: Json = False, **given: Any) -> None:
    """Find the tiles that move the fewest HBM bytes, with the proof.

    Example:
      iomodel tiles flash2 --hardware h100-sxm5 --q-len 8192 --head-dim 128
    """
    from iomodel.solve import solve

    chosen = values.options(given, list_algorithms())
    emit(solve(algorithm, values.workload(given), **values.budget(given), **chosen), json)


@app.command()
@with_options(WORKLOAD, [DEVICE], LAUNCHED, TILE, ALGORITHM)
def check(algorithm: Algorithm, *, json: Json = False, **given: Any) -> None:
    """Say whether a tile fits a device, what is left, what binds, and how many blocks an SM takes.

    Example:
      iomodel check flash2 --hardware a100-sxm4-80gb --q-len 8192 --head-dim 128 --block-q 128 --block-kv 64 --warps 4
    """
    from iomodel.check import check as look

    if given["hardware"] is None:
        raise InputError("hardware: none given; allowed: a device, such as --hardware h100-sxm5")
    sizes, chosen = values.tiles(given, [*LAUNCH_NAMES, *TILE_NAMES]), values.options(given, list_algorithms())
    emit(look(algorithm, as_attention(values.workload(given)), given["hardware"], sizes, **chosen), json)


@app.command()
@with_options(WORKLOAD, TILE, ALGORITHM)
def cost(algorithm: Algorithm, *, json: Json = False, **given: Any) -> None:
    """Count what an algorithm moves and computes at given tiles.

    Example:
      iomodel cost flash2 --q-len 8192 --head-dim 128 --block-q 128 --block-kv 64
    """
    from iomodel.cost import cost as count

    sizes, chosen = values.tiles(given, TILE_NAMES), values.options(given, list_algorithms())
    emit(count(algorithm, values.workload(given), sizes, **chosen), json)


@app.command()
@with_options(WORKLOAD, BUDGET, [OBJECTIVE, APPROXIMATE], ALGORITHM)
def compare(*, json: Json = False, **given: Any) -> None:
    """Solve every algorithm and list them side by side, least traffic first, or the fastest.

    Example:
      iomodel compare --hardware a100-sxm4-80gb --q-len 4096 --head-dim 64 --objective time
    """
    from iomodel.compare import compare as solve_all

    chosen = values.options(given, list_algorithms())
    beside = bool(given["approximate"])
    emit(solve_all(values.workload(given), **values.budget(given), approximate=beside, **chosen), json)


@app.command()
@with_options(KIND, ALGORITHM)
def formula(
    algorithm: Algorithm,
    *,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX.", rich_help_panel="Output")] = False,
    json: Json = False,
    **given: Any,
) -> None:
    """Print the exact formulas; the widths of a window stay symbols, and so does a number of splits not given.

    Example:
      iomodel formula flash2 --mask causal --paged
    """
    from iomodel.expressions import expressions
    from iomodel.formula_text import readable

    direction = given["direction"] or "forward"
    chosen = {**values.options(given, list_algorithms()), **values.features(given, FEATURES)}
    found = expressions(algorithm, typed_mask(given), direction, **chosen)
    if json:
        emit({**found.to_dict(), "latex": found.latex()} if latex else found, as_json=True)
    else:
        emit(found.latex() if latex else readable(found))


@app.command()
def algorithms(*, json: Json = False) -> None:
    """List the algorithms: what each answers, its options, its source.

    Example:
      iomodel algorithms --json
    """
    from iomodel.algorithm_list import every_algorithm, overview

    emit(every_algorithm() if json else overview(), json)


@app.command()
def hardware(
    name: Annotated[
        str | None,
        typer.Argument(help="A device, or its YAML file; all devices if not given.", autocompletion=list_hardware),
    ] = None,
    json: Json = False,
) -> None:
    """Show the figures of a device with their sources, or all devices.

    Example:
      iomodel hardware h100-sxm5
    """
    from iomodel.hardware import hardware as find
    from iomodel.hardware_list import every_device, overview

    if name is not None:
        emit(find(name), json)
    else:
        emit({device: found.to_dict() for device, found in every_device().items()} if json else overview(), json)


app.command()(crossover)
app.command()(estimate)
app.command()(judge)
app.command()(explore)
app.command()(diagnose)
app.command()(calibrate)
app.command()(trace)
app.command()(model)
app.command()(sweep)
app.command()(plan)
app.command()(fleet)
app.add_typer(plot, name="plot")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never raises, whatever was typed."""
    try:
        return _exit_code(app(arguments, prog_name="iomodel", standalone_mode=False))
    except InfeasibleError as error:
        complain(error)
        return 1
    except IOModelError as error:
        complain(error)
        return 2
    except ReaderLeftError:
        return 141
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except Exception as error:
        if hasattr(error, "format_message"):  # of the option parser, which is click or typer's own copy of it
            complain(usage_fault(error))
            return 2
        if "IOMODEL_TRACEBACK" in os.environ:
            raise
        complain(f"internal error, {type(error).__name__}: {error}; IOMODEL_TRACEBACK=1 shows where; please report it")
        return 70


def _exit_code(returned: object) -> int:
    return returned if isinstance(returned, int) else 0
