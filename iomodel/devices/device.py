"""Devices: their figures with sources, shipped in specs/hardware or read from a user's hardware file."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from typing import Annotated, Any, Literal

from pydantic import Field

from iomodel.common.display import WARNING, Mark, Table, as_text, assumed
from iomodel.common.keywords import note_assumed, strict
from iomodel.common.results import NamedData
from iomodel.common.units import BINARY, UnitKind
from iomodel.common.validation import Count
from iomodel.common.yaml_files import (
    check_schema,
    names_file,
    place_of,
    read_shipped,
    read_user,
    spec_names,
    spelled_alike,
)
from iomodel.devices.device_fields import Board, Compute, Interconnect, Limits, Measured, Memory
from iomodel.devices.quantity import PRINTABLE, Group, Quantity, SizeList, Text
from iomodel.errors import AmbiguousNameError, InputError, SpecError, UnknownNameError, shown, shown_name

LISTING = (
    "iomodel.list_hardware() or 'iomodel hardware', or the path of a YAML file: name, memory and peak of another "
    "device, as docs/hardware.md describes"
)
"""Listings of the names of devices, for messages."""
SCHEMA = 1
"""Schema version of the hardware files that this package reads."""

SIMULATED = "simulated"
"""The architecture of simulated devices."""

HEADER = ("field", ">value", "source")
Line = Annotated[str, Field(max_length=200, pattern=PRINTABLE)]


class Hardware(Group, NamedData):
    """One device and its figures.

    Parameters
    ----------
    schema : version of the layout, 1.
    id, name, vendor, architecture, compute_capability : identification of the device.
    memory, limits, compute, interconnect, power, measured : groups of figures; an unknown figure is None.
    tile_alignment : tile sizes are multiples of this [elements].
    precedence : rank among devices that a name means, such as h100; the least is taken, none where two have none.
    notes : caveats.

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
    precedence: Count | None = None
    memory: Memory = Memory.model_construct()
    limits: Limits = Limits.model_construct()
    compute: Compute = Compute.model_construct()
    interconnect: Interconnect = Interconnect.model_construct()
    power: Board = Board.model_construct()
    measured: Measured = Measured.model_construct()
    notes: tuple[Text, ...] = ()

    @property
    def label(self) -> str:
        """The id of the device, or its name."""
        return self.id or self.name

    @cached_property
    def assumed(self) -> tuple[str, ...]:
        """The name of a family that the device was asked by, with the other devices of it; empty for its own name."""
        return ()

    @classmethod
    def shipped(cls, name: str) -> Hardware | None:
        """Find the shipped device of a name, if there is one."""
        return _shipped(name) if name in _names() else None

    @property
    def quantities(self) -> dict[str, Quantity | SizeList]:
        """Every figure of the device, keyed by the path of its field."""
        return dict(_walk(self, ""))

    @property
    def unverified(self) -> list[str]:
        """Paths of the figures quoted from memory, without a source."""
        return [path for path, quantity in self.quantities.items() if not quantity.verified]

    @property
    def ridge(self) -> dict[str, float]:
        """Ridge point of each type: its peak over the bandwidth of HBM, where both are known [FLOP/B].

        >>> round(hardware("h100-sxm5").ridge["bf16"], 1)
        295.2
        """
        bandwidth, prefix = self.memory.hbm.bandwidth, "compute.peak."
        if bandwidth is None:
            return {}
        peaks = {path.removeprefix(prefix): each for path, each in self.quantities.items() if path.startswith(prefix)}
        return {name: peak.value / bandwidth.value for name, peak in peaks.items() if isinstance(peak, Quantity)}

    @property
    def simulated(self) -> bool:
        """True for an invented device, used for teaching."""
        return self.architecture == SIMULATED

    @property
    def on_chip_per_block(self) -> int:
        """Most bytes that one block holds in shared memory, registers and accumulators [B]."""
        registers, accumulator = self.limits.registers_per_sm, self.memory.accumulator.per_sm
        file = 0 if registers is None else 4 * int(registers.value)
        return self.sram_per_block + file + (0 if accumulator is None else int(accumulator.value))

    @property
    def sram_per_block(self) -> int:
        """On-chip memory available to one thread block, the budget of the tiles: no more than an SM has [B]."""
        if self.memory.sram.per_block is None:
            raise SpecError(f"memory.sram.per_block: {self.id or self.name} lacks it; write it as '228 KiB'")
        least = int(self.memory.sram.per_block.value)
        return least if self.memory.sram.per_sm is None else min(least, int(self.memory.sram.per_sm.value))

    def to_dict(self) -> dict[str, Any]:
        """Convert the figures to plain data in base units, omitting unset fields; `from_data` restores them."""
        return pruned(self.model_dump(mode="json", by_alias=True))

    def to_yaml(self) -> str:
        """Format the figures as a hardware file."""
        from iomodel.common.yaml_text import dump

        return dump(self.to_dict())

    @classmethod
    def file_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of a hardware file, for editors: specs/hardware.schema.json."""
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **cls.model_json_schema()}

    def __repr__(self) -> str:
        doubt = f", {len(self.unverified)} unverified" if self.unverified else ""
        return f"Hardware({self.id or self.name!r}, {len(self.quantities)} figures{doubt})"

    @property
    def _title(self) -> str:
        kind = ", ".join(filter(None, (self.vendor, self.architecture)))
        return self.name + f" ({kind})" * bool(kind)

    def _rows(self) -> list[tuple[str, str, str]]:
        """List one row per figure: path, value in human units, sources and disagreeing figures; then the ridges."""
        figures = [(path, str(quantity), _origin(quantity)) for path, quantity in self.quantities.items()]
        units = {name: "OP/B" if name.startswith("int") else "FLOP/B" for name in self.ridge}
        source = "derived, peak over HBM bandwidth"
        return [*figures, *((f"ridge.{name}", f"{at:,.1f} {units[name]}", source) for name, at in self.ridge.items())]

    def __str__(self) -> str:
        return as_text(self.__rich__())

    def __rich__(self) -> Table:
        marked = [[Mark(cell, WARNING) for cell in row] if "(unverified)" in row[1] else row for row in self._rows()]
        return Table(self._title, HEADER, marked, (*assumed(self.assumed), *self.notes))

    def _repr_html_(self) -> str:
        from html import escape

        lines = [f"<table><caption>{escape(self._title)}</caption>"]
        lines.append("<tr>" + "".join(f"<th>{name.removeprefix('>')}</th>" for name in HEADER) + "</tr>")
        for row in self._rows():
            lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
        lines.append("</table>" + "".join(f"<p>{escape(note)}</p>" for note in self.notes))
        return "\n".join(lines)


def _origin(quantity: Quantity | SizeList) -> str:
    text = ", ".join(quantity.source)
    if not isinstance(quantity, Quantity):
        return text
    show = UnitKind(quantity.unit, 0, 0).show
    if quantity.spread:
        text += "; {} to {}".format(*map(show, quantity.spread))
    return text + "".join(f"; {show(other.value)} in {', '.join(other.source)}" for other in quantity.alternatives)


def _walk(group: Group, path: str) -> Iterator[tuple[str, Quantity | SizeList]]:
    for name in type(group).model_fields:
        value = getattr(group, name)
        if isinstance(value, Quantity | SizeList):
            yield path + name, value
        elif isinstance(value, Group):
            yield from _walk(value, f"{path}{name}.")
        elif isinstance(value, tuple):
            for place, item in enumerate(value):
                if isinstance(item, Group):
                    yield from _walk(item, f"{path}{name}.{place}.")


def pruned(data: dict[str, Any]) -> dict[str, Any]:
    """Return plain data without unset fields and empty groups."""
    pairs = ((key, _pruned_value(value)) for key, value in data.items())
    return {key: value for key, value in pairs if value is not None and value not in ({}, [], "")}


def _pruned_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_pruned_value(item) for item in value]
    return pruned(value) if isinstance(value, dict) else value


@strict
def list_hardware(prefix: str = "") -> list[str]:
    """List the names of the shipped devices, sorted; those of a family with a prefix, in letters of either case.

    >>> "h100-sxm5" in list_hardware(), list_hardware("H100")
    (True, ['h100-nvl', 'h100-pcie', 'h100-sxm5'])
    """
    return spec_names("hardware", prefix)


@strict
def hardware(name_or_path: str | os.PathLike[str]) -> Hardware:
    """Load a shipped device by name, or the device described by a YAML file.

    Parameters
    ----------
    name_or_path : a name of `list_hardware()`, in letters of either case and with any separators, or its first words
        with a number: of several names that begin so, such as h100, the one that takes precedence, which `assumed` of
        the device and of answers says; before it the brand may stand, as the driver prints it, and after it the
        capacity, which decides the memory of a GPU that shares it with its CPU; or the path of a file: an os.PathLike,
        or a string that contains a path separator or ends in .yaml or .yml.

    Raises
    ------
    UnknownNameError, SpecError : the device does not exist, or several begin so, of which none takes precedence; the
        file is invalid, with its path and field.

    >>> hardware("a100-sxm4-40gb").compute.peak.bf16.value
    312000000000000
    >>> hardware("RTX 4090").id, hardware("gh200").id, hardware("M4 Max 64GB").name
    ('rtx4090', 'gh200-96gb', 'Apple M4 Max (40-core GPU), 64 GB')
    """
    if type(name_or_path) is str and name_or_path in _names():
        return _shipped(name_or_path)
    if isinstance(name_or_path, os.PathLike):
        return _from_file(name_or_path)
    if not isinstance(name_or_path, str):
        raise InputError(f"hardware: a name or the path of a file is needed, given {shown(name_or_path)}")
    if names_file(name_or_path):
        return _from_file(name_or_path)
    return _machine(name_or_path) or _named(" ".join(name_or_path.split()))


@lru_cache(maxsize=256)
def _named(given: str) -> Hardware:
    """Load the device that a name means, with what a name of several leaves open."""
    name = shipped_name(given)
    others = [known for known in names_meant(given) if known != name]
    device = _shipped(name)
    if others:
        device = device.model_copy()
        vars(device)["assumed"] = (f"{shown_name(given)}: taken as {name}; also {', '.join(others)}",)
    return device


def shipped_name(given: str) -> str:
    """Find the listed name that a name of a device means: of several the one that takes precedence.

    >>> shipped_name("RTX-4090"), shipped_name("gh200"), shipped_name("NVIDIA GeForce RTX 4070 Ti SUPER")
    ('rtx4090', 'gh200-96gb', 'rtx4070ti-super')
    >>> shipped_name("H100"), shipped_name("h100-80gb"), shipped_name("V100 32GB")
    ('h100-sxm5', 'h100-sxm5', 'v100-sxm2-32gb')
    """
    meant = names_meant(given)
    if len(meant) == 1:
        return meant[0]
    if meant:
        ranked = [(rank, name) for name in meant if (rank := _shipped(name).precedence) is not None]
        if not ranked:
            raise AmbiguousNameError("hardware", given, meant)
        return min(ranked)[1]
    counted = re.fullmatch(r"(\d+)\s*[x*]\s*(\D.*)", given.strip(), re.IGNORECASE)
    if counted and (alone := names_meant(counted[2])):
        raise InputError(f"hardware: {shown(given)} given; allowed: {' or '.join(alone)}, with count {counted[1]}")
    if "," in given and all(map(names_meant, given.split(","))):
        raise InputError(f"hardware: {shown(given)} given; allowed: one name; several as a list, or in several options")
    wants_simulated = "sim" in given  # otherwise suggest real devices only
    likely = [name for name in list_hardware() if wants_simulated or not name.startswith("sim-")]
    raise UnknownNameError(
        "hardware", given, list_hardware(), likely, listing=LISTING, place=place_of(given, "hardware")
    )


def names_meant(given: str) -> list[str]:
    """List the names that a name of a device may mean, with or without its brand and capacity.

    >>> names_meant("Tesla T4"), names_meant("RTX 3060 12GB"), names_meant("RTX 3060 8GB")
    (['t4'], ['rtx3060'], [])
    >>> names_meant("A100 80GB PCIe"), names_meant("NVIDIA H100 80GB HBM3")
    (['a100-pcie-80gb'], ['h100-sxm5'])
    >>> names_meant("H100 SXM"), names_meant("h10")
    (['h100-sxm5'], [])
    """
    name = _MARKS.sub("", " ".join(given.lower().split()))
    if name in _REPORTED:
        return [_REPORTED[name]]
    for bare in _without_brands(name):
        meant = [bare] if bare in _names() else spelled_alike(bare, list_hardware())
        if meant := meant or _beginning(bare) or _of_capacity(bare) or _before_number(bare) or _of_words(bare):
            return meant
    return []


_MARKS = re.compile(r"\((?:r|tm)\)|(?: generation| graphics| oam| vf)+$")
"""Trade marks, and words that drivers print behind a name: VF is a GPU that a virtual machine has."""
_BRAND = re.compile(r"^(?:nvidia|geforce|tesla|amd|instinct|radeon|intel)[\s_-]+")
_REPORTED = {
    "nvidia b300 sxm6 ac": "b300",
    "nvidia gh200 480gb": "gh200-96gb",  # of Grace's memory
    "nvidia h100 80gb hbm3": "h100-sxm5",
    "nvidia h20-3e": "h20-141gb",
    "nvidia h200": "h200-sxm",
    "nvidia rtx pro 6000 blackwell workstation edition": "rtx-pro-6000",
    "nvidia rtx pro 6000 blackwell server edition": "rtx-pro-6000",
    "dgx spark": "gb10",
    "amd radeon 8060s": "strix-halo",
    "ryzen ai max+ 395": "strix-halo",
}
"""Names that nvidia-smi and torch.cuda.get_device_name report and that leave out what ours have; names of machines and
processors whose GPU is on file."""


def _without_brands(whole: str) -> Iterator[str]:
    """Yield a name, then what is left without its first brand, its second and so on; Apple's chips with theirs."""
    name = whole
    while name:
        yield name
        bare = _BRAND.sub("", name)
        name = "" if bare == name else bare
    if re.match(r"m\d", whole):
        yield f"apple {whole}"


def _before_number(name: str) -> list[str]:
    """List the names that go on with a number where a name ends in a letter, as h100-sxm5 after H100 SXM."""
    begun = re.sub(r"[\W_]", "", name)
    if not begun[-1:].isalpha() or not any(map(str.isdigit, begun)):
        return []
    after = re.compile(f"{re.escape(begun)}\\d")
    return [known for known in list_hardware() if after.match(known.replace("-", ""))]


def _beginning(name: str) -> list[str]:
    """List the names whose first words are a name; a brand without a number is no device."""
    numbered = any(map(str.isdigit, name))
    return [known for known in list_hardware() if numbered and spelled_alike(name, _first_words(known))]


def _first_words(name: str) -> list[str]:
    return list(accumulate(name.split("-")[:-1], "{}-{}".format))


def _of_words(name: str) -> list[str]:
    """List the names with the same words in any order and the fewest more, none with a digit; a number is no name."""
    words = Counter(re.split(r"[\s_-]+", name))
    more = {known: Counter(known.split("-")) - words for known in list_hardware() if words <= Counter(known.split("-"))}
    left = {known: rest.total() for known, rest in more.items() if not re.search(r"\d", "".join(rest))}
    return [known for known in left if left[known] == min(left.values())] if not name.isdigit() else []


LARGE_MAC = 36
"""Memory of a machine of Apple from which its GPU gets three quarters [GiB]."""
_BEFORE_CAPACITY = re.compile(r"(.+?)[\s_-]*(?<!\d)(\d{1,4})[\s_-]?gi?b")


def _machine(given: str) -> Hardware | None:
    """Build a device that shares the memory of its machine, which is stated behind the name; None for another name.

    Metal gives a GPU two thirds of the memory, from 36 GB on three quarters (recommendedMaxWorkingSetSize in public
    logs of llama.cpp: 11,453 MB of 16 GB, 22,906 of 32, 28,991 of 36, 51,539 of 64, 103,079 of 128).
    """
    found = _BEFORE_CAPACITY.fullmatch(" ".join(given.lower().split()))
    meant = names_meant(found[1]) if found is not None else []
    if found is None or len(meant) != 1 or _shipped(meant[0]).memory.hbm.capacity is not None or not int(found[2]):
        return None
    stated, share = int(found[2]), Fraction(3, 4) if int(found[2]) >= LARGE_MAC else Fraction(2, 3)
    data = _shipped(meant[0]).to_dict()
    data["memory"]["hbm"] |= {"capacity": f"{stated} GiB", "capacity_reported": f"{int(stated * share * 1024)} MiB"}
    name = f"{data['name']}, {stated} GB"
    return from_data({**{key: value for key, value in data.items() if key != "id"}, "name": name}, given)


def _of_capacity(name: str) -> list[str]:
    """List the names before a capacity that is their device's: the RTX 3090 of "RTX 3090 24GB"."""
    found = _BEFORE_CAPACITY.fullmatch(name)
    if found is None:
        return []
    meant = spelled_alike(found[1], list_hardware()) or _beginning(found[1]) or _of_words(found[1])
    held = {known: _shipped(known).memory.hbm.capacity for known in meant}
    return [known for known, size in held.items() if size and round(size.value / BINARY["Gi"]) == int(found[2])]


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
    """Build a device from the data of a hardware file; error messages name `where` as its path."""
    return _build(dict(data), None, where)


def _build(data: dict[str, Any], name: str | None, where: str) -> Hardware:
    check_schema(data, where, SCHEMA)
    try:
        device = Hardware(**_with_architecture({**({"id": name} if name else {}), **data}))
        device.sram_per_block  # noqa: B018 - raises now if the solver would have no budget
    except (InputError, SpecError, UnknownNameError) as error:
        raise SpecError(f"{where}: {error}") from None
    return device


def _with_architecture(data: dict[str, Any]) -> dict[str, Any]:
    """Fill in the limits that all devices of an architecture share, below the device's own figures."""
    name = data.get("architecture")
    if name is None:
        return data
    known = spec_names("architectures")
    if name not in known:
        raise UnknownNameError("architecture", name, known)
    shared = read_shipped(f"architectures/{name}")
    return _merged({key: value for key, value in shared.items() if key not in ("schema", "name")}, data)


def _merged(defaults: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    result = {**defaults, **overrides}
    for key in defaults.keys() & overrides.keys():
        default, override = defaults[key], overrides[key]
        if isinstance(default, dict) and isinstance(override, dict) and not {"value", "values"} & default.keys():
            result[key] = _merged(default, override)
    return result


def as_device(device_or_name: Hardware | str) -> Hardware:
    """Resolve a device or its name, and note an assumption about its name; raise InputError for anything else."""
    device: Any = hardware(device_or_name) if isinstance(device_or_name, str) else device_or_name
    if not isinstance(device, Hardware):
        several = "; compare, fleet and pareto take several" if isinstance(device, list | tuple) else ""
        raise InputError(
            f"hardware: {shown(device_or_name)} given; allowed: an iomodel.Hardware or the name of one{several}"
        )
    if device.assumed:
        note_assumed(device.label, device.assumed)
        return _shipped(device.label)
    return device
