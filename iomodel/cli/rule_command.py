"""Command that writes a rule for the launches of a kernel family."""

from __future__ import annotations

from typing import Any

from iomodel.cli.documented import Group, given, of
from iomodel.cli.output import emit
from iomodel.cli.required import require
from iomodel.cli.shared_options import Algorithm, Json, implementation_names
from iomodel.cli.signature import option, several, switch, with_options
from iomodel.devices.device import list_hardware

RULE = "studies.rules.rule:rule"
DOMAIN = Group(
    "studies.rules.domain:Domain", "Domain", "max_q_len max_kv_len max_batch max_kv_heads max_group head_dims dtype"
)
FORMS = ("python", "cpp", "table")
DEVICES = several("hardware", "A device, or its YAML file; may be repeated.", "Device", "NAME|FILE", list_hardware)
KERNELS = option(
    "implementation",
    "The kernels, or those of each device separated by commas (the default ones of each).",
    "Device",
    "NAME",
    implementation_names,
)
WRITTEN = [
    option("form", f"Form of the rule: {', '.join(FORMS)} (that of the ending of the file, else python).", "Output",
           "NAME", FORMS),
    option("out", "A .py, .h, .hpp, .cpp or .json file, with a file of tests beside it.", "Output", "FILE"),
    switch("force", "Replace existing files.", "Output"),
]  # fmt: skip


@with_options([DEVICES, KERNELS], of(RULE, "Rule", "size calls seed"), DOMAIN.options, WRITTEN)
def rule(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Write a function without imports that chooses tiles, packing and splits, with its domain and its regret.

    Its choices are those of `iomodel tiles`, learned from many calls; further calls judge it. With --out, a file of
    tests that derives the rule again stands beside it, and the regrets are printed.

    Example:
      iomodel rule flash2 --hardware mi300x --calls 400 --form cpp
    """
    from iomodel.common.output_files import writable
    from iomodel.studies.rules.rule import rule as learn
    from iomodel.studies.rules.rule_result import SUFFIXES
    from iomodel.studies.rules.written import check_form

    require(arguments, ("hardware",))
    form, out, force = arguments["form"], arguments["out"], bool(arguments["force"])
    if form is not None:
        check_form(form)
    if out is not None:
        writable(out, SUFFIXES, overwrite=force)
    kernels = (arguments["implementation"] or "").split(",")
    found = learn(
        algorithm, arguments["hardware"], implementation=kernels if len(kernels) > 1 else kernels[0] or None,
        domain=DOMAIN.given(arguments), progress=True, **given(arguments, RULE, "size calls seed"),
    )  # fmt: skip
    if out is not None:
        found.write(out, form, overwrite=force)
    emit(found if json or out is not None else found.text(form or "python").rstrip("\n"), json)
