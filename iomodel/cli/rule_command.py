"""Command that writes a rule for the launches of a kernel family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from iomodel.algorithms import algorithm as find
from iomodel.cli.common_options import Json
from iomodel.cli.documented import Group, function, given, of
from iomodel.cli.output import emit
from iomodel.cli.required import require
from iomodel.cli.shared_options import Tiled, implementation_names
from iomodel.cli.signature import option, several, switch, with_options
from iomodel.common.validation import as_choice
from iomodel.devices.device import list_hardware
from iomodel.errors import InputError

if TYPE_CHECKING:
    from iomodel.studies.rules.rule_result import Rule

RULE = "studies.rules.rule:rule"
DOMAIN = Group(
    "studies.rules.domain:Domain",
    "Domain",
    "min_q_len max_q_len max_kv_len max_batch max_kv_heads max_group head_dims dtype",
)
FORMS = ("python", "cpp", "json", "table")
ENGINES = ("flash-attention", "flex-attention", "aiter")
ROOMS = {"flex-attention": "triton.rules"}
"""Modules that learn the rules of engines, where it is not that of other rules."""
DEVICES = several("hardware", "A device, or its YAML file; may be repeated.", "Device", "NAME|FILE", list_hardware)
KERNELS = option(
    "implementation",
    "The kernels, or those of each device separated by commas (the default ones of each).",
    "Device",
    "NAME",
    implementation_names,
)
ENGINE = option(
    "engine",
    "The engine that takes the rule: flash-attention as num_splits, flex-attention as kernel_options, aiter as a file.",
    "Device",
    "NAME",
    ENGINES,
)
WRITTEN = [
    option("form", f"Form of the rule: {', '.join(FORMS)} (that of the ending of the file, else python).", "Output",
           "NAME", FORMS),
    option("out", "A .py, .h, .hpp, .cpp or .json file, with a file of tests beside it.", "Output", "FILE"),
    switch("force", "Replace existing files.", "Output"),
]  # fmt: skip


@with_options([DEVICES, KERNELS, ENGINE], of(RULE, "Rule", "size calls seed"), DOMAIN.options, WRITTEN)
def rule(algorithm: Tiled, *, json: Json = False, **arguments: Any) -> None:
    """Write a function without imports that chooses tiles, packing and splits, with its domain and its regret.

    Its choices are those of `iomodel tiles`, learned from many calls; further calls judge it. With --out, a file of
    tests that derives the rule again stands beside it, and the regrets are printed.

    Example:
      iomodel rule flash2 --hardware mi300x --calls 400 --form cpp
    """
    from iomodel.common.output_files import writable
    from iomodel.studies.rules.rule_result import SUFFIXES

    require(arguments, ("hardware",))
    form, out, force = arguments["form"], arguments["out"], bool(arguments["force"])
    if form is not None:
        as_choice("form", form, FORMS)
    if out is not None:
        writable(out, SUFFIXES, overwrite=force)
    found = _learned(algorithm, arguments)
    if out is not None:
        found.write(out, form, overwrite=force)
    emit(found if json or out is not None else found.text(form).rstrip("\n"), json)


def _learned(algorithm: str, arguments: Mapping[str, Any]) -> Rule:
    """Learn the rule of an engine, or that of whole launches."""
    known = function("studies.rules.engines:ENGINES")
    engine, kernels = arguments["engine"], (arguments["implementation"] or "").split(",")
    domain, fields = DOMAIN.given(arguments) if engine is None else None, given(arguments, DOMAIN.path, DOMAIN.names)
    if engine in known and fields:
        domain = replace(known[engine].domain, **fields)
    options = {"engine": engine, "domain": domain, "progress": True, **given(arguments, RULE, "size calls seed")}
    found: Rule
    if engine not in ROOMS:
        wanted = kernels if len(kernels) > 1 else kernels[0] or None
        found = function(RULE)(algorithm, arguments["hardware"], implementation=wanted, **options)
        return found
    if arguments["implementation"] is not None:
        raise InputError(f"implementation: {arguments['implementation']!r} given with engine {engine}; allowed: none")
    if find(algorithm).name != (allowed := function(f"{ROOMS[engine]}:ALGORITHM").name):
        raise InputError(f"algorithm: {algorithm} given with engine {engine}; allowed: {allowed}")
    found = function(f"{ROOMS[engine]}:rule")(arguments["hardware"], **options)
    return found
