"""All data of the page: formulas once each, the calls that name them, devices, algorithms, the alphabet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, get_args

from sympy import Expr, Pow, jscode

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.bounds import FORMULAS, counts_of
from iomodel.errors import IOModelError
from iomodel.explorer.calls import (
    MASKS,
    QUANTITIES,
    Answer,
    CallKind,
    PartFormulas,
    answer,
    kinds,
    numbers_of,
    switches_of,
)
from iomodel.explorer.devices import devices
from iomodel.explorer.javascript import Nodes
from iomodel.explorer.nests import Drawn
from iomodel.explorer.typeset import Typeset
from iomodel.nest import Algorithm
from iomodel.progress import watched
from iomodel.symbols import ALPHABET, BY_NAME, NAME_OF
from iomodel.validation import LARGEST
from iomodel.workload import ELEMENT_SIZE, Align, Direction

TYPESET = ("flops", "exps", "atomics", "footprint", "footprint_bytes")
"""The totals whose formulas are shown."""


def payload(
    algorithms: Sequence[str], hardware: Iterable[str], progress: bool = False, only: Sequence[CallKind] | None = None
) -> dict[str, Any]:
    """Everything that the page computes with, as plain data; of all kinds of call, or of some only."""
    nodes, typeset = Nodes(), Typeset()
    calls: dict[str, Any] = {}
    nests: dict[str, Any] = {}
    wanted = list(kinds(algorithms) if only is None else only)
    for kind in watched(wanted, len(wanted), progress, "kinds of call"):
        try:
            found = answer(kind)
        except IOModelError as error:
            calls[kind.place] = str(error).replace("'another'", "'window'")  # as the page calls those masks
        else:
            calls[kind.place] = _call(found, nodes, typeset)
            if kind.nest_place not in nests:
                nests[kind.nest_place] = Drawn(found.nest, nodes.add).plain()
    bounds = {
        f"{mask}|{way}": [nodes.add(formula) for formula in counts_of(kind, way, False).compiled.formulas]
        for mask, kind in MASKS.items()
        for way in get_args(Direction)
    }
    declared = {name: _algorithm(find_algorithm(name), nodes) for name in algorithms}
    texts = nodes.texts()

    def numbered(data: Any) -> Any:
        """Numbers in place of formulas."""
        if isinstance(data, Expr):
            return nodes.places[data]
        if isinstance(data, dict):
            return {key: numbered(value) for key, value in data.items()}
        return [numbered(value) for value in data] if isinstance(data, list | tuple) else data

    return {
        "version": _version(),
        "devices": devices(hardware),
        "algorithms": numbered(declared),
        **_once("calls", numbered(calls)),
        **_once("nests", numbered(nests)),
        "bounds": {"counts": numbered(bounds), "values": {name: _bound(expr) for name, expr in FORMULAS.items()}},
        "nodes": texts,
        "lines": typeset.lines,
        "masks": list(MASKS),
        "aligns": list(get_args(Align)),
        "dtypes": ELEMENT_SIZE,
        "largest": str(LARGEST),
        "quantities": {name: list(words) for name, words in QUANTITIES.items()},
        "alphabet": {
            entry.name: {"symbol": str(entry.symbol), "meaning": entry.meaning, "unit": entry.unit}
            for entry in ALPHABET
        },
    }


def _once(name: str, data: dict[str, Any]) -> dict[str, Any]:
    """Each value once, in a list; under `name` the place in it, or a text as it is."""
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


def _algorithm(found: Algorithm, nodes: Nodes) -> dict[str, Any]:
    directions = {}
    for way in found.directions:
        numbers = {
            name: {"default": default, "least": int(bool(BY_NAME[name].is_positive))}
            for name, default in numbers_of(found, way).items()
        }
        switches = {
            name: {"default": found.takes(way)[name] if len(allowed) > 1 else allowed[0], "allowed": list(allowed)}
            for name, allowed in switches_of(found, way).items()
        }
        classes = sorted(found.classes) if way == "forward" else []
        directions[way] = {"numbers": numbers, "switches": switches, "classes": classes}
    return {
        "title": found.title,
        "cite": found.cite,
        "approximates": found.approximates,
        "requires": [
            {
                "field": one.field,
                "names": sorted(NAME_OF[symbol] for symbol in one.holds.free_symbols),
                "holds": nodes.add(one.holds),
                "most": None if one.most is None else nodes.add(one.most),
                "allowed": one.allowed,
                "given": dict(one.given),
            }
            for one in found.requires
        ],
        "packed": "packed" in found.common,
        "directions": directions,
    }


def _call(found: Answer, nodes: Nodes, typeset: Typeset) -> dict[str, Any]:
    made = found.found

    def row(formula: Expr) -> list[Any]:
        return [nodes.add(formula), typeset.line(formula)]

    return {
        "tiles": list(made.tiles),
        "reads": {name: row(expr) for name, expr in made.reads.items()},
        "writes": {name: row(expr) for name, expr in made.writes.items()},
        "counts": {
            name: row(formula) if name in TYPESET else [nodes.add(formula)]
            for name in QUANTITIES
            for formula in [getattr(made, name)]
        },
        "parts": [_part(part, nodes) for part in found.parts],
        "rest": nodes.add(found.rest),
        "refused": found.refused,
    }


def _part(part: PartFormulas, nodes: Nodes) -> dict[str, Any]:
    return {name: nodes.add(value) if isinstance(value, Expr) else value for name, value in vars(part).items()}


def _bound(formula: Expr) -> dict[str, Any]:
    """A lower bound as JavaScript on floats, and what must be above 0 for it to hold."""
    below = {power.base for power in formula.atoms(Pow) if power.exp.is_negative}
    return {"value": jscode(formula), "positive": sorted(map(jscode, below))}


def _version() -> str:
    try:
        return version("iomodel")
    except PackageNotFoundError:
        return "a checkout"
