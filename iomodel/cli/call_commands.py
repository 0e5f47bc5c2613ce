"""Commands about one call and its algorithms: from `tiles` and `cost` to `crossover`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.cli import values
from iomodel.cli.algorithm_names import list_algorithms
from iomodel.cli.common_options import DEVICE, DEVICES, Json, devices_of
from iomodel.cli.documented import GROUPS, function, given, of
from iomodel.cli.masks import mask as typed_mask
from iomodel.cli.numbers import integer
from iomodel.cli.output import complain, emit
from iomodel.cli.required import require
from iomodel.cli.shared_options import (
    ALGORITHM,
    APPROXIMATE,
    BUDGET,
    IMPLEMENTATION,
    KERNELS,
    KIND,
    LAUNCHED,
    LIMITS,
    MEMORY,
    OBJECTIVE,
    RANKED,
    SYMBOLS,
    TILE,
    WORKLOAD,
    Algorithm,
    Tiled,
    algorithm_names,
)
from iomodel.cli.signature import option, several, switch, with_options
from iomodel.common.display import Table, group
from iomodel.common.validation import as_integer
from iomodel.errors import InputError, MissingRateError, UnknownNameError, shown
from iomodel.nests.alphabet import LAUNCH_NAMES, SHAPES
from iomodel.workloads.attention import as_attention
from iomodel.workloads.call import Call
from iomodel.workloads.varlen import as_call

if TYPE_CHECKING:
    from iomodel.counting.without_tiles import WithoutTiles
    from iomodel.solving.tile_times import TileTimes
    from iomodel.studies.diagnosis.diagnose import Diagnosis

Compared = Annotated[
    list[str] | None,
    typer.Argument(
        help=f"Algorithms, all by default: {', '.join(list_algorithms())}.",
        autocompletion=algorithm_names,
        show_default=False,
    ),
]
CHECKED = ("device", "fits", "kernel", "tile and launch", "limited by")
"""Columns of a tile on several devices."""
MAPPED = ("hardware", "implementation", "min_block_kv", "min_blocks_per_sm")
"""Options of `tiles` that a map of times takes."""
PARAMETERS = "timing.parameters:Parameters"
RESULTS = (".json", ".jsonl", ".log", ".txt", ".gz")
"""Endings of files that are results even where there is no such file."""
RUN = "planning.judge_run:judge_run"
Judged = Annotated[
    str,
    typer.Argument(
        help="An algorithm, or a file: the result of a benchmark of serving, the start-up log of an engine, or a trace "
        "of PyTorch's profiler.",
        autocompletion=algorithm_names,
    ),
]
LAUNCHES = of(PARAMETERS, "Time", "host_launch kernel_launch dirty_l2 warm_l2")
TRACE = "studies.trace.trace:trace"
SHOWN = 20
TRACED = [
    option("events", f"Number of printed events ({SHOWN}).", "Trace"),
    option("heads_traced", "Number of traced heads out of batch x heads, or all (1).", "Trace", "INTEGER|all"),
    several("out", "A .csv with one row per event, or a .png or .svg of memory and tiles; may be repeated.", "Trace"),
    switch("force", "Replace existing files.", "Trace"),
]
PATTERN = option("pattern", "Text in the names of the call's kernels: a regular expression.", "Report", "TEXT")
UNLIKELY = 100
"""Measured over predicted time from which a number without a unit is taken for a slip [-]."""
Report = Annotated[
    str, typer.Argument(help="A CSV of ncu --csv, or an .ncu-rep file.", metavar="FILE", show_default=False)
]
ESTIMATE = "studies.estimate:estimate"
OCCUPANCY = "placement.occupancy:occupancy"
WITHOUT_TILES = "counting.without_tiles:without_tiles"
DIAGNOSE = "studies.diagnosis.diagnose:diagnose"
MEASURED = of(DIAGNOSE, "Measured", "seconds=time blocks against")
Contenders = Annotated[
    list[str],
    typer.Argument(
        help=f"Two or more of {', '.join(list_algorithms())}; options and tiles for one algorithm follow a colon, as "
        "'split_kv:splits=4'.",
        autocompletion=algorithm_names,
        show_default=False,
    ),
]
CROSSOVERS = "studies.crossovers.crossovers:crossovers"
VARIED = of(CROSSOVERS, "Crossover", "over metric start limit step exhaustive")
CROSSED = (VARIED, WORKLOAD, BUDGET, of(CROSSOVERS, "Solver", "alignment"), LAUNCHED, TILE, ALGORITHM)
UNKNOWN = ("q_len", "head_dim")
"""Fields not required if the varied dimension itself is invalid."""
LENGTHS = {"length": ("q_len",), "q_len": ("q_len",), "head_dim": ("head_dim",)}
"""Required fields of a call that the varied dimension replaces."""
STAIRCASE = "solving.staircase:staircase"
STEPPED = (WORKLOAD, of(STAIRCASE, "Solver", "unit alignment min_block_kv"), ALGORITHM)


@with_options(WORKLOAD, [DEVICES], MEMORY, LIMITS, KERNELS, RANKED, ALGORITHM)
def tiles(
    algorithm: Tiled,
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

    devices, chosen, form = devices_of(arguments), values.options(arguments), arguments["emit"]
    limits = values.budget(arguments)
    if len(devices) > 1:
        if map or form is not None:
            raise InputError(f"hardware: {len(devices)} devices given with {'map' if map else 'emit'}; allowed: one")
        from iomodel.studies.comparison import Comparison

        call = values.workload(arguments, algorithm)
        found = Comparison.over(
            call, devices, lambda name: solve(algorithm, call, **{**limits, "hardware": name}, **chosen)
        )
        emit(found, json)
        return
    if map:
        emit(timed_tiles(algorithm, arguments), json)
        return
    if form is None:
        call = values.workload(arguments, algorithm)
        solution = solve(algorithm, call, **limits, **chosen)
        emit(solution, json, explained=True)
        mapped = isinstance(call, Call) and solution.placed and solution.timed and not limits.keys() - MAPPED
        if sys.stdout.isatty() and not json and mapped:
            emit(group(["", *timed_tiles(algorithm, arguments).map()]))
        return
    typer.echo(_source_text(algorithm, form, limits, chosen, arguments))


TRITON_FORMS = ("triton", "helion", "flex-attention")
"""Forms of source text for which the rules of Triton's compiler choose."""


def _source_text(
    algorithm: str, form: str, limits: dict[str, Any], chosen: Mapping[str, Any], arguments: Mapping[str, Any]
) -> str:
    """Write the choices of least time as source text."""
    from iomodel.solving.export import FORMS, MOST, exported
    from iomodel.solving.solve import solve

    if form not in (forms := [*TRITON_FORMS, *FORMS]):
        raise UnknownNameError("emit", form, forms)
    device, top = _device(arguments), limits.pop("top", None)
    taken = (
        "hardware",
        "implementation",
        "objective",
        *(("min_block_kv", "min_blocks_per_sm") if form in FORMS else ()),
    )
    refused = [name for name in (*limits, *(() if form in FORMS else chosen)) if name not in taken]
    if refused:
        raise InputError(f"{refused[0]}: given with emit {form!r}; allowed: {', '.join(taken)}, top")
    if limits.get("objective", "time") != "time":
        raise InputError(f"objective: {limits['objective']!r} given with emit; allowed: 'time'")
    call = values.workload(arguments, algorithm)
    if form in FORMS:
        return exported(solve(algorithm, call, **{**limits, "top": MOST}, **chosen), form, top)
    from iomodel.triton.amd import AMD
    from iomodel.triton.listing import source

    if limits.get("implementation", "triton") not in ("triton", AMD):
        raise InputError(
            f"implementation: {limits['implementation']!r} given with emit {form!r}; allowed: 'triton', {AMD!r}"
        )
    return source(algorithm, as_attention(call), device, form=form, top=top)


def timed_tiles(algorithm: str, arguments: Mapping[str, Any]) -> TileTimes:
    """Time every tile that fits the given device."""
    from iomodel.solving.tile_times import tile_times

    _device(arguments)
    limits, chosen = values.budget(arguments), values.options(arguments)
    refused = [name for name in limits if name not in (*MAPPED, "objective") or limits[name] == "traffic"]
    refused += [name for name in ("emit",) if arguments.get(name) is not None]
    if refused:
        raise InputError(f"{refused[0]}: given for a map of times; allowed: {', '.join(MAPPED)}")
    limits.pop("objective", None)
    return tile_times(algorithm, as_call(values.workload(arguments, algorithm)), **limits, **chosen)


@with_options(WORKLOAD, [DEVICES, IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM)
def check(
    algorithm: Tiled,
    *,
    fail: Annotated[
        bool, typer.Option("--fail", help="Exit with code 1 if the tile does not fit.", rich_help_panel="Output")
    ] = False,
    json: Json = False,
    **arguments: Any,
) -> int:
    """Check whether a tile fits a device, and show the limiting resource and the occupancy; or whether it fits several.

    Example:
      iomodel check flash2 --hardware a100-sxm4-80gb --q-len 8192 --head-dim 128 --block-q 128 --block-kv 64 --warps 4
    """
    from iomodel.studies.check import check as look

    devices = devices_of(arguments)
    if not devices:
        require(arguments, ("hardware",))
    sizes, chosen = values.tiles(arguments), values.options(arguments)
    call: Any = values.workload(arguments, algorithm)
    answers = [look(algorithm, call, device, sizes, arguments["implementation"], **chosen) for device in devices]
    if len(answers) == 1:
        emit(answers[0], json, explained=True)
    elif json:
        emit({"checks": [answer.to_dict() for answer in answers]}, json, kind="checks")
    else:
        emit(Table(f"{algorithm}: the tile on {len(answers)} devices", CHECKED, [_checked(each) for each in answers]))
    return int(fail and not all(answer.fits for answer in answers))


def _checked(answer: Any) -> tuple[str, ...]:
    tiles = ", ".join(f"{name}={size}" for name, size in answer.tiles.items())
    return answer.hardware, "yes" if answer.fits else "no", answer.implementation, tiles, answer.limited_by


@with_options(WORKLOAD, [DEVICES], MEMORY, LIMITS, [IMPLEMENTATION], OBJECTIVE, [APPROXIMATE], ALGORITHM)
def compare(algorithms: Compared = None, *, json: Json = False, **arguments: Any) -> None:
    """Solve several algorithms and list them side by side, by time on a device or by traffic in a memory.

    Example:
      iomodel compare flash2 flash3 split_kv --hardware h100-sxm5 --q-len 4096 --head-dim 64
    """
    from iomodel.studies.compare import compare as solve_all

    devices, chosen = devices_of(arguments), values.options(arguments)
    call = values.workload(arguments, algorithms[0] if algorithms else None)
    limits = {**values.budget(arguments), "approximate": bool(arguments["approximate"])}
    asked = {"algorithms": algorithms or None, **chosen}
    if len(devices) > 1:
        limits["hardware"] = devices
    emit(solve_all(call, **limits, **asked), json)


@with_options(of(OCCUPANCY, "Block", "threads registers shared_bytes"), [DEVICE])
def occupancy(*, json: Json = False, **arguments: Any) -> None:
    """Compute the blocks of any kernel that share an SM, from what one of them takes.

    Example:
      iomodel occupancy --hardware a100-sxm4-80gb --threads 128 --registers 168 --shared-bytes '48 KiB'
    """
    require(arguments, ("hardware", "threads"))
    emit(function(OCCUPANCY)(**given(arguments, OCCUPANCY)), json)


def _device(arguments: Mapping[str, Any]) -> str:
    """Return the device of a command that needs one."""
    require(arguments, ("hardware",))
    return str(arguments["hardware"])


@with_options(WORKLOAD, of(ESTIMATE, "Device", "hardware"), [IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM)
def cost(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Count the traffic and the operations of an algorithm at given tiles, or at those of a device's kernel.

    Without tiles and a device: what no tile decides.

    Example:
      iomodel cost flash2 --q-len 8192 --head-dim 128 --block-q 128 --block-kv 64
    """
    from iomodel.counting.cost import cost as count

    sizes, chosen = values.tiles(arguments), values.options(arguments)
    call, kernels = values.workload(arguments, algorithm), arguments["implementation"]
    if arguments["hardware"] is not None:
        device = arguments["hardware"]
        try:
            estimated = function(ESTIMATE)(algorithm, call, device, sizes or None, implementation=kernels, **chosen)
        except MissingRateError as missing:  # which a count does not need
            complain(f"counted without the device: {missing}")
        else:
            emit(estimated.cost, json)
            return
    elif kernels is not None:
        raise InputError("implementation: given without hardware; allowed: with --hardware, a device")
    declared = find_algorithm(algorithm)
    if not sizes.keys() - LAUNCH_NAMES and (declared.tiled_by is None or chosen.get(declared.tiled_by)):
        free, algorithm = function(WITHOUT_TILES)(algorithm, call, **chosen), declared.name
        if free.tiles:
            emit(_plain(algorithm, free) if json else _shown(algorithm, free), json, kind="cost-without-tiles")
            return
    emit(count(algorithm, call, sizes, **chosen), json)


def _plain(algorithm: str, free: WithoutTiles) -> dict[str, Any]:
    """Return what no tile decides, ready for JSON."""
    figures = {
        "compulsory": free.compulsory.to_dict(),
        "kv_bytes": free.kv_bytes,
        "beside": dict(free.beside),
        "useful_flops": free.useful_flops,
        "least_flops": free.least_flops,
        "exact_flops": free.exact_flops,
        "intensity": free.intensity,
    }
    moved = {"visible_pairs": free.visible_pairs, "reads": dict(free.reads), "writes": dict(free.writes)}
    return {"algorithm": algorithm, **figures, **moved, "needed_tiles": list(free.tiles)}


def _shown(algorithm: str, free: WithoutTiles) -> Table:
    """Show what no tile decides, and name the tiles that the rest needs."""
    rows = [
        ("compulsory traffic", f"{free.compulsory.elements:,}", "elements"),
        ("compulsory traffic", f"{free.compulsory.bytes:,}", "B"),
        *([] if free.kv_bytes is None else [("  of K and V", f"{free.kv_bytes:,}", "B")]),
        *((f"  beside it {name}", f"{size:,}", "B") for name, size in free.beside.items()),
    ]
    if free.useful_flops is not None:
        rows.append(("FLOPs that the call needs", f"{free.useful_flops:,}", "FLOP"))
        rows.append(("intensity at compulsory traffic", f"{free.intensity:,.4g}", "FLOP/B"))
    if free.least_flops is not None:
        rows.append(("FLOPs with tiles of one row", f"{free.least_flops:,}", "FLOP"))
    if free.share_of_exact is not None:
        rows.append(("  of those of exact attention", f"{100 * free.share_of_exact:.2f}", "%"))
    rows += [] if free.visible_pairs is None else [("visible pairs", f"{free.visible_pairs:,}", "-")]
    moved = {"reads": free.reads, "writes": free.writes}
    counts = [((side, name), count) for side, each in moved.items() for name, count in each.items() if count]
    for key, count in counts:
        size = free.element_bytes.get(key)
        rows.append((" ".join(key), f"{count:,}", "elements" + (f" = {ceil(count * size):,} B" if size else "")))
    options = ", ".join(f"--{name.replace('_', '-')}" for name in free.tiles)
    note = f"the other traffic of {algorithm} needs tiles: {options}; or --hardware, for those of a device's kernel"
    return Table(f"{algorithm}, whatever its tiles", ("", ">value", "unit"), rows, [note])


@with_options(KIND, SYMBOLS, TILE, ALGORITHM)
def formula(
    algorithm: Algorithm,
    *,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX.", rich_help_panel="Output")] = False,
    square: Annotated[
        bool, typer.Option("--square", help="With N queries and N keys, rows of one width.", rich_help_panel="Output")
    ] = False,
    leading: Annotated[
        bool,
        typer.Option(
            "--leading", help="Tiles of least traffic and its leading term in N, d and M.", rich_help_panel="Output"
        ),
    ] = False,
    aligned: Annotated[
        bool, typer.Option("--aligned", help="Write terms one under another.", rich_help_panel="Output")
    ] = False,
    json: Json = False,
    **arguments: Any,
) -> None:
    """Print the exact formulas; the widths of a window and an unspecified number of splits stay symbolic.

    Numbers given for symbols take their places.

    Example:
      iomodel formula flash2 --mask causal --paged
    """
    from iomodel.counting.expressions import expressions
    from iomodel.counting.expressions_text import readable
    from iomodel.counting.optimum import optimum
    from iomodel.counting.stacked_terms import stacked

    if aligned and (json or latex):
        raise InputError(f"aligned: given with {'latex' if latex else 'json'}; allowed: for formulas as text")
    direction = arguments["direction"] or "forward"
    chosen, numbers = values.options_by_name(arguments), values.tiles(arguments, (*SYMBOLS, *TILE))
    if leading:
        _check_symbols(algorithm, (), numbers)
        best = optimum(algorithm, typed_mask(arguments, algorithm), direction, **chosen)
        best = best.subs(numbers) if numbers else best
        emit(
            best.latex() if latex else best if json else stacked(str(best)) if aligned else str(best),
            json and not latex,
        )
        return
    formulas = expressions(algorithm, typed_mask(arguments, algorithm), direction, **chosen)
    _check_symbols(algorithm, formulas.tiles, numbers)
    formulas = formulas.subs(numbers) if numbers else formulas
    formulas = formulas.square() if square else formulas
    if json:
        emit(
            {**formulas.to_dict(), "latex": formulas.latex()} if latex else formulas,
            as_json=True,
            kind="expressions" if latex else None,
        )
    else:
        text = formulas.latex() if latex else readable(formulas)
        emit(stacked(text) if aligned else text)


def _check_symbols(algorithm: str, tiles: tuple[str, ...], numbers: Mapping[str, int]) -> None:
    """Raise InputError for a number of a symbol that no formula of the algorithm has."""
    known = (*(entry.name for entry in SHAPES[find_algorithm(algorithm).answers]), *tiles)
    for name in numbers:
        if name not in known:
            raise UnknownNameError(f"symbol of {algorithm}", name, known)


@with_options(WORKLOAD, [DEVICES, IMPLEMENTATION], LAUNCHED, TILE, LAUNCHES, ALGORITHM)
def estimate(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Estimate the time, the limiting resource and the traffic of a call, by default at the shipped tiles.

    Example:
      iomodel estimate flash2 --hardware a100-sxm4-80gb --q-len 8192 --head-dim 128 --heads 16 --mask causal
    """
    from iomodel.studies.comparison import Comparison
    from iomodel.studies.estimate import estimate as run
    from iomodel.timing.parameters import Parameters

    devices = devices_of(arguments)
    if not devices:
        require(arguments, ("hardware",))
    sizes, chosen = values.tiles(arguments), values.options(arguments)
    parameters = Parameters(**given(arguments, PARAMETERS))
    more = {"parameters": parameters, "implementation": arguments["implementation"], **chosen}
    call = values.workload(arguments, algorithm)
    if len(devices) > 1:
        emit(Comparison.over(call, devices, lambda name: run(algorithm, call, name, sizes or None, **more)), json)
        return
    emit(run(algorithm, call, devices[0], sizes or None, **more), json, explained=True)


@with_options(WORKLOAD, [DEVICE, IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM, [PATTERN])
def audit(report: Report, algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Compare the bytes of a report of Nsight Compute with those of an estimate, and name the reasons of a difference.

    Example:
      iomodel audit report.csv flash2 --pattern flash_fwd --hardware a100-sxm4-80gb --q-len 8192 --head-dim 128
    """
    from iomodel.integrations.nsight.audit import audit as held_against
    from iomodel.studies.estimate import estimate as run

    require(arguments, ("hardware", "pattern"))
    sizes, call = values.tiles(arguments), values.workload(arguments, algorithm)
    more = {"implementation": arguments["implementation"], **values.options(arguments)}
    predicted = run(algorithm, call, arguments["hardware"], sizes or None, **more)
    emit(held_against(report, {arguments["pattern"]: predicted}), json)


@with_options(
    [DEVICE],
    LAUNCHES,
    of(RUN, "Benchmark", "model replicas engine precision kv_dtype prompt output clients", replicas="Replicas (one)."),
    of(GROUPS["layout"].path, "Benchmark", "tensor_parallel pipeline_parallel expert_parallel"),
)
def judge(subject: Judged = "flash2", *, json: Json = False, **arguments: Any) -> None:
    """Evaluate the estimates against a calibration or a profile, or a plan against a benchmark or a start-up log.

    SUBJECT is an algorithm, whose calls a calibration has timed; or a file: of a benchmark of serving, of the start of
    an engine, or the trace of PyTorch's profiler, whose calls of attention are estimated.

    Example:
      iomodel judge flash2 --hardware my-gpu.yaml
    """
    if Path(subject).suffix in RESULTS or Path(subject).is_file():
        emit(_judged_file(subject, {**given(arguments, RUN), **_layout_of(arguments)}), json)
        return
    from iomodel.studies.judge import judge as run
    from iomodel.timing.parameters import Parameters

    if Path(subject).suffix:
        raise InputError(f"subject: {shown(subject)} cannot be read; allowed: an algorithm, or a file that is there")
    if arguments["hardware"] is None:
        raise InputError("hardware: none given; allowed: a file of 'iomodel calibrate', such as --hardware my-gpu.yaml")
    parameters = Parameters(**given(arguments, PARAMETERS))
    emit(run(subject, arguments["hardware"], parameters=parameters), json)


def _judged_file(path: str, arguments: Mapping[str, Any]) -> Any:
    """Judge the attention in a trace of a profiler, or another file by a plan."""
    from iomodel.torch.profile_trace import is_profile

    if not is_profile(path):
        return function(RUN)(path, **arguments)
    from iomodel.torch.judge_profile import judge_profile

    more = next((name for name in arguments if name != "hardware"), None)
    if more is not None:
        raise InputError(f"{more}: given with a trace of PyTorch's profiler; allowed: --hardware alone")
    return judge_profile(path, arguments.get("hardware"))


def _layout_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Build the layout of a benchmark, if the command line has one."""
    layout = GROUPS["layout"].path
    degrees = given(arguments, layout, "tensor_parallel pipeline_parallel expert_parallel")
    return {"layout": function(layout)(**degrees)} if degrees else {}


@with_options(WORKLOAD, of(TRACE, "Trace", "hardware most_events"), TILE, TRACED, ALGORITHM)
def trace(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Trace an algorithm tile by tile on a simulated memory: every load, product and store in order.

    Example:
      iomodel trace flash2 --hardware sim-a100 --q-len 256 --head-dim 64
    """
    sizes = values.tiles(arguments)
    chosen = {**values.options(arguments), **given(arguments, TRACE, "most_events")}
    if arguments["heads_traced"] is not None:
        traced = arguments["heads_traced"]
        chosen["traced_heads"] = traced if traced == "all" else integer("heads_traced", traced)
    most = SHOWN
    if arguments["events"] is not None:
        most = as_integer("events", integer("events", arguments["events"]), least=0)
    call = values.workload(arguments, algorithm)
    recorded = function(TRACE)(algorithm, call, arguments["hardware"], sizes or None, **chosen)
    for path in arguments["out"] or ():
        write = recorded.to_csv if path.lower().endswith(".csv") else recorded.plot
        write(path, overwrite=bool(arguments["force"]))
    emit(recorded.to_dict(most) if json else recorded.shown(most), json)


@with_options(MEASURED, WORKLOAD, [DEVICE, IMPLEMENTATION], LAUNCHED, TILE, ALGORITHM)
def diagnose(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Explain a measured time: the limiting resource, the wasted work, and the remedies.

    Example:
      iomodel diagnose tiled_query --time 0.183ms --hardware a100-sxm4-80gb --q-len 16 --head-dim 8192 --dtype fp32
      --block-q 1 --block-kv 16
    """
    require(arguments, ("time", "hardware"))
    sizes = values.tiles(arguments)
    chosen = values.options(arguments)
    chosen |= given(arguments, DIAGNOSE, "hardware seconds=time blocks against implementation")
    diagnosis = function(DIAGNOSE)(algorithm, values.workload(arguments, algorithm), tiles=sizes or None, **chosen)
    _check_unit(arguments["time"], diagnosis)
    emit(diagnosis, json)


def _check_unit(text: str, diagnosis: Diagnosis) -> None:
    """Raise InputError for a time without a unit, far above the predicted one, of which fewer seconds were meant."""
    slower = diagnosis.seconds / diagnosis.estimate.seconds
    if text.strip()[-1:].isalpha() or slower <= UNLIKELY:
        return
    unit = "ms" if slower <= UNLIKELY * 1e3 else "us"
    raise InputError(
        f"time: {text} given without a unit, {slower:,.0f} x the predicted time; allowed: with a unit, such as "
        f"'{text}{unit}', or '{text}s' for seconds"
    )


@with_options(*CROSSED)
def crossover(algorithms: Contenders, *, json: Json = False, **arguments: Any) -> None:
    """Find the length, width, batch or memory at which one algorithm overtakes another, exactly and as a formula.

    Example:
      iomodel crossover flash1 standard --head-dim 64 --block-q 64 --block-kv 64
    """
    emit(crossed(algorithms, arguments), json)


def crossed(algorithms: list[str], arguments: dict[str, Any]) -> Any:
    """Compute the crossovers for the given arguments."""
    from iomodel.studies.crossovers.contenders import AXES
    from iomodel.studies.crossovers.crossovers import crossovers

    over = arguments["over"] if arguments["over"] is not None else "length"
    replaced = LENGTHS.get(over, ()) if over in AXES else UNKNOWN
    typed = {**arguments, **{name: "1" for name in replaced if arguments[name] is None}}
    if arguments["q_lens"] is not None:
        raise InputError("q_lens: given; allowed: --q-len, for sequences of one length, or --over length")
    fields = given(arguments, CROSSOVERS)
    sizes = values.tiles(arguments) or None
    chosen = values.options(arguments)
    call = as_attention(values.workload(typed))
    return crossovers(algorithms, call, tiles=sizes, progress=True, **fields, **chosen)


@with_options(*STEPPED)
def staircase(algorithm: Tiled, *, json: Json = False, **arguments: Any) -> None:
    """List the least traffic at every size of the memory, with the tiles and a lower bound.

    Example:
      iomodel staircase flash2 --q-len 8192 --head-dim 64 --alignment 16
    """
    emit(stepped(algorithm, arguments), json)


def stepped(algorithm: str, arguments: dict[str, Any]) -> Any:
    """Compute the staircase for the given arguments."""
    chosen = {**given(arguments, STAIRCASE), **values.options(arguments)}
    return function(STAIRCASE)(algorithm, values.workload(arguments, algorithm), **chosen)
