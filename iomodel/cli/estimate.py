"""Commands that estimate times, and evaluate the estimates against timed calls."""

from __future__ import annotations

from typing import Any

from iomodel.cli import values
from iomodel.cli.algorithm_names import list_algorithms
from iomodel.cli.options import ALGORITHM, DEVICE, IMPLEMENTATION, LAUNCHED, TILE, WORKLOAD, Algorithm, Json
from iomodel.cli.output import emit
from iomodel.cli.required import require
from iomodel.cli.signature import option, with_options
from iomodel.errors import InputError

PARAMETERS = [
    option("host_launch", "Host time per launch, such as 55us for an eager framework (0).", "Time", "TIME"),
    option("kernel_launch", "Time between kernel starts, if the device's file has none (2.6us).", "Time", "TIME"),
]


@with_options(WORKLOAD, [DEVICE, IMPLEMENTATION], LAUNCHED, TILE, PARAMETERS, ALGORITHM)
def estimate(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Estimate the time, the limiting resource and the traffic of a call, by default at the shipped tiles.

    Example:
      iomodel estimate flash2 --hardware a100-sxm4-80gb --q-len 8192 --head-dim 128 --heads 16 --mask causal
    """
    from iomodel.studies.estimate import estimate as run
    from iomodel.timing.parameters import Parameters

    require(arguments, ("hardware",))
    names = [entry.name for entry in (*LAUNCHED, *TILE)]
    sizes, chosen = values.tiles(arguments, names), values.options(arguments, list_algorithms())
    parameters = Parameters(**values.durations(arguments, [entry.name for entry in PARAMETERS]))
    more = {"parameters": parameters, "implementation": arguments["implementation"], **chosen}
    emit(run(algorithm, values.workload(arguments, algorithm), arguments["hardware"], sizes or None, **more), json)


@with_options([DEVICE], PARAMETERS)
def judge(algorithm: Algorithm = "flash2", *, json: Json = False, **arguments: Any) -> None:
    """Evaluate the estimates against the attention calls timed by a calibration.

    Example:
      iomodel judge flash2 --hardware my-gpu.yaml
    """
    from iomodel.studies.judge import judge as run
    from iomodel.timing.parameters import Parameters

    if arguments["hardware"] is None:
        raise InputError("hardware: none given; allowed: a file of 'iomodel calibrate', such as --hardware my-gpu.yaml")
    parameters = Parameters(**values.durations(arguments, [entry.name for entry in PARAMETERS]))
    emit(run(arguments["hardware"], algorithm, parameters), json)
