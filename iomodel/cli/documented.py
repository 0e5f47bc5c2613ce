"""Options of commands from the signatures and the docstrings of the functions that they call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, get_args

from iomodel.cli.numbers import duration, integer, integers, rate, real, reals, size
from iomodel.cli.signature import Options, option, switch
from iomodel.common.quantities import BANDWIDTHS, TIMES
from iomodel.devices.device import list_hardware
from iomodel.errors import InputError
from iomodel.workloads.call import DType, KVType

READERS: Mapping[str, Callable[[str, str], Any]] = {
    **dict.fromkeys(TIMES, duration),
    **dict.fromkeys(BANDWIDTHS, rate),
    **dict.fromkeys(("sram_bytes", "overhead_bytes", "shared_bytes"), size),
    **dict.fromkeys(("batches", "head_dims"), integers),
    "lengths": reals,
}
"""Readers of parameters whose text may have a unit, or is a list."""
METAVARS: Mapping[Any, str] = {
    duration: "TIME",
    rate: "RATE",
    size: "SIZE",
    integers: "LIST",
    reals: "LIST",
    integer: "INTEGER",
}


def engine_names() -> list[str]:
    """List the names of engines, whose room a help page does not load."""
    from iomodel.planning.engines import ENGINES, NAMED  # the rooms of plans, which no other command needs

    return [*NAMED, *ENGINES]


COMPLETED: Mapping[str, Any] = {"dtype": get_args(DType), "kv_dtype": get_args(KVType), "engine": engine_names}
"""Names that a shell completes, of parameters whose docstring does not list them."""
OPENED = {"hardware": list_hardware, "prefill": list_hardware, "decode": list_hardware}
"""Names that a shell completes, of parameters that take a file as well."""
LONGEST = 140
"""Characters beyond which a sentence loses its last clause."""
ENTRY = re.compile(r"^([\w*, ]+?)(?: : (.*))?\n((?: +.*\n?|\n)+)", re.MULTILINE)
SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n((?:(?!\n\n\w).)*)", re.MULTILINE | re.DOTALL)


def function(path: str) -> Any:
    """Import a function or class of the package, such as "planning.plan:plan"."""
    module, _, name = path.partition(":")
    return getattr(import_module(f"iomodel.{module}"), name)


@cache
def documented(path: str) -> Mapping[str, tuple[str, str]]:
    """Return the type and the first sentence of each parameter in the docstring of a function.

    >>> documented("planning.step.layout:Layout")["pipeline_parallel"]
    ('int', 'Stages that divide the layers.')
    """
    section = SECTION.search(inspect.getdoc(function(path)) or "")
    entries = ENTRY.findall(f"{section[1]}\n") if section else []
    return {name: (kind, _sentence(text)) for names, kind, text in entries for name in names.split(", ")}


def _sentence(text: str) -> str:
    """Return the first sentence of a docstring's entry as plain text, without the units."""
    first = re.split(r"(?<=[^A-Z]\.) (?=[A-Z])", " ".join(text.split()))[0].rstrip(".")
    plain = re.sub(r":\w+:`~?([^`]+)`", r"\1", first).replace("``", "'").replace("`", "")
    plain = re.sub(r" \[[^\]]+\]", "", plain)
    for mark in ("; ", ": "):
        plain = plain if len(plain) <= LONGEST else plain.rpartition(mark)[0] or plain
    return f"{plain}."


@cache
def parameters(path: str) -> Mapping[str, tuple[str, Any]]:
    """Return the annotation and the default of each parameter of a function, or of each field of a class."""
    taken = function(path)
    if hasattr(taken, "model_fields"):
        return {
            name: (str(field.annotation), inspect.Parameter.empty if field.is_required() else field.default)
            for name, field in taken.model_fields.items()
        }
    listed = inspect.signature(taken).parameters.values()
    return {entry.name: (str(entry.annotation), entry.default) for entry in listed}


def of(path: str, panel: str, names: str, *, required: str = "required", **help: str) -> Callable[[], Options]:
    """Declare options of some parameters of a function, built when a command is used.

    An option with another name than its parameter follows it, as in "rank=lora_rank". `required` marks parameters
    without a default; `help` replaces the help of a parameter.
    """

    def build() -> Options:
        return [_option(path, panel, name, typed, required, help.get(name)) for name, typed in _pairs(names)]

    return build


def _pairs(names: str) -> list[tuple[str, str]]:
    """Return the name of each parameter with that of its option."""
    return [(name, typed or name) for name, _, typed in (word.partition("=") for word in names.split())]


def _option(path: str, panel: str, name: str, typed: str, required: str, help: str | None) -> inspect.Parameter:
    annotation, default = parameters(path)[name]
    kind, sentence = documented(path).get(name, ("", ""))
    listed = re.findall(r'"([^"]+)"', kind)
    if listed:
        sentence = f"{sentence.rstrip('.')}: {', '.join(listed)}."
    if default is inspect.Parameter.empty:
        sentence = f"{sentence.rstrip('.')} ({required})."
    elif default and isinstance(default, str | int | float) and not isinstance(default, bool):
        sentence = f"{sentence.rstrip('.')} ({default if isinstance(default, str) else f'{default:g}'})."
    told = help or sentence.replace("[", r"\[")
    if "bool" in annotation:
        return switch(typed, told, panel, both_ways="None" in annotation)
    reader = READERS.get(name) or (integer if "int" in annotation else None)
    metavar = METAVARS[reader] if reader else "NUMBER" if "float" in annotation else "NAME"
    if name in OPENED:
        return option(typed, told, panel, "NAME|FILE", OPENED[name])
    names = COMPLETED.get(name) or listed or re.findall(r'"([^"]+)"', sentence)
    return option(typed, told, panel, metavar, names if callable(names) else tuple(names))


def given(arguments: Mapping[str, Any], path: str, names: str = "") -> dict[str, Any]:
    """Convert the options that are given for parameters of a function, all or the named ones, by parameter."""
    typed = dict(_pairs(names or " ".join(parameters(path))))
    return {
        name: _converted(name, word, arguments[word], parameters(path)[name][0])
        for name, word in typed.items()
        if arguments.get(word) is not None
    }


def _converted(name: str, typed: str, text: Any, annotation: str) -> Any:
    if not isinstance(text, str):
        return text
    if name in READERS:
        return READERS[name](typed, text)
    if "Iterable[str]" in annotation:
        return [entry.strip() for entry in text.split(",")]
    return integer(typed, text) if "int" in annotation else real(text) if "float" in annotation else text


class Group(NamedTuple):
    """Options of a parameter that is an object: its class, panel and fields, and an example of those required."""

    path: str
    panel: str
    names: str
    example: str = ""

    @property
    def options(self) -> Callable[[], Options]:
        """The options, built when a command is used."""
        return of(self.path, self.panel, self.names, required=f"required with {self.panel.lower()}")

    def given(self, arguments: Mapping[str, Any]) -> Any:
        """Build the object from the options that are given; None without any."""
        fields = given(arguments, self.path, self.names)
        for name, typed in _pairs(self.names) if fields else ():
            if name not in fields and parameters(self.path)[name][1] is inspect.Parameter.empty:
                raise InputError(f"{typed}: none given with {self.panel.lower()}; allowed: {self.example}")
        return function(self.path)(**fields) if fields else None


GROUPS: Mapping[str, Group] = {
    "layout": Group(
        "planning.step.layout:Layout",
        "Layout",
        "tensor_parallel pipeline_parallel expert_parallel decode_context_parallel redundant_experts devices_per_node "
        "network_bandwidth",
    ),
    "prefix_cache": Group(
        "planning.prefix_cache:PrefixCache",
        "Prefix cache",
        "shared_tokens hit_rate host_rate disk_rate host_bandwidth disk_bandwidth cascade",
    ),
    "speculation": Group(
        "planning.speculation:Speculation",
        "Speculation",
        "tokens=draft_tokens acceptance draft",
        "--draft-tokens 3 --acceptance 0.8",
    ),
    "lora": Group(
        "planning.step.lora:Lora",
        "Adapters",
        "rank=lora_rank adapters=lora_adapters active=lora_active",
        "--lora-rank 16",
    ),
}
"""Parameters that are objects."""


def objects(arguments: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Build the objects that a function takes from their options, where any is given; a layout may be flat."""
    taken = parameters(path)
    flat = {"layout"} if "tensor_parallel" in taken else set()
    built = {name: group.given(arguments) for name, group in GROUPS.items() if name in taken and name not in flat}
    return {name: value for name, value in built.items() if value is not None}
