"""Commands about algorithms, devices and models, and the server of tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from iomodel.cli.common_options import Json
from iomodel.cli.numbers import integer
from iomodel.cli.output import emit
from iomodel.common.display import Mark, assumed
from iomodel.common.validation import as_integer
from iomodel.common.yaml_files import spec_names
from iomodel.devices.calibration.experiments import GROUPS
from iomodel.devices.device import hardware as find_hardware
from iomodel.devices.device import list_hardware
from iomodel.errors import InputError, UnknownNameError, family, shown
from iomodel.models.model_tables import CONTEXT

if TYPE_CHECKING:
    from iomodel.devices.device import Hardware


def cache_types() -> list[str]:
    """List the types of a cache that a shell completes."""
    from iomodel.workloads.call import KVType

    return list(get_args(KVType))


Name = Annotated[
    str | None,
    typer.Argument(
        help="A model, its YAML file, a Hugging Face config.json, or the first word of a name; all models by default.",
        autocompletion=lambda: spec_names("models"),
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        help=f"Context of the displayed KV cache in tokens ({CONTEXT}).",
        metavar="INTEGER",
        show_default=False,
    ),
]
KvDtype = Annotated[
    str | None,
    typer.Option(
        "--kv-dtype",
        help="Type of the cache (bf16), such as fp8.",
        metavar="NAME",
        autocompletion=cache_types,
        show_default=False,
    ),
]
_SECONDS = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(s|min)?\s*", re.ASCII)


def algorithms(*, json: Json = False) -> None:
    """List the algorithms with their directions, options and sources.

    Example:
      iomodel algorithms --json
    """
    from iomodel.cli.algorithm_table import every_algorithm, overview

    emit(every_algorithm() if json else overview(), json)


def hardware(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="A device, its YAML file, or the first word of its name; several are listed, by default all.",
            autocompletion=list_hardware,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show the figures of a device with their sources, or list devices: all, several, or a family, such as h100.

    Example:
      iomodel hardware h100-sxm5
    """
    from iomodel.devices.overview import every_device, overview

    name = names[0] if names and len(names) == 1 else None
    listed = [find_hardware(each).id or each for each in names] if names and name is None else None
    listed = listed if name is None else family_of(name, _real(name))
    if name is not None and not listed:
        device = find_hardware(name)
        emit(_figures(device) if json else device, json)
    elif json:
        emit({device: _figures(entry) for device, entry in every_device(listed).items()}, json)
    else:
        emit(overview(listed, () if name is None else _taken(name)))


def _figures(device: Hardware) -> dict[str, Any]:
    """Return the figures of a device, and the ridge point of each type [FLOP/B]."""
    return {**device.to_dict(), "ridge": device.ridge}


def _taken(name: str) -> list[Mark]:
    """Say which device of a family its name means, if one takes precedence."""
    try:
        return assumed(find_hardware(name).assumed)
    except UnknownNameError:
        return []


def _real(name: str) -> list[str]:
    """List the devices that a name may mean: the simulated ones only where the name says so."""
    return [device for device in list_hardware() if "sim" in name.lower() or not device.startswith("sim-")]


def family_of(name: str, names: list[str]) -> list[str]:
    """Select the names of the family that a word of a command line names; none for a full name or a file."""
    exact = name.lower() in names or not name.replace("-", "").replace(".", "").isalnum()
    return [] if exact else family(name, names)


def model(name: Name = None, context: Context = None, kv_dtype: KvDtype = None, json: Json = False) -> None:
    """Show the layers, parameters and KV cache of a language model, or list models: all, or those of a family.

    Example:
      iomodel model llama-3-8b --context 131072 --kv-dtype fp8
    """
    from iomodel.models.model_tables import every_model, model_table, overview, summary
    from iomodel.models.registry import model as find

    tokens = CONTEXT if context is None else as_integer("context", integer("context", context), least=0)
    names = None if name is None else family_of(name, spec_names("models"))
    if name is not None and not names:
        spec = find(name)
        shown = model_table(spec, tokens, kv_dtype)
        emit({**spec.to_dict(), "figures": summary(spec, tokens, kv_dtype)} if json else shown, json)
    elif json:
        emit(
            {key: {"title": spec.title, **summary(spec, tokens, kv_dtype)} for key, spec in every_model(names).items()},
            True,
        )
    else:
        emit(overview(tokens, kv_dtype, names))


def _names() -> list[str]:
    return [*GROUPS, *(name for fields in GROUPS.values() for name in fields)]


Output = Annotated[str | None, typer.Option("--out", help="The YAML file to write.", metavar="FILE")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        help="A device, or its YAML file, for the unmeasured figures (recognised by the driver's name).",
        metavar="NAME|FILE",
        autocompletion=list_hardware,
        show_default=False,
    ),
]
Budget = Annotated[
    str, typer.Option("--budget", "--time-budget", help="Total time, such as 60s or 2min.", metavar="TIME")
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        help=f"Measure only one of {', '.join(GROUPS)}, or one figure; may be repeated.",
        metavar="NAME",
        autocompletion=_names,
        show_default=False,
    ),
]
Number = Annotated[str, typer.Option("--device", help="Index of the GPU.", metavar="INTEGER")]


def calibrate(
    *,
    out: Output = None,
    force: Force = False,
    base: Base = None,
    budget: Budget = "60s",
    only: Only = None,
    device: Number = "0",
    json: Json = False,
) -> None:
    """Measure the GPU of this machine with PyTorch, and write its hardware file.

    Example:
      iomodel calibrate --out my-gpu.yaml
    """
    from iomodel.devices.calibration.calibrate import calibrate as measure
    from iomodel.devices.calibration.result import writable_file

    number, time = integer("device", device), seconds(budget)
    if out is not None:
        writable_file(out, force=force)
    calibration = measure(number, base=base, time_budget=time, only=only or (), progress=True)
    if out is not None:
        calibration.write(out, force=force)
    emit(calibration, json)


def seconds(text: str) -> float:
    """Parse a time given in seconds or minutes.

    >>> seconds("2min"), seconds("90")
    (120.0, 90.0)
    """
    match = _SECONDS.fullmatch(text)
    if not match:
        raise InputError(f"budget: {shown(text)} given; allowed: seconds or minutes, such as 60s or 2min")
    return float(match[1]) * (60 if match[2] == "min" else 1)


def mcp() -> None:
    """Serve bounds, tiles, limits and gaps to an agent, by the Model Context Protocol on the standard streams.

    Example:
      iomodel mcp --help
    """
    from iomodel.integrations.mcp.server import server

    server().run("stdio")
