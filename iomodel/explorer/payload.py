"""Data of the page: formulas without duplicates, calls, devices, algorithms, the alphabet, and names in reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any, get_args

from sympy import Expr, Pow, jscode

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.algorithms import discovered, kernel_names
from iomodel.common import counter_names as names
from iomodel.common.progress import watched
from iomodel.common.validation import LARGEST
from iomodel.counting.bound_formulas import FORMULAS
from iomodel.counting.bound_values import HOLDS_FOR, classes_of
from iomodel.counting.bounds import counts_of
from iomodel.devices.device import Hardware, hardware
from iomodel.devices.quantity import Quantity
from iomodel.devices.rates import has_rates, rates
from iomodel.explorer.built import version_text
from iomodel.explorer.call_kinds import MASKS, SHOWN, CallKind, numbers_of, switches_of
from iomodel.explorer.clock_data import clock_data, model_script
from iomodel.explorer.form import AUTO, OPTIONS, SHAPE, TOUR, call_fields, memory_fields, presets, tile_field
from iomodel.explorer.parts import NODE, Merged, kept, numbered, part, state_of_plans
from iomodel.explorer.serving import ServingGrid, serving, serving_fields
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import SHIPPED
from iomodel.nests.symbols import BY_NAME, NAME_OF
from iomodel.planning.benchmark_files import COUNTED, FORMATS, GIB, MOST, REAL, RUNS
from iomodel.workloads.call import ELEMENT_SIZE, Direction, DType


def device(gpu: Hardware) -> dict[str, Any]:
    """Collect the figures in base units with their sources, omitting unknown ones.

    >>> from iomodel.devices.device import hardware
    >>> device(hardware("h100-sxm5"))["sram"]
    {'value': 232448, 'source': 'nvidia-cccl'}
    """
    figures = {path: figure for path, figure in gpu.quantities.items() if isinstance(figure, Quantity)}

    def plain(*paths: str) -> dict[str, Any] | None:
        figure = next((figures[path] for path in paths if path in figures and figures[path].value > 0), None)
        if figure is None:
            return None
        doubt = {} if figure.verified else {"unverified": True}
        return {"value": _whole(figure.value), "source": ", ".join(figure.source), **doubt}

    rated = next((rates(gpu, name) for name in get_args(DType) if has_rates(gpu, name)), None)
    assumed = (
        None
        if rated is None or rated.l2 is None
        else {"value": _whole(rated.l2), "source": "derived", "unverified": True}
    )
    peaks = {name: plain(f"compute.peak.{name}") for name in get_args(DType)}
    for name, figure in peaks.items():
        if figure is not None and has_rates(gpu, name):
            figure["value"] = _whole(rates(gpu, name).peak)  # a card may reach more than its datasheet states
    data = {
        "name": gpu.name,
        "alignment": gpu.tile_alignment,
        "precedence": gpu.precedence,
        "sram": plain("memory.sram.per_block"),
        "hbm": plain("memory.hbm.bandwidth"),
        "l2": plain("measured.l2_bandwidth", "memory.l2.bandwidth") or assumed,
        "peak": {name: figure for name, figure in peaks.items() if figure is not None},
    }
    return {name: value for name, value in data.items() if value is not None}


def devices(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Collect the data of several devices, given by name or by the path of a file."""
    loaded = [hardware(name) for name in names]
    return {gpu.id or gpu.name: device(gpu) for gpu in loaded}


def _whole(value: float) -> int | float:
    return int(value) if float(value).is_integer() else float(value)


def report_data() -> dict[str, Any]:
    """Return the names and units as plain data.

    >>> report_data()["counters"]["bytes"]["dram_read"]
    ['dram__bytes_read.sum', 'dram__sectors_read.sum']
    """
    counters = {
        "sector": names.SECTOR,
        "prefixes": names.PREFIXES,
        "scales": names.SCALES,
        "labels": {label: [counter, list(units)] for label, (counter, units) in names.LABELS.items()},
        "rate": names.RATE,
        "whole": f"^(?:{names.WHOLE.pattern})$",
        "comma": f"^(?:{names.COMMA.pattern})$",
        "largest": names.LARGEST,
        "l2": list(names.L2),
        "bytes": {quantity: list(pair) for quantity, pair in names.BYTES.items()},
        "duration": list(names.DURATION),
        "metrics": list(names.METRICS),
        "columns": [names.NAME, names.LAUNCH, *names.METRIC],
        "most": names.MOST,
    }
    formats = [
        {
            "source": each.source,
            "known": list(each.known),
            "setting": dict(each.setting),
            "measured": {name: list(entry) for name, entry in each.measured.items()},
            "latency": each.latency,
            "in_flight": each.in_flight,
            "tests": dict(each.tests),
            "before": each.before,
        }
        for each in FORMATS
    ]
    kinds = {"counted": sorted(COUNTED), "real": sorted(REAL)}
    return {"counters": counters, "formats": formats, **kinds, "runs": RUNS, "most": MOST, "gib": GIB}


def payload(
    algorithms: Sequence[str],
    hardware: Sequence[str],
    progress: bool = False,
    only: Sequence[CallKind] | None = None,
    grid: ServingGrid | None = None,
) -> dict[str, Any]:
    """Collect all data of the page, for all kinds of call or for `only` some, with the plans of a grid."""
    merged = Merged()
    for name in watched(algorithms, len(algorithms), progress, "algorithms"):
        merged.add(part(name, None if only is None else [kind for kind in only if kind.algorithm == name]))
    bounds = {
        f"{mask}|{direction}": [merged.node(formula) for formula in counts_of(kind, direction, False).compiled.formulas]
        for mask, kind in MASKS.items()
        for direction in get_args(Direction)
    }
    declared = {name: _algorithm(find_algorithm(name), merged.node) for name in algorithms}
    texts = merged.nodes.texts()
    own = {NODE: merged.nodes.places}
    planned = {} if grid is None else serving_fields(grid)
    clock = {"calls": merged.collected("clock"), "functions": list(merged.functions)}
    return {
        "version": version_text(),
        "software": software(),
        "kernels": {name: home for name, home in kernel_names().items() if home[0] in algorithms},
        "clock": {"script": model_script(), **clock_data(algorithms, hardware), **clock},
        "devices": devices(hardware),
        "algorithms": numbered(declared, own),
        **_once("calls", merged.collected("calls")),
        **_once("nests", merged.collected("nests")),
        "bounds": {"counts": numbered(bounds, own), "values": {name: _bound(expr) for name, expr in FORMULAS.items()}},
        "nodes": texts,
        "lines": list(merged.lines),
        "reports": report_data(),
        "masks": list(MASKS),
        "directions": list(get_args(Direction)),
        "fields": {"call": call_fields(), "memory": memory_fields(), "tile": tile_field(), "serving": planned},
        "serving": None if grid is None else _plans(grid, progress),
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


def _plans(grid: ServingGrid, progress: bool) -> dict[str, Any]:
    """Return the plans of a grid; those of the page's own are kept."""
    if grid != ServingGrid():
        return serving(grid, progress)
    return dict(kept("part-serving", state_of_plans(tuple(discovered())), lambda: serving(grid, progress)))


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


def _algorithm(declared: Algorithm, node: Callable[[Expr], str]) -> dict[str, Any]:
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
        classes = classes_of(declared.classes, direction)
        directions[direction] = {"numbers": numbers, "switches": switches, "classes": classes}
    return {
        "title": declared.title,
        "cite": declared.cite,
        "approximates": declared.approximates,
        "requires": [
            {
                "field": requirement.field,
                "names": sorted(NAME_OF[symbol] for symbol in requirement.holds.free_symbols),
                "holds": node(requirement.holds),
                "most": None if requirement.most is None else node(requirement.most),
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
