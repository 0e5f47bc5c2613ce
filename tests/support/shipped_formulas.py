"""Writes what ships of formulas: the catalogue of algorithms, and a module of compiled formulas for each.

    python -m tests.support.shipped_formulas [NAME ...]

Run it after a change of a declaration, of a count or of the code generator; without names it writes all of them. What
ships: every algorithm with its default options, under full, causal and windowed masks, in every direction, with the
rows of a group packed and not; and the kernels that plans run, with the features of the shipped models.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import chain, combinations
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import iomodel.algorithms
from iomodel.algorithms._shipped import ShippedAlgorithm, declared_in, listed
from iomodel.counting import store
from iomodel.counting.bounds import _compulsory, counts_of
from iomodel.counting.compiled_algorithm import tally
from iomodel.counting.evaluation.codegen import source
from iomodel.counting.evaluation.compiled import Compiled
from iomodel.counting.expressions import declared
from iomodel.counting.kinds import FormulaKind
from iomodel.counting.mask_kind import CAUSAL, FULL, MaskKind
from iomodel.counting.options import check_options, structural
from iomodel.counting.requirements import requirements
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.execution import PIPELINED
from iomodel.placement.placement import residency_formulas
from iomodel.solving.parts import parts_for
from iomodel.timing.work_at_point import demands

ROOT = Path(iomodel.algorithms.__path__[0]).parent
COMMAND = "python -m tests.support.shipped_formulas"
BOUNDS = "_bounds"
PLANNED: dict[str, dict[str, Any]] = {"flash3": {"lse": False}, "split_kv": {}, "flash2": {"lse": False}}
"""Options of the kernels that plans run, which ship for a forward pass with more features."""
DIGESTS = Path(__file__).with_name("shipped_digests.json")
"""Check sums of the declarations that the modules were made from."""
MASKS = {
    "full": FULL,
    "causal": CAUSAL,
    "window": MaskKind(left=True, right=True),
}
FEATURES: dict[str, tuple[tuple[str, ...], ...]] = {
    "full": ((), ("latent", "sinks"), ("latent", "kv_dtype", "sinks")),
    "causal": (
        (),
        ("kv_dtype",),
        ("latent",),
        ("latent", "kv_dtype"),
        ("sinks",),
        ("kv_dtype", "sinks"),
        ("softcap",),
        ("kv_dtype", "softcap"),
    ),
    "window": ((), ("kv_dtype",), ("sinks",), ("kv_dtype", "sinks"), ("softcap",), ("kv_dtype", "softcap")),
}
"""Features of the attention of shipped models by mask: latents, sinks, capped scores, a cache in another dtype."""


def declarations() -> dict[str, Algorithm]:
    """The algorithms as their modules declare them, by name."""
    return {found.name: found for module in modules() for found in declared_in(module)}


def modules() -> list[str]:
    """The modules that declare algorithms."""
    return sorted(info.name for info in iter_modules(iomodel.algorithms.__path__) if not info.name.startswith("_"))


def entries_of() -> dict[str, dict[str, Any]]:
    """The entries of the catalogue."""
    return {found.name: listed(module, found) for module in modules() for found in declared_in(module)}


def ordered(value: Any) -> str:
    """A literal of a value; the members of sets have an order, so that a run changes nothing but what differs."""
    if isinstance(value, frozenset):
        return f"frozenset({{{', '.join(sorted(map(ordered, value)))}}})" if value else "frozenset()"
    if isinstance(value, tuple):
        return f"({', '.join(map(ordered, value))}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{ordered(name)}: {ordered(part)}' for name, part in value.items())}}}"
    return repr(value)


def catalogue() -> str:
    """The module with what is known of each algorithm without its declaration."""
    entries = entries_of()
    return (
        f'"""Every algorithm without its nests and formulas; written by `{COMMAND}`."""\n\n'
        f"from typing import Any\n\nCATALOGUE: dict[str, dict[str, Any]] = {ordered(entries)}\n"
    )


def kinds(found: Algorithm) -> Iterator[tuple[FormulaKind, bool, bool]]:
    """The kinds of formula that ship for an algorithm, with rows packed or not, with tiles or not."""
    if found.answers != "attention":
        for features in chain.from_iterable(combinations(found.features, n) for n in range(len(found.features) + 1)):
            if len({*features} & {*found.exclusive}) <= 1:
                for direction in found.directions[:2]:
                    kind = FormulaKind(direction=direction, features=features, operation=found.answers)
                    yield kind, False, False
        return
    for direction in found.directions:
        for name, mask in MASKS.items():
            if not found.masks or name in found.masks:
                for packed in (False,) if found.approximates else (False, True):
                    for tiled in (False, True) if found.tiled_by else (False,):
                        yield FormulaKind(mask, direction), packed, tiled


def planned(found: Algorithm, only: str = "") -> Iterator[tuple[FormulaKind, tuple[tuple[str, Any], ...]]]:
    """The kinds of formula that plans need beyond the usual ones, with the options of their kernels."""
    for mask, sets in FEATURES.items() if found.name in PLANNED else ():
        for features in sets:
            for packed in (False, True):
                if not only or (only == mask and not packed):
                    given = {"packed": True} if packed else {}
                    options = check_options(found, PLANNED[found.name] | given, True, "forward")
                    yield FormulaKind(MASKS[mask], "forward", features), structural(options)


def digests(module: str) -> dict[str, int]:
    """A check sum of the nest of every kind that ships, and of what is declared beside nests."""
    found = declarations()[module]
    beside = (found.implementations, found.execution, found.requires)
    sums = {"": zlib.crc32(repr(beside).encode())}
    for kind, packed, tiled in kinds(found):
        options = dict(structural(check_options(found, {}, tiled, kind.direction)))
        if not packed:
            nest = repr(declared(found, kind, options))
            sums[store.text_of((kind, tiled))] = zlib.crc32(nest.encode())
    for kind, options in planned(found):
        sums[store.text_of((kind, options))] = zlib.crc32(repr(declared(found, kind, dict(options))).encode())
    return sums


BUILDERS: tuple[Any, ...] = (tally, residency_formulas, parts_for, demands, counts_of, _compulsory)
"""Functions that keep the records that they built."""


def recorded(module: str, only: str = "") -> dict[str, Any]:
    """Build what ships in a module: all of it, or the records of one mask without packed rows."""
    store.recorded = {}
    try:
        if module == BOUNDS:
            for mask in MASKS.values():
                for direction in ("forward", "backward", "both"):
                    counts_of.__wrapped__(mask, direction, False)
                counts_of.__wrapped__(mask, "forward", True)
        else:
            _build(ShippedAlgorithm(entries_of()[module]), only)
        return {key: value for (_, key), value in store.recorded.items()}
    finally:
        store.recorded = None
        for cached in BUILDERS:  # what was built with sympy is not what ships
            cached.cache_clear()


def _build(found: Algorithm, only: str) -> None:
    requirements(found)
    for kind, packed, tiled in kinds(found):
        if only and (packed or kind.mask != MASKS[only]):
            continue
        given: dict[str, Any] = {"packed": True} if packed else {}
        _record(found, kind, structural(check_options(found, given, tiled, kind.direction)))
    for kind, options in planned(found, only):
        _record(found, kind, options)


def _record(found: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...]) -> None:
    counted = tally.__wrapped__(found, kind, options)
    demands.__wrapped__(found, kind, options, found.execution.get(kind.direction, PIPELINED))
    if found.answers != "attention":
        _compulsory.__wrapped__(found, kind)
    if counted.tiles:
        for unit in ("B", "elements"):
            parts_for.__wrapped__(found, kind, options, counted.numbers, unit)
        for residency in () if kind.features else found.residency.get(kind.direction, ()):
            residency_formulas.__wrapped__(found, kind, tuple(sorted(options)), residency)


def written(module: str, records: dict[str, Any]) -> str:
    """The source of a module with these records."""
    functions: dict[str, str] = {}

    def literal(value: Any) -> str:
        if isinstance(value, Compiled):
            text = source(value.formulas, value.inputs).removeprefix("def formulas")
            name = functions.setdefault(text, f"f{len(functions)}")
            return f'("#", {name}, {value.outputs})'
        if is_dataclass(value):
            given = [(part, getattr(value, part.name)) for part in fields(value)]
            while given and given[-1][0].default == given[-1][1]:  # a field that most records leave out
                given.pop()
            parts = [repr(f"!{type(value).__name__}"), *(literal(part) for _, part in given)]
            return f"({', '.join(parts)})"
        if isinstance(value, tuple):
            return f"({''.join(literal(part) + ', ' for part in value)})"
        assert value is None or isinstance(value, str | int), value
        return repr(value)

    rows = [f"    {key!r}: {literal(value)},\n" for key, value in records.items()]
    body = "".join(f"def {name}{text}\n" for text, name in functions.items())
    title = "lower bounds" if module == BOUNDS else module
    return f'"""Compiled formulas of {title}; written by `{COMMAND}`."""\n{body}RECORDS = {{\n{"".join(rows)}}}\n'


def main(names: list[str]) -> None:
    (ROOT / "algorithms" / "_catalogue.py").write_text(catalogue(), encoding="utf-8")
    sums = json.loads(DIGESTS.read_text(encoding="utf-8")) if DIGESTS.exists() else {}
    sums |= {name: digests(name) for name in names or declarations() if name != BOUNDS}
    DIGESTS.write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")
    for name in names or [*declarations(), BOUNDS]:
        path = ROOT / "counting" / "shipped" / f"{name}.py"
        path.write_text(written(name, recorded(name)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
