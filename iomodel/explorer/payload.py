"""Data of the page: formulas without duplicates, calls, devices, algorithms, and the alphabet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, metadata, version
from typing import Any, get_args

from sympy import Expr, Pow, jscode

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.algorithms import kernel_names
from iomodel.common.progress import watched
from iomodel.common.validation import LARGEST
from iomodel.counting.bound_formulas import FORMULAS
from iomodel.counting.bound_values import HOLDS_FOR, classes_of
from iomodel.counting.bounds import counts_of
from iomodel.errors import IOModelError
from iomodel.explorer.call_kinds import MASKS, SHOWN, Answer, CallKind, TilePair, answer, kinds, numbers_of, switches_of
from iomodel.explorer.clock_data import ClockData, model_script
from iomodel.explorer.device_data import devices
from iomodel.explorer.drawn_nests import Drawn
from iomodel.explorer.form import AUTO, OPTIONS, SHAPE, TOUR, call_fields, memory_fields, presets, tile_field
from iomodel.explorer.javascript import Nodes
from iomodel.explorer.report_data import report_data
from iomodel.explorer.serving import ServingGrid, serving, serving_fields
from iomodel.explorer.typeset import Typeset
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import SHIPPED
from iomodel.nests.symbols import BY_NAME, NAME_OF
from iomodel.workloads.call import ELEMENT_SIZE, Direction

TYPESET = ("flops", "exps", "atomics", "footprint", "footprint_bytes")
"""Totals with displayed formulas."""


def payload(
    algorithms: Sequence[str],
    hardware: Sequence[str],
    progress: bool = False,
    only: Sequence[CallKind] | None = None,
    grid: ServingGrid | None = None,
) -> dict[str, Any]:
    """Collect all data of the page, for all kinds of call or for `only` some, with the plans of a grid."""
    nodes, typeset, clock = Nodes(), Typeset(), ClockData()
    calls: dict[str, Any] = {}
    nests: dict[str, Any] = {}
    call_kinds = list(kinds(algorithms) if only is None else only)
    for kind in watched(call_kinds, len(call_kinds), progress, "kinds of call"):
        try:
            call_answer = answer(kind)
        except IOModelError as error:
            calls[kind.place] = str(error).replace("'another'", "'window'")  # the page's name for those masks
        else:
            calls[kind.place] = _call(call_answer, nodes, typeset)
            if kind.nest_place not in nests:
                nests[kind.nest_place] = Drawn(call_answer.nest, nodes.add).plain()
    for kind in kinds(algorithms):
        clock.add(kind)
    bounds = {
        f"{mask}|{direction}": [nodes.add(formula) for formula in counts_of(kind, direction, False).compiled.formulas]
        for mask, kind in MASKS.items()
        for direction in get_args(Direction)
    }
    declared = {name: _algorithm(find_algorithm(name), nodes) for name in algorithms}
    texts = nodes.texts()
    planned = {} if grid is None else serving_fields(grid)

    def numbered(data: Any) -> Any:
        """Replace formulas by their numbers."""
        if isinstance(data, Expr):
            return nodes.places[data]
        if isinstance(data, dict):
            return {key: numbered(value) for key, value in data.items()}
        return [numbered(value) for value in data] if isinstance(data, list | tuple) else data

    return {
        "version": version_text(),
        "software": software(),
        "kernels": {name: home for name, home in kernel_names().items() if home[0] in algorithms},
        "clock": {"script": model_script(), **clock.plain(algorithms, hardware)},
        "devices": devices(hardware),
        "algorithms": numbered(declared),
        **_once("calls", numbered(calls)),
        **_once("nests", numbered(nests)),
        "bounds": {"counts": numbered(bounds), "values": {name: _bound(expr) for name, expr in FORMULAS.items()}},
        "nodes": texts,
        "lines": typeset.lines,
        "reports": report_data(),
        "masks": list(MASKS),
        "directions": list(get_args(Direction)),
        "fields": {"call": call_fields(), "memory": memory_fields(), "tile": tile_field(), "serving": planned},
        "serving": None if grid is None else serving(grid, progress),
        "shape": list(SHAPE),
        "dtypes": ELEMENT_SIZE,
        "presets": presets(),
        "tour": [step._asdict() for step in TOUR if step.state.get("algorithm", "flash2") in algorithms],
        "options": OPTIONS,
        "holds": HOLDS_FOR,
        "quantities": {name: [entry.label, entry.unit, entry.listed == "nonzero"] for name, entry in SHOWN.items()},
        "alphabet": {
            entry.name: {"symbol": str(entry.symbol), "meaning": entry.meaning, "unit": entry.unit} for entry in SHIPPED
        },
    }


def _once(name: str, data: dict[str, Any]) -> dict[str, Any]:
    """Store each distinct value once in a list; under `name` its position, or a string unchanged."""
    places: dict[str, int] = {}
    values: list[Any] = []
    index: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, str):
            index[key] = value
            continue
        text = json.dumps(value)
        if text not in places:
            places[text] = len(values)
            values.append(value)
        index[key] = places[text]
    return {name: index, f"{name}_of": values}


def _algorithm(declared: Algorithm, nodes: Nodes) -> dict[str, Any]:
    directions = {}
    searched = {name for known in declared.implementations for name in known.searched}
    for direction in declared.directions:
        numbers = {
            name: {
                "least": str(int(bool(BY_NAME[name].is_positive))),
                "most": str(LARGEST),
                **_default(str(default), name in searched),
            }
            for name, default in numbers_of(declared, direction).items()
        }
        switches = {
            name: {
                "default": _switch(declared.takes(direction)[name] if len(allowed) > 1 else allowed[0]),
                "choices": [_switch(on) for on in allowed],
            }
            for name, allowed in switches_of(declared, direction).items()
        }
        classes = sorted(classes_of(declared.classes, direction))
        directions[direction] = {"numbers": numbers, "switches": switches, "classes": classes}
    return {
        "title": declared.title,
        "cite": declared.cite,
        "approximates": declared.approximates,
        "requires": [
            {
                "field": requirement.field,
                "names": sorted(NAME_OF[symbol] for symbol in requirement.holds.free_symbols),
                "holds": nodes.add(requirement.holds),
                "most": None if requirement.most is None else nodes.add(requirement.most),
                "allowed": requirement.allowed,
                "given": dict(requirement.given),
            }
            for requirement in declared.requires
        ],
        "packed": {
            "choices": ["off", "on"] if "packed" in declared.common else ["off"],
            **_default("off", "packed" in searched),
        },
        "directions": directions,
    }


def _default(declared: str, searched: bool) -> dict[str, str]:
    """Return the default of an option; one that kernels choose is left to them."""
    return {"default": AUTO, "declared": declared} if searched else {"default": declared}


def _switch(on: bool) -> str:
    return "on" if on else "off"


def _call(call_answer: Answer, nodes: Nodes, typeset: Typeset) -> dict[str, Any]:
    expressions = call_answer.expressions

    def row(formula: Expr) -> list[Any]:
        return [nodes.add(formula), typeset.line(formula)]

    return {
        "tiles": list(expressions.tiles),
        "reads": {name: row(expr) for name, expr in expressions.reads.items()},
        "writes": {name: row(expr) for name, expr in expressions.writes.items()},
        "counts": {
            name: row(formula) if name in TYPESET else [nodes.add(formula)]
            for name in SHOWN
            for formula in [getattr(expressions, name)]
        },
        "parts": [_part(part, nodes) for part in call_answer.parts],
        "rest": nodes.add(call_answer.rest),
        "refused": call_answer.refused,
    }


def _part(part: TilePair, nodes: Nodes) -> dict[str, Any]:
    return {name: nodes.add(value) if isinstance(value, Expr) else value for name, value in vars(part).items()}


def _bound(formula: Expr) -> dict[str, Any]:
    """Convert a lower bound to JavaScript on floats, with the terms that must be positive for it to hold."""
    below = {power.base for power in formula.atoms(Pow) if power.exp.is_negative}
    return {"value": jscode(formula), "positive": sorted(map(jscode, below))}


def software() -> dict[str, str]:
    """Return the fields of a citation that the metadata of the package have.

    >>> sorted(software())
    ['author', 'title', 'url']
    """
    try:
        known = metadata("iomodel").json
    except PackageNotFoundError:
        return {"author": "", "title": "", "url": ""}
    urls = dict(entry.split(", ", 1) for entry in known.get("project_url", []))
    texts = {"author": str(known.get("author", "")), "title": str(known.get("summary", ""))}
    return {**texts, "url": urls.get("Repository", "")}


def version_text() -> str:
    """Return the version of the installed package; without one, say that the code is a checkout."""
    try:
        return version("iomodel")
    except PackageNotFoundError:
        return "a checkout"
