"""Arguments that planning verbs share at their doors: flat or grouped layouts, names of old releases, command lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from iomodel.common.deprecation import warn_renamed
from iomodel.common.option_groups import check_names
from iomodel.errors import InputError
from iomodel.errors.synonyms import same
from iomodel.planning.engine_arguments import is_command, read_command
from iomodel.planning.service_options import LayoutOptions, PlanOptions, TargetOptions
from iomodel.planning.step.layout import Layout
from iomodel.planning.step.step_arguments import as_layout, as_model

DEGREES = tuple(LayoutOptions.__annotations__)
"""Degrees of a layout, and its nodes."""
KNOWN = frozenset(PlanOptions.__annotations__)
"""Options of a service by their present names, which are looked up in no table of synonyms."""
TARGETS: Mapping[str, Any] = dict.fromkeys(TargetOptions.__annotations__)
"""Options of a load, its targets and its price, none of which is given."""
RENAMED = {"price_per_hour": "price", "prices": "price", "max_count": "max_devices"}
"""Arguments by their names in release 0.1."""
OF_VERBS = {"pareto": {"max_count": "replica_devices"}, "simulate": {"trace": "arrivals"}}
"""Further ones of single verbs."""


class Arguments(NamedTuple):
    """Arguments of a verb: those with their own parameter, the layout or None, and the options of a service.

    Without a layout, `start` is one device in the given nodes, which the layouts of a search keep.
    """

    own: dict[str, Any]
    layout: Layout | None
    service: dict[str, Any]
    start: Layout


def renamed(function: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments under their present names: synonyms of degrees of a layout, and names of old releases.

    The latter warn at the line of the caller.

    >>> renamed("plan", {"tp": 4, "batch": 2})
    {'tensor_parallel': 4, 'batch': 2}
    """
    old = {**RENAMED, **OF_VERBS.get(function, {})}
    found: dict[str, Any] = {}
    for name, value in given.items():
        new = old.get(name) or (name if name in KNOWN else same(name, DEGREES) or name)
        if name in old:
            warn_renamed(f"{function}({name}=)", f"{new}=")
        if new in found or (new != name and given.get(new) is not None):
            raise InputError(f"{name}: given with {new}; allowed: one of both")
        found[new] = value
    return found


def settled(function: Callable[..., Any], service: Mapping[str, Any], **own: Any) -> Arguments:
    """Divide the arguments of a verb: `own` are those with parameters of their own, `service` all others.

    Raises
    ------
    TypeError
        An argument is unknown.
    InputError
        A layout is given twice, or an argument under two names.
    """
    asked = renamed(function.__name__, service)
    taken = {name: asked.pop(name) for name in list(asked) if name in own}
    for name, value in taken.items():
        if own[name] is not None and value is not None:
            raise InputError(f"{name}: given twice; allowed: once")
    own = {**own, **{name: value for name, value in taken.items() if value is not None}}
    check_names(function, asked)
    layout = asked.pop("layout") if "layout" in asked else own.pop("layout", None)
    degrees = {name: asked.pop(name) for name in DEGREES if name in asked}
    degrees = {name: value for name, value in degrees.items() if value is not None}
    if degrees and layout is not None:
        raise InputError(f"{next(iter(degrees))}: given with layout; allowed: one of both")
    start = Layout(**degrees) if layout is None else as_layout(layout)
    return Arguments(own, start if (degrees or layout is not None) and start.decided else None, asked, start)


def of_command(
    model: Any, service: Mapping[str, Any], **own: Any
) -> tuple[Any, dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """Read a command line in the place of a model: the model, options, own arguments, and what is passed over.

    Arguments that are given beside the line take precedence. The most requests of a step limit the batch, and tokens of
    the longest request limit a request, as they limit the engine.
    """
    if not is_command(model):
        return model, dict(service), own, ()
    command = read_command(model, drafts=service.get("speculation") is not None)
    read = command.arguments
    if "batch" in read:
        read["step_requests"] = -(-read.pop("batch") // read["layout"].data_parallel)
    given = {name: value for name, value in service.items() if name != "layout" or value is not None}
    if own.get("count") is not None or "layout" in given or {*DEGREES} & {*renamed("", service)}:
        del read["count"], read["layout"]
    options = {name: value for name, value in read.items() if name not in ("model", "count", *own)}
    told = {name: read.get(name) if value is None else value for name, value in own.items()}
    for limit in command.limit.values():
        spec = as_model(read["model"])
        read["model"] = spec.model_copy(update={"max_positions": min(limit, spec.max_positions or limit)})
    ignored = (command.passed_over,) if command.ignored else ()
    return read["model"], {**options, **given}, told, ignored
