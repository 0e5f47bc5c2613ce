"""The command that runs a schedule tile by tile."""

from __future__ import annotations

from typing import Any

from iomodel.algorithms import list_algorithms
from iomodel.commands import values
from iomodel.commands.numbers import integer
from iomodel.commands.options import ALGORITHM, TILE, WORKLOAD, Algorithm, Json
from iomodel.commands.output import emit
from iomodel.commands.signature import option, switch, with_options
from iomodel.hardware import list_hardware
from iomodel.validation import as_integer
from iomodel.workload import as_attention

SHOWN = 20
DEVICE = option(
    "hardware",
    "A device, or its YAML file; without tiles, its best are traced.",
    "Device",
    "NAME|FILE",
    tuple(list_hardware()),
)
TRACED = [
    option("events", f"How many events are printed ({SHOWN}).", "Trace"),
    option("heads_traced", "How many of the batch x heads query heads are traced, or all (1).", "Trace", "INTEGER|all"),
    option("most_events", "Longer traces are refused (1000000).", "Trace"),
    option("csv", "A file to which every event is written as a row.", "Trace", "FILE"),
    option("plot", "A .png or .svg of what is on chip over time, and of the tiles visited.", "Trace", "FILE"),
    switch("force", "Replace files that are there.", "Trace"),
]


@with_options(WORKLOAD, [DEVICE], TILE, TRACED, ALGORITHM)
def trace(algorithm: Algorithm, *, json: Json = False, **given: Any) -> None:
    """Run an algorithm tile by tile on a simulated memory: every load, product and store, one after the other.

    Example:
      iomodel trace flash2 --hardware sim-a100 --q-len 256 --head-dim 64
    """
    from iomodel.trace import trace as run

    sizes, chosen = values.tiles(given, [entry.name for entry in TILE]), values.options(given, list_algorithms())
    if given["heads_traced"] is not None:
        traced = given["heads_traced"]
        chosen["heads"] = traced if traced == "all" else integer("heads_traced", traced)
    if given["most_events"] is not None:
        chosen["most_events"] = integer("most_events", given["most_events"])
    most = SHOWN if given["events"] is None else as_integer("events", integer("events", given["events"]), least=0)
    found = run(algorithm, as_attention(values.workload(given)), given["hardware"], sizes or None, **chosen)
    for name, write in (("csv", found.to_csv), ("plot", found.plot)):
        if given[name] is not None:
            write(given[name], overwrite=bool(given["force"]))
    emit(found.to_dict(most) if json else found.shown(most), json)
