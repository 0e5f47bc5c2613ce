"""Every kind of call that the page answers: its formulas, and what the solver needs of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

from sympy import Add, Expr, Integer

from iomodel import counts
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.counts import in_bytes
from iomodel.coverage import View
from iomodel.errors import InputError
from iomodel.expressions import NUMBERS, Expressions, Kind, check_kind, check_options, declared, formulas, structural
from iomodel.masks import CAUSAL, FULL, Count, MaskKind
from iomodel.nest import Algorithm, DeclarationError, Idle, Kernel, Live, Loop, Nest, walk
from iomodel.structure import Part, parts
from iomodel.symbols import NAME_OF

MASKS: dict[str, MaskKind] = {
    "full": FULL,
    "causal": CAUSAL,
    **{
        f"window {sides} {align}": MaskKind("left" in sides, "right" in sides, top_left=align == "top-left")
        for sides, align in product(("left", "right", "left+right"), ("bottom-right", "top-left"))
    },
}
"""The kinds of mask that have formulas without data, by the name that the page gives them."""

QUANTITIES: dict[str, tuple[str, str]] = {
    "hbm_bytes": ("HBM traffic", "B"),
    "atomics": ("of which atomic adds", "elements"),
    "flops": ("FLOPs of the visited tiles", "FLOP"),
    "useful_flops": ("FLOPs of the visible pairs", "FLOP"),
    "exps": ("exponentials", "-"),
    "tanhs": ("hyperbolic tangents", "-"),
    "randoms": ("random numbers", "-"),
    "footprint": ("SRAM footprint", "elements"),
    "footprint_bytes": ("SRAM footprint", "B"),
    "peak_hbm_bytes": ("peak HBM allocation", "B"),
}
"""What is counted beside reads and writes: the field of Expressions, what it is called, its unit."""


@dataclass(frozen=True)
class CallKind:
    """One kind of call: an algorithm under its switches, a direction, a mask, packed or not."""

    algorithm: str
    direction: str
    mask: str
    packed: bool
    switches: tuple[tuple[str, bool], ...]

    @property
    def place(self) -> str:
        """Where the page looks it up."""
        on = "".join(str(int(value)) for _, value in self.switches)
        return "|".join((self.algorithm, self.direction, self.mask, str(int(self.packed)), on))

    @property
    def nest_place(self) -> str:
        """Where the page looks up its nest, which depends on neither mask nor packing."""
        on = "".join(str(int(value)) for _, value in self.switches)
        return "|".join((self.algorithm, self.direction, on))


def switches_of(found: Algorithm, direction: str) -> dict[str, tuple[bool, ...]]:
    """The options of a direction that are on or off, each with the values that it may have."""
    saved = found.saved if direction == "both" else {}
    taken = {name: value for name, value in found.takes(direction).items() if isinstance(value, bool)}
    return {name: (saved[name],) if name in saved else (False, True) for name in taken}


def kinds(algorithms: Sequence[str]) -> Iterator[CallKind]:
    """Every kind of call of some algorithms; whether they answer it is another matter."""
    for name in algorithms:
        found = find_algorithm(name)
        for direction in found.directions:
            allowed = switches_of(found, direction)
            packing = (False, True) if "packed" in found.common else (False,)
            for mask, packed, values in product(MASKS, packing, product(*allowed.values())):
                yield CallKind(name, direction, mask, packed, tuple(zip(allowed, values, strict=True)))


@dataclass(frozen=True)
class Answer:
    """What an algorithm answers to a kind of call."""

    found: Expressions
    nest: Nest
    parts: tuple[PartFormulas, ...]
    rest: Expr
    refused: str = ""
    """Why no tiles can be solved for, empty if they can."""


@dataclass(frozen=True)
class PartFormulas:
    """A pair of tiles that the solver chooses together, as :mod:`iomodel.question` has it."""

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
    """Whether any count of a nest depends on the mask."""
    return any(
        isinstance(block, Live | Idle) or (isinstance(block, Loop) and block.masked)
        for _, path in walk(nest)
        for block in path
    )


@lru_cache(maxsize=4096)
def answer(kind: CallKind) -> Answer:
    """The formulas of a kind of call, or InputError where the algorithm does not answer it or only data tell."""
    found = find_algorithm(kind.algorithm)
    key = Kind(MASKS[kind.mask], kind.direction)
    check_kind(found, key)
    chosen = {**dict(kind.switches), **({"packed": True} if kind.packed else {})}
    options = check_options(found, chosen, direction=kind.direction)
    nest, view = declared(found, key, options), View(key.mask, kind.packed)
    if kind.mask != "full" and not found.approximates and not _sees_mask(nest):
        unmasked = answer(replace(kind, mask="full"))
        useful = counts.useful_flops(nest, view)
        return replace(unmasked, found=replace(unmasked.found, useful_flops=useful))
    made = formulas(kind.algorithm, key, structural(options))
    if any(expr.has(Count) for expr in (*made.reads.values(), *made.writes.values(), made.flops)):
        raise InputError(f"mask: {kind.mask} given; allowed: one whose counts have formulas, with {kind.algorithm}")
    try:
        pairs, fixed = parts(nest, key.mask) if made.tiles else ([], nest)
    except DeclarationError as error:
        return Answer(made, nest, (), Integer(0), str(error))
    rest = _footprint(fixed, view) if fixed else Integer(0)
    return Answer(made, nest, tuple(_part(part, view) for part in pairs), rest)


def _part(part: Part, view: View) -> PartFormulas:
    outer, inner = part.axes[part.outer], part.axes[part.inner]
    fixed, streamed = ("fixed", "area"), ("fixed", "once a tile", "streamed", "area")
    return PartFormulas(
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
    """Traffic of a nest [B]; many nests share kernels."""
    return Add(*(_kernel_traffic(kernel, view) for kernel in nest))


@lru_cache(maxsize=4096)
def _kernel_traffic(kernel: Kernel, view: View) -> Expr:
    nest = (kernel,)
    sides: list[Mapping[Any, Expr]] = [counts.moves(nest, view, kinds) for kinds in (counts.READS, counts.WRITES)]
    return Add(*(in_bytes(tensor.dtype) * moved for side in sides for tensor, moved in side.items()))


@lru_cache(maxsize=4096)
def _footprint(nest: Nest, view: View) -> Expr:
    return counts.footprint(nest, view, in_bytes)


def numbers_of(found: Algorithm, direction: str) -> dict[str, int]:
    """The options of a direction that are numbers, with their defaults."""
    return {name: value for name, value in found.takes(direction).items() if name in NUMBERS}
