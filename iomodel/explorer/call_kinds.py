"""Kinds of calls supported by the page, with their formulas and the inputs of the solver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

from sympy import Add, Expr, Integer

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counting import folds as counts
from iomodel.counting.bands import Count
from iomodel.counting.coverage import View
from iomodel.counting.expressions import Expressions, declared, formulas
from iomodel.counting.folds import in_bytes
from iomodel.counting.kinds import FormulaKind, check_kind
from iomodel.counting.mask_kind import CAUSAL, FULL, MaskKind
from iomodel.counting.options import check_options, structural
from iomodel.counting.quantities import IN_FORMULAS, QUANTITIES
from iomodel.counting.structure import Part, parts
from iomodel.errors import InputError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import NUMBERS
from iomodel.nests.language import Idle, Kernel, Live, Loop, Nest, walk
from iomodel.nests.rules import DeclarationError
from iomodel.nests.symbols import NAME_OF

MASKS: dict[str, MaskKind] = {
    "full": FULL,
    "causal": CAUSAL,
    **{
        f"window {sides} {align}": MaskKind("left" in sides, "right" in sides, top_left=align == "top-left")
        for sides, align in product(("left", "right", "left+right"), ("bottom-right", "top-left"))
    },
}
"""Kinds of mask with formulas independent of data, keyed by their names on the page."""

SHOWN = {IN_FORMULAS.get(name, name): entry for name, entry in QUANTITIES.items() if entry.listed != "never"}
"""The quantities of the page, by their names in formulas."""


@dataclass(frozen=True)
class CallKind:
    """One kind of call: an algorithm with its switches, a direction, a mask, packed or not."""

    algorithm: str
    direction: str
    mask: str
    packed: bool
    switches: tuple[tuple[str, bool], ...]

    @property
    def place(self) -> str:
        """Key of the call kind on the page."""
        on = "".join(str(int(value)) for _, value in self.switches)
        return "|".join((self.algorithm, self.direction, self.mask, str(int(self.packed)), on))

    @property
    def nest_place(self) -> str:
        """Key of its nest on the page, independent of mask and packing."""
        on = "".join(str(int(value)) for _, value in self.switches)
        return "|".join((self.algorithm, self.direction, on))


def switches_of(algorithm: Algorithm, direction: str) -> dict[str, tuple[bool, ...]]:
    """List the boolean options of a direction with their allowed values."""
    saved = algorithm.saved if direction == "both" else {}
    booleans = {name: value for name, value in algorithm.takes(direction).items() if isinstance(value, bool)}
    return {name: (saved[name],) if name in saved else (False, True) for name in booleans}


def kinds(algorithms: Sequence[str]) -> Iterator[CallKind]:
    """Iterate over every kind of call of some algorithms, supported or not."""
    for name in algorithms:
        declared_algorithm = find_algorithm(name)
        for direction in declared_algorithm.directions:
            allowed = switches_of(declared_algorithm, direction)
            packing = (False, True) if "packed" in declared_algorithm.common else (False,)
            for mask, packed, values in product(MASKS, packing, product(*allowed.values())):
                yield CallKind(name, direction, mask, packed, tuple(zip(allowed, values, strict=True)))


@dataclass(frozen=True)
class Answer:
    """The formulas and tile pairs of one kind of call."""

    expressions: Expressions
    nest: Nest
    parts: tuple[TilePair, ...]
    rest: Expr
    refused: str = ""
    """Reason for which no tiles can be solved for; empty if they can."""


@lru_cache(maxsize=256)
def _unmasked(algorithm: str, direction: str, options: tuple[tuple[str, Any], ...]) -> Nest:
    """Return the nest of a call without a mask, once for all masks."""
    return declared(find_algorithm(algorithm), FormulaKind(MASKS["full"], direction), dict(options))


@dataclass(frozen=True)
class TilePair:
    """A pair of tiles that the solver chooses together, from :mod:`iomodel.solving.parts`."""

    outer: str
    inner: str
    outer_rows: Expr
    inner_rows: Expr
    prefer_inner: bool
    masked: bool
    provable: bool
    irregular: bool
    traffic: Expr
    footprint: Expr
    base: Expr
    strict: Expr


def _sees_mask(nest: Nest) -> bool:
    """Check that a count of the nest depends on the mask."""
    return any(
        isinstance(block, Live | Idle) or (isinstance(block, Loop) and block.masked)
        for _, path in walk(nest)
        for block in path
    )


@lru_cache(maxsize=4096)
def answer(kind: CallKind) -> Answer:
    """Compute the formulas of a kind of call; raise InputError if it is unsupported or depends on data."""
    declared_algorithm = find_algorithm(kind.algorithm)
    key = FormulaKind(MASKS[kind.mask], kind.direction)
    check_kind(declared_algorithm, key)
    chosen = {**dict(kind.switches), **({"packed": True} if kind.packed else {})}
    options = check_options(declared_algorithm, chosen, direction=kind.direction)
    nest, view = declared(declared_algorithm, key, options), View(key.mask, kind.packed)
    alike = not _sees_mask(nest) and nest == _unmasked(kind.algorithm, kind.direction, tuple(sorted(options.items())))
    if kind.mask != "full" and not declared_algorithm.approximates and alike:
        unmasked = answer(replace(kind, mask="full"))
        useful = counts.useful_flops(nest, view)
        return replace(unmasked, expressions=replace(unmasked.expressions, useful_flops=useful))
    expressions = formulas(declared_algorithm, key, structural(options))
    if any(expr.has(Count) for expr in (*expressions.reads.values(), *expressions.writes.values(), expressions.flops)):
        raise InputError(f"mask: {kind.mask} given; allowed with {kind.algorithm}: a mask whose counts have formulas")
    try:
        pairs, fixed = parts(nest, key.mask, kind.packed) if expressions.tiles else ([], nest)
    except DeclarationError as error:
        return Answer(expressions, nest, (), Integer(0), str(error))
    rest = _footprint(fixed, view) if fixed else Integer(0)
    return Answer(expressions, nest, tuple(_part(part, view) for part in pairs), rest)


def _part(part: Part, view: View) -> TilePair:
    outer, inner, view = part.axes[part.outer], part.axes[part.inner], view.of(part.nest)
    fixed, streamed = ("fixed", "area"), ("fixed", "once a tile", "streamed", "area")
    return TilePair(
        NAME_OF[part.outer],
        NAME_OF[part.inner],
        view.rows(outer),
        view.rows(inner),
        part.prefers_inner,
        part.masked,
        part.provable,
        part.irregular,
        _traffic(part.nest, view),
        _footprint(part.nest, view),
        _traffic(part.only(*fixed), view) if part.masked else Integer(0),  # type: ignore[arg-type]
        _traffic(part.only(*streamed), view) if part.masked else Integer(0),  # type: ignore[arg-type]
    )


def _traffic(nest: Nest, view: View) -> Expr:
    """Compute the traffic of a nest [B], cached per kernel because nests share kernels."""
    return Add(*(_kernel_traffic(kernel, view) for kernel in nest))


@lru_cache(maxsize=4096)
def _kernel_traffic(kernel: Kernel, view: View) -> Expr:
    return counts.hbm_bytes((kernel,), view)


@lru_cache(maxsize=4096)
def _footprint(nest: Nest, view: View) -> Expr:
    return counts.footprint(nest, view, in_bytes)


def numbers_of(algorithm: Algorithm, direction: str) -> dict[str, int]:
    """List the integer options of a direction with their defaults."""
    return {name: value for name, value in algorithm.takes(direction).items() if name in NUMBERS}
