"""Algorithms: declarations, options, sources and requirements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from inspect import signature
from itertools import product
from typing import TYPE_CHECKING, Any

from iomodel.nests.alphabet import Entry
from iomodel.nests.implementation import Implementation

if TYPE_CHECKING:
    from sympy import Expr, Symbol

    from iomodel.nests.language import Nest
    from iomodel.nests.residency import Residency


@dataclass(frozen=True)
class Published:
    """A closed form from a paper, transcribed by hand: total HBM elements of one head, mask "full"."""

    elements: Expr
    cite: str
    options: Mapping[str, Any] = field(default_factory=dict)
    direction: str = "forward"


@dataclass(frozen=True)
class Requirement:
    """A condition on the numbers of a call, including options and tiles: `holds` must not be negative.

    The error names `field` and states what is `allowed`, a text with the names of numbers in braces; `most`, if given,
    is the largest value of the field. The condition applies if the mask and the switches are as in `given`.
    """

    field: str
    holds: Expr
    allowed: str
    most: Expr | None = None
    given: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def at_most(cls, symbol: Symbol, field: str, most: Expr, allowed: str, **given: Any) -> Requirement:
        """Require an option to be at most `most`."""
        return cls(field, most - symbol, allowed, most, tuple(given.items()))

    @classmethod
    def same(cls, field: str, left: Expr, right: Expr, allowed: str, **given: Any) -> Requirement:
        """Require two numbers to be equal."""
        from sympy import Min

        return cls(field, Min(left - right, right - left), allowed, given=tuple(given.items()))

    @classmethod
    def multiple(cls, field: str, number: Expr, of: Expr, allowed: str, **given: Any) -> Requirement:
        """Require a number to be a multiple of another."""
        from sympy import floor

        return cls(field, of * floor(number / of) - number, allowed, given=tuple(given.items()))


@dataclass(frozen=True, eq=False)
class Algorithm:
    """A named algorithm: declarations of its nests, sources, and applicable bounds.

    `declare` and `backward` take the options that they name by keyword, and return the nest of a direction; None if the
    algorithm does not have this direction. The keyword `causal` is True for the causal mask, `masked` for any but a
    full mask. `saved` are the options that the forward pass needs before a backward pass, `implied` the switches that a
    feature of the call sets unless they are given. `classes` names the classes
    of its nests in :mod:`iomodel.counting.bounds`. `without` names the features of a call
    (:mod:`iomodel.nests.features`) that a direction does not support. `tiled_by` names the option that is switched on
    by giving tiles, for an algorithm that also has a form without tiles; one that is `untiled` has no other. `requires`
    lists the conditions on its numbers.

    `as_written` names the switches of `declare` and `backward` that count what the source of a kernel does instead of
    the algorithm's own steps; they are off by default, and absent from results unless on. Those of any nest
    (:mod:`iomodel.nests.as_written`) need no mention.

    `answers` is the kind of workload that it computes: a name in :data:`iomodel.nests.symbols.SHAPES`. `features` names
    the switches of `declare` set by the call, in a linear layer (`gated`); the features of an attention call apply to
    any nest. `exclusive` names the features of which a call has at most one.

    `implementations` are the kernels of libraries that run it, in the order in which a device takes the first that it
    can run; `execution` is the overlap of resources per direction, for an implementation that declares none. `searched`
    are the numbers among the options that the default tiles go with where no implementation runs, each with its
    candidates.

    `approximates` describes the approximation of attention that an algorithm computes; empty for an exact algorithm.
    An approximation supports the features of a call that its `features` name, no packed rows, one sequence length per
    call, and only its `masks`.

    `preference` ranks the algorithms that are tried where none is named, the lowest first; the last of them answers the
    most devices and calls. None is for an algorithm that is taken by name alone. `triton_kernels` has the kinds of
    Triton kernel (:mod:`iomodel.triton`) that its counts describe, each with the titles of the kernels of its nest that
    one launch runs; none for all. `replaces` has the chains of operators of PyTorch that its launches stand for, in the
    words of :mod:`iomodel.torch.program_fusion`, or one operator.

    `paper_share` states the rule of its paper for tiles, if there is one: in a memory of M elements, key tiles of
    M / (paper_share d) rows, rounded up, and query tiles of as many rows, at most d.

    `symbols` are its additions to the alphabet, made by :func:`iomodel.nests.symbol`: those named in `options` are
    numbers, the others are tiles.
    """

    name: str
    title: str
    cite: str
    declare: Any = None
    backward: Any = None
    answers: str = "attention"
    features: tuple[str, ...] = ()
    exclusive: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    saved: Mapping[str, Any] = field(default_factory=dict)
    implied: Mapping[str, str] = field(default_factory=dict)
    classes: frozenset[str] = frozenset()
    without: Mapping[str, frozenset[str]] = field(default_factory=dict)
    tiled_by: str | None = None
    published: tuple[Published, ...] = ()
    implementations: tuple[Implementation, ...] = ()
    execution: Mapping[str, Any] = field(default_factory=dict)
    searched: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    requires: tuple[Requirement, ...] = ()
    approximates: str = ""
    masks: tuple[str, ...] = ()
    symbols: tuple[Entry, ...] = ()
    as_written: tuple[str, ...] = ()
    preference: int | None = None
    triton_kernels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paper_share: int | None = None
    replaces: tuple[str, ...] = ()
    untiled: bool = False

    def __post_init__(self) -> None:
        self._adopt_symbols()

    def __str__(self) -> str:
        return self.name

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}  # without derived values

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._adopt_symbols()

    def _adopt_symbols(self) -> None:
        if self.symbols:
            from iomodel.nests.own_symbols import adopt

            adopt(self.symbols, self.options)

    @property
    def shipped(self) -> str | None:
        """The module of an algorithm of this package; None for any other."""
        return None

    @property
    def sources(self) -> list[str]:
        """The modules that the formulas of an algorithm of this package follow from; none for any other."""
        return []

    @cached_property
    def residency(self) -> Mapping[str, tuple[Residency, ...]]:
        """The layouts of all implementations, by direction."""
        layouts: dict[str, tuple[Residency, ...]] = {}
        for implementation in self.implementations:
            for direction, own in implementation.residency.items():
                known = layouts.get(direction, ())
                layouts[direction] = (*known, *(layout for layout in own if layout not in known))
        return layouts

    @property
    def directions(self) -> tuple[str, ...]:
        """Supported directions."""
        names = [name for name, declare in (("forward", self.declare), ("backward", self.backward)) if declare]
        return (*names, "both") if len(names) == 2 else tuple(names)

    def takes(self, direction: str = "forward") -> dict[str, Any]:
        """Return the options of a direction with their defaults."""
        return self._taken[direction]

    def written(self, direction: str = "forward") -> tuple[str, ...]:
        """Return the names of the options as written that have a meaning in a direction."""
        return self._written[direction]

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """Cache of values derived from the declaration and a kind of workload."""
        return {}

    @cached_property
    def _taken(self) -> dict[str, dict[str, Any]]:
        options: dict[str, dict[str, Any]] = {}
        for direction in self.directions:
            declares = {"forward": [self.declare], "backward": [self.backward]}.get(
                direction, [self.declare, self.backward]
            )
            named = {name for declare in declares for name in signature(declare).parameters}
            if len(self.directions) == 1:
                named = set(self.options)  # a number need not be named; it is a symbol in the nest
            options[direction] = {name: default for name, default in self.options.items() if name in named}
        return options

    @cached_property
    def _written(self) -> dict[str, tuple[str, ...]]:
        names: dict[str, tuple[str, ...]] = {}
        for direction in self.directions:
            passes = ("forward", "backward") if direction == "both" else (direction,)
            names[direction] = tuple(dict.fromkeys(name for each in passes for name in self._written_in(each)))
        return names

    def _written_in(self, direction: str) -> Iterator[str]:
        declare = self.declare if direction == "forward" else self.backward
        yield from (name for name in self.as_written if name in signature(declare).parameters)
        if self.answers != "attention" or self.approximates:
            return
        from iomodel.nests.as_written import CHANGES, changes_anything
        from iomodel.nests.features import dressed
        from iomodel.nests.symbols import BY_NAME

        taken = self.takes(direction)
        switches = [name for name, default in taken.items() if isinstance(default, bool)]
        others = {name: BY_NAME.get(name, default) for name, default in taken.items() if name not in switches}
        biased = () if "bias" in self.without.get(direction, ()) else ("bias",)
        nests = [
            dressed(self.nest(direction, **others, **dict(zip(switches, on, strict=True))), biased)
            for on in product((False, True), repeat=len(switches))
        ]
        yield from (name for name in CHANGES if any(changes_anything(nest, name) for nest in nests))

    @property
    def common(self) -> dict[str, Any]:
        """Options common to all algorithms of attention, which change the reading of packed rows."""
        return {"packed": False} if self.answers == "attention" else {}

    def nest(
        self, direction: str = "forward", causal: bool = False, masked: bool | None = None, **options: Any
    ) -> Nest:
        """Declare the forward or backward pass under these options, and check it."""
        from iomodel.nests.rules import check, check_symbols

        declare = self.declare if direction == "forward" else self.backward
        chosen = {**self.options, **dict.fromkeys(self.as_written, False), **options, "causal": causal}
        chosen["masked"] = causal if masked is None else masked
        nest: Nest = tuple(declare(**{name: chosen[name] for name in signature(declare).parameters}))
        check(nest)
        check_symbols(nest)
        return nest


class DeclaredName(str):
    """The name of an algorithm that is not shipped, with the declaration behind it."""

    declaration: Algorithm

    def __new__(cls, declaration: Algorithm) -> DeclaredName:
        """Name a declaration."""
        name = super().__new__(cls, declaration.name)
        name.declaration = declaration
        return name

    def __reduce__(self) -> tuple[Any, ...]:
        return DeclaredName, (self.declaration,)


AlgorithmLike = str | Algorithm
"""The argument of a function of an algorithm: its name, or its declaration."""
