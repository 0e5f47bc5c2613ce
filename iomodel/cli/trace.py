"""Command that traces a schedule tile by tile."""

from __future__ import annotations

from typing import Any

from iomodel.cli import values
from iomodel.cli.algorithm_names import list_algorithms
from iomodel.cli.numbers import integer
from iomodel.cli.options import ALGORITHM, TILE, WORKLOAD, Algorithm, Json
from iomodel.cli.output import emit
from iomodel.cli.signature import option, switch, with_options
from iomodel.common.validation import as_integer
from iomodel.devices.device import list_hardware

SHOWN = 20
DEVICE = option(
    "hardware",
    "A device, or its YAML file; by default its best tiles are traced.",
    "Device",
    "NAME|FILE",
    list_hardware,
)
TRACED = [
    option("events", f"Number of printed events ({SHOWN}).", "Trace"),
    option("heads_traced", "Number of traced heads out of batch x heads, or all (1).", "Trace", "INTEGER|all"),
    option("most_events", "Limit on the number of events (1000000).", "Trace"),
    option("csv", "Output file with one row per event.", "Trace", "FILE"),
    option("plot", "A .png or .svg of on-chip memory over time and of the visited tiles.", "Trace", "FILE"),
    switch("force", "Replace existing files.", "Trace"),
]


@with_options(WORKLOAD, [DEVICE], TILE, TRACED, ALGORITHM)
def trace(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Trace an algorithm tile by tile on a simulated memory: every load, product and store in order.

    Example:
      iomodel trace flash2 --hardware sim-a100 --q-len 256 --head-dim 64
    """
    from iomodel.studies.trace.trace import trace as run

    sizes, chosen = (
        values.tiles(arguments, [entry.name for entry in TILE]),
        values.options(arguments, list_algorithms()),
    )
    if arguments["heads_traced"] is not None:
        traced = arguments["heads_traced"]
        chosen["heads"] = traced if traced == "all" else integer("heads_traced", traced)
    if arguments["most_events"] is not None:
        chosen["most_events"] = integer("most_events", arguments["most_events"])
    most = (
        SHOWN if arguments["events"] is None else as_integer("events", integer("events", arguments["events"]), least=0)
    )
    recorded = run(algorithm, values.workload(arguments, algorithm), arguments["hardware"], sizes or None, **chosen)
    for name, write in (("csv", recorded.to_csv), ("plot", recorded.plot)):
        if arguments[name] is not None:
            write(arguments[name], overwrite=bool(arguments["force"]))
    emit(recorded.to_dict(most) if json else recorded.shown(most), json)
