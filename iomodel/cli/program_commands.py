"""The command about recorded PyTorch programs: `bound`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iomodel.cli.numbers import duration
from iomodel.cli.output import emit
from iomodel.cli.shared_options import Json

Stream = Annotated[Path, typer.Argument(help="Calls of a program that TrafficMode recorded and saved.")]
Device = Annotated[str, typer.Option("--hardware", help="The device, such as h100-sxm5.", show_default=False)]
Measured = Annotated[
    str | None,
    typer.Option("--seconds", help="A measured time of the program, such as 2.1ms, for its gap.", show_default=False),
]
Warm = Annotated[bool, typer.Option("--warm", help="The last cache may hold bytes of the program, as in a benchmark.")]


def bound(
    stream: Stream, *, hardware: Device, seconds: Measured = None, warm: Warm = False, json: Json = False
) -> None:
    """Bound the time of a recorded PyTorch program from below, or hold a measured time against the bound.

    Nothing of the program is run or imported.

    Example:
      iomodel bound llama.jsonl --hardware h100-sxm5
    """
    from iomodel.torch.operator_call import read_calls
    from iomodel.torch.traffic_mode import traffic

    report = traffic(read_calls(stream), hardware, warm=warm)
    emit(report.bound(warm) if seconds is None else report.gap(float(duration("seconds", seconds)), warm), json)
