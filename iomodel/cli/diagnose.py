"""Command that explains a measured time."""

from __future__ import annotations

from typing import Any

from iomodel.cli import values
from iomodel.cli.algorithm_names import list_algorithms
from iomodel.cli.numbers import duration, integer
from iomodel.cli.options import ALGORITHM, DEVICE, LAUNCHED, TILE, WORKLOAD, Algorithm, Json
from iomodel.cli.output import emit
from iomodel.cli.required import require
from iomodel.cli.signature import option, with_options

MEASURED = [
    option("time", "Measured time, such as 0.183ms or 44us; in seconds without a unit (required).", "Measured", "TIME"),
    option("blocks", "Launched thread blocks (those of the algorithm's grid).", "Measured"),
]


@with_options(MEASURED, WORKLOAD, [DEVICE], LAUNCHED, TILE, ALGORITHM)
def diagnose(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Explain a measured time: the limiting resource, the wasted work, and the remedies.

    Example:
      iomodel diagnose tiled_query --time 0.183ms --hardware a100-sxm4-80gb --q-len 16 --head-dim 8192 --dtype fp32
      --block-q 1 --block-kv 16
    """
    from iomodel.studies.diagnosis.diagnose import diagnose as explain

    require(arguments, ("time", "hardware"))
    sizes = values.tiles(arguments, [entry.name for entry in (*LAUNCHED, *TILE)])
    chosen = values.options(arguments, list_algorithms())
    call, seconds = values.workload(arguments, algorithm), duration("time", arguments["time"])
    blocks = None if arguments["blocks"] is None else integer("blocks", arguments["blocks"])
    emit(explain(algorithm, call, arguments["hardware"], seconds, sizes or None, blocks=blocks, **chosen), json)
