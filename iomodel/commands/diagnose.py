"""The command that explains a measured time."""

from __future__ import annotations

from typing import Any

from iomodel.algorithms import list_algorithms
from iomodel.commands import values
from iomodel.commands.numbers import duration, integer
from iomodel.commands.options import ALGORITHM, DEVICE, LAUNCHED, TILE, WORKLOAD, Algorithm, Json
from iomodel.commands.output import emit
from iomodel.commands.signature import option, with_options
from iomodel.errors import InputError
from iomodel.workload import as_attention

MEASURED = [
    option("time", "The time measured, such as 0.183ms or 44us; seconds without a unit (needed).", "Measured", "TIME"),
    option("blocks", "Thread blocks as launched, where they are not those of the algorithm's grid.", "Measured"),
]


@with_options(MEASURED, WORKLOAD, [DEVICE], LAUNCHED, TILE, ALGORITHM)
def diagnose(algorithm: Algorithm, *, json: Json = False, **given: Any) -> None:
    """Say what binds a kernel that was timed, what it asks for in vain, and what would help.

    Example:
      iomodel diagnose tiled_query --time 0.183ms --hardware a100-sxm4-80gb --q-len 16 --head-dim 8192 --dtype fp32
      --block-q 1 --block-kv 16
    """
    from iomodel.diagnose import diagnose as explain

    if given["time"] is None:
        raise InputError("time: none given; allowed: the time measured, such as --time 0.183ms")
    if given["hardware"] is None:
        raise InputError("hardware: none given; allowed: a device, such as --hardware h100-sxm5")
    sizes = values.tiles(given, [entry.name for entry in (*LAUNCHED, *TILE)])
    chosen = values.options(given, list_algorithms())
    call, seconds = as_attention(values.workload(given)), duration("time", given["time"])
    blocks = None if given["blocks"] is None else integer("blocks", given["blocks"])
    emit(explain(algorithm, call, given["hardware"], seconds, sizes or None, blocks=blocks, **chosen), json)
