"""The commands about programs of others: `bound` of a recorded PyTorch program, `triton` of a compiled kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from iomodel.cli.common_options import Json
from iomodel.cli.numbers import duration, integer
from iomodel.cli.output import emit
from iomodel.errors import InputError, shown

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
    from iomodel.torch.traffic_mode import bound_or_gap

    measured = None if seconds is None else float(duration("seconds", seconds))
    emit(bound_or_gap(stream, hardware, measured, warm), json)


Ttir = Annotated[Path, typer.Argument(help="TTIR of a compiled kernel: compiled.asm['ttir'], or a .ttir of the cache.")]
OfText = Annotated[str, typer.Option("--config", help="Tiles of the text: BLOCK_M=128,BLOCK_N=64.", show_default=False)]
Checked = Annotated[
    list[str] | None, typer.Option("--check", help="A config to check: BLOCK_M=64,num_warps=8.", show_default=False)
]
Architecture = Annotated[str, typer.Option("--arch", help="The architecture, such as sm_90.")]
Version = Annotated[str | None, typer.Option("--version", help="The version of Triton.", show_default=False)]


def triton(
    text: Ttir,
    *,
    config: OfText,
    check: Checked = None,
    arch: Architecture = "sm_90",
    version: Version = None,
    json: Json = False,
) -> None:
    """Describe a Triton kernel by the TTIR of one config, and check others: shared memory, and whether they fit.

    Nothing of the file is run.

    Example:
      iomodel triton kernel.ttir --config BLOCK_M=128,BLOCK_N=64 --check BLOCK_M=256,num_stages=5 --arch sm_80
    """
    from iomodel.placement.triton_check import check_triton
    from iomodel.placement.triton_description import describe

    kernel = describe(_text(text), _config("config", config))
    checks = []
    for written in check or [config]:
        values = _config("check", written)
        checks.append((written, check_triton(values, kernel=kernel, arch=arch, version=version)))
    if json:
        listed = [{"config": written, **checked.to_dict()} for written, checked in checks]
        emit({"description": kernel.to_dict(), "checks": listed}, json)
        return
    emit(_checks(kernel, checks))


def _text(path: Path) -> str:
    """Read the text of a kernel."""
    from iomodel.common.input_files import readable
    from iomodel.placement.ttir import MOST_CHARACTERS

    try:
        with readable(path).open(encoding="utf-8", errors="replace") as file:
            return file.read(MOST_CHARACTERS + 1)
    except OSError as error:
        raise InputError(f"text: {shown(str(path))} cannot be read: {error.strerror}") from None


def _config(name: str, written: str) -> dict[str, int]:
    """Read a config: names and integers."""
    values = {}
    for part in filter(None, written.split(",")):
        argument, _, number = part.partition("=")
        if not argument.strip().isidentifier() or not number.strip().isdecimal():
            raise InputError(f"{name}: {shown(part)} given; allowed: names and integers, BLOCK_M=64,num_warps=8")
        values[argument.strip()] = integer(name, number.strip())
    return values


def _checks(kernel: Any, checks: list[tuple[str, Any]]) -> Any:
    """Make the table of checks."""
    from iomodel.common.display import Table

    fixed = f"; the same in every config: {', '.join(map(str, kernel.fixed))}" if kernel.fixed else ""
    columns = ("config", "instruction", ">shared memory [B]", ">limit [B]", ">TMEM [columns]", "fits")
    rows = [
        (
            written.replace(",", " "), checked.instruction, f"{checked.shared:,}", f"{checked.shared_limit:,}",
            str(checked.tmem), "yes" if checked.fits else "no",
        )
        for written, checked in checks
    ]  # fmt: skip
    return Table(f"tiles: {', '.join(kernel.names)}{fixed}", columns, rows)
