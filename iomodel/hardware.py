"""A device's figures, each with its source: shipped in specs/hardware, or read from the user's own file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field

from iomodel.errors import InputError, SpecError, UnknownNameError, shown
from iomodel.hardware_fields import Board, Compute, Interconnect, Limits, Measured, Memory
from iomodel.hardware_table import html_table, plain_table, rich_table
from iomodel.quantity import PRINTABLE, Group, Quantity, Steps, Text
from iomodel.specfile import dump, read_shipped, read_user, spec_names
from iomodel.validation import Count

SCHEMA = 1
"""The version of the layout of hardware files that this package reads."""

SIMULATED = "simulated"
"""The architecture of devices that are made up."""

Line = Annotated[str, Field(max_length=200, pattern=PRINTABLE)]


class Hardware(Group):
    """One device.

    Parameters
    ----------
    schema : version of the layout, 1.
    id, name, vendor, architecture, compute_capability : what the device is called.
    memory, limits, compute, interconnect, power, measured : groups of figures; one that nobody gave is None.
    tile_alignment : tile sizes are multiples of this [elements].
    notes : what to beware of.

    >>> gpu = hardware("h100-sxm5")
    >>> gpu.sram_per_block, str(gpu.memory.hbm.bandwidth)
    (232448, '3.352 TB/s')
    """

    schema_version: Literal[1] = Field(alias="schema")
    id: Line | None = None
    name: Line
    vendor: Line | None = None
    architecture: Line | None = None
    compute_capability: Line | None = None
    tile_alignment: Count = 16
    memory: Memory = Memory()
    limits: Limits = Limits()
    compute: Compute = Compute()
    interconnect: Interconnect = Interconnect()
    power: Board = Board()
    measured: Measured = Measured()
    notes: tuple[Text, ...] = ()

    @property
    def quantities(self) -> dict[str, Quantity | Steps]:
        """Every figure the device has, by the path of its field."""
        return dict(_walk(self, ""))

    @property
    def unverified(self) -> list[str]:
        """Paths of the figures that were only remembered, not read in any source."""
        return [path for path, quantity in self.quantities.items() if not quantity.verified]

    @property
    def simulated(self) -> bool:
        """Whether the device is made up, for teaching."""
        return self.architecture == SIMULATED

    @property
    def sram_per_block(self) -> int:
        """On-chip memory that one thread block may use, the budget of the tiles [B]."""
        if self.memory.sram.per_block is None:
            raise SpecError(f"memory.sram.per_block: {self.id or self.name} lacks it; write it as '228 KiB'")
        return int(self.memory.sram.per_block.value)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data in base units, without the fields nobody gave; it reads back the same."""
        return _pruned(self.model_dump(mode="json", by_alias=True))

    def to_yaml(self) -> str:
        """The same as text of a hardware file."""
        return dump(self.to_dict())

    @classmethod
    def file_schema(cls) -> dict[str, Any]:
        """The JSON Schema of a hardware file, for editors: specs/hardware.schema.json."""
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **cls.model_json_schema()}

    def __repr__(self) -> str:
        doubt = f", {len(self.unverified)} unverified" if self.unverified else ""
        return f"Hardware({self.id or self.name!r}, {len(self.quantities)} figures{doubt})"

    def __str__(self) -> str:
        return plain_table(self)

    def __rich__(self) -> object:
        return rich_table(self)

    def _repr_html_(self) -> str:
        return html_table(self)


def _walk(group: Group, path: str) -> Iterator[tuple[str, Quantity | Steps]]:
    for name in type(group).model_fields:
        value = getattr(group, name)
        if isinstance(value, Quantity | Steps):
            yield path + name, value
        elif isinstance(value, Group):
            yield from _walk(value, f"{path}{name}.")
        elif isinstance(value, tuple):
            for place, item in enumerate(value):
                if isinstance(item, Group):
                    yield from _walk(item, f"{path}{name}.{place}.")


def _pruned(data: dict[str, Any]) -> dict[str, Any]:
    pairs = ((key, _pruned_value(value)) for key, value in data.items())
    return {key: value for key, value in pairs if value is not None and value not in ({}, [], "")}


def _pruned_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_pruned_value(item) for item in value]
    return _pruned(value) if isinstance(value, dict) else value


def list_hardware() -> list[str]:
    """The names of the devices shipped, sorted.

    >>> "h100-sxm5" in list_hardware()
    True
    """
    return spec_names("hardware")


def hardware(name_or_path: str | os.PathLike[str]) -> Hardware:
    """A shipped device by name, or the one described by a YAML file.

    Parameters
    ----------
    name_or_path : a name of `list_hardware()`, or the path of a file: an os.PathLike, or a text that holds a
        path separator or ends in .yaml or .yml.

    Raises
    ------
    UnknownNameError, SpecError : no such device; the file is refused, with its path and the field at fault.

    >>> hardware("a100-sxm4-40gb").compute.peak.bf16.value
    312000000000000
    """
    if isinstance(name_or_path, os.PathLike):
        return _from_file(name_or_path)
    if not isinstance(name_or_path, str):
        raise InputError(f"hardware: a name or the path of a file is needed, given {shown(name_or_path)}")
    separators = {"/", os.sep, os.altsep} - {None}
    if name_or_path.lower().endswith((".yaml", ".yml")) or any(str(c) in name_or_path for c in separators):
        return _from_file(name_or_path)
    if name_or_path not in _names():
        named = "sim" in name_or_path  # whoever asks for no simulated device is not told of one
        likely = [name for name in list_hardware() if named or not name.startswith("sim-")]
        raise UnknownNameError("hardware", name_or_path, list_hardware(), likely)
    return _shipped(name_or_path)


@cache
def _names() -> frozenset[str]:
    return frozenset(list_hardware())


@cache
def _shipped(name: str) -> Hardware:
    return _build(read_shipped(f"hardware/{name}"), name, f"specs/hardware/{name}.yaml")


def _from_file(path: str | os.PathLike[str]) -> Hardware:
    data, where = read_user(path)
    return _build(data, None, where)


def from_data(data: Mapping[str, Any], where: str) -> Hardware:
    """The device that a hardware file with these data describes; `where` stands for its path in errors."""
    return _build(dict(data), None, where)


def _build(data: dict[str, Any], name: str | None, where: str) -> Hardware:
    version = data.get("schema")
    if isinstance(version, bool) or version != SCHEMA:
        given = "missing" if "schema" not in data else f"{shown(version)} is not supported"
        raise SpecError(f"{where}: schema: {given}; this iomodel reads schema {SCHEMA}, write 'schema: {SCHEMA}'")
    try:
        device = Hardware(**_with_architecture({**({"id": name} if name else {}), **data}))
        device.sram_per_block  # noqa: B018 - a device without a budget is of no use to the solver
    except (InputError, SpecError, UnknownNameError) as error:
        raise SpecError(f"{where}: {error}") from None
    return device


def _with_architecture(data: dict[str, Any]) -> dict[str, Any]:
    """The limits that all devices of an architecture share, under what the device's own file says."""
    name = data.get("architecture")
    if name is None:
        return data
    known = spec_names("architectures")
    if name not in known:
        raise UnknownNameError("architecture", name, known)
    shared = read_shipped(f"architectures/{name}")
    return _merged({key: value for key, value in shared.items() if key not in ("schema", "name")}, data)


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = {**under, **over}
    for key in under.keys() & over.keys():
        below, above = under[key], over[key]
        if isinstance(below, dict) and isinstance(above, dict) and not {"value", "values"} & below.keys():
            result[key] = _merged(below, above)
    return result
