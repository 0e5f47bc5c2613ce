"""The commands that turn counts into seconds, and hold these against a device's own timed calls."""

from __future__ import annotations

from typing import Any

from iomodel.algorithms import list_algorithms
from iomodel.commands import values
from iomodel.commands.options import ALGORITHM, DEVICE, LAUNCHED, TILE, WORKLOAD, Algorithm, Json
from iomodel.commands.output import emit
from iomodel.commands.signature import option, with_options
from iomodel.errors import InputError

PARAMETERS = [
    option("host_launch", "What the host needs for a launch, such as 55us for an eager framework (0).", "Time", "TIME"),
    option("kernel_launch", "From a kernel to the next, where the device's file does not say (2.6us).", "Time", "TIME"),
]


@with_options(WORKLOAD, [DEVICE], LAUNCHED, TILE, PARAMETERS, ALGORITHM)
def estimate(algorithm: Algorithm, *, json: Json = False, **given: Any) -> None:
    """Estimate the time of a call, what binds it, and what crosses the bus; without tiles, at the fastest.

    Example:
      iomodel estimate flash2 --hardware a100-sxm4-80gb --q-len 8192 --head-dim 128 --heads 16 --mask causal
    """
    from iomodel.estimate import estimate as run
    from iomodel.parameters import Parameters

    if given["hardware"] is None:
        raise InputError("hardware: none given; allowed: a device, such as --hardware h100-sxm5")
    names = [entry.name for entry in (*LAUNCHED, *TILE)]
    sizes, chosen = values.tiles(given, names), values.options(given, list_algorithms())
    parameters = Parameters(**values.durations(given, [entry.name for entry in PARAMETERS]))
    emit(
        run(algorithm, values.workload(given), given["hardware"], sizes or None, parameters=parameters, **chosen), json
    )


@with_options([DEVICE], PARAMETERS)
def judge(algorithm: Algorithm = "flash2", *, json: Json = False, **given: Any) -> None:
    """Hold the estimates against the attention calls that a calibration has timed.

    Example:
      iomodel judge flash2 --hardware my-gpu.yaml
    """
    from iomodel.judge import judge as run
    from iomodel.parameters import Parameters

    if given["hardware"] is None:
        raise InputError("hardware: none given; allowed: a file of 'iomodel calibrate', such as --hardware my-gpu.yaml")
    parameters = Parameters(**values.durations(given, [entry.name for entry in PARAMETERS]))
    emit(run(given["hardware"], algorithm, parameters), json)
