"""Options of an algorithm: their checks, and the selection of those that shape a formula."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from iomodel.algorithms import AlgorithmLike
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.validation import as_integer
from iomodel.errors import InputError, UnknownKeywordError, UnknownNameError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import OPTIONS, TILE_NAMES
from iomodel.nests.feature_names import APART, AS_WRITTEN, WORDS, default_of


def check_options(
    declaration: Algorithm,
    options: Mapping[str, Any],
    tiled: bool = False,
    direction: str = "forward",
    features: Collection[str] = (),
) -> dict[str, Any]:
    """Check the options of an algorithm and fill in the defaults; errors name the option.

    `features` are those of the call, which may set options that are not given.
    """
    allowed, whole = {**declaration.takes(direction), **declaration.common}, {}
    if direction == "both":
        allowed |= declaration.saved
    written = declaration.written(direction)
    for name, value in options.items():
        if name in written or name in AS_WRITTEN:
            _check_written(declaration, name, value, written)
            continue
        if name not in allowed:
            tiles = QUERY_TILES if declaration.answers == "attention" else TILE_NAMES
            likely = [*allowed, *written, *tiles]
            raise UnknownKeywordError(f"option of {declaration.name}", name, [*allowed, *written], likely)
        if name in NUMBERS:
            whole[name] = as_integer(name, value)
        elif type(value) is not type(allowed[name]):
            raise InputError(f"{name}: {shown(value)} given; allowed: {type(allowed[name]).__name__}")
    chosen = {
        name: value
        for name, value in {**allowed, **options, **whole}.items()
        if name in allowed or value != default_of(name)
    }
    chosen |= {
        name: True for feature, name in declaration.implied.items() if feature in features and name not in options
    }
    for name, others in APART.items():
        if clash := [other for other in others if name in chosen and other in chosen]:
            raise InputError(f"{name}: {chosen[name]!r} given with {clash[0]}; allowed: {default_of(name)!r}")
    if declaration.approximates and chosen.get("packed"):
        raise InputError(f"packed: True given; allowed: False, because {declaration.name} has no packed rows")
    if direction == "both":
        for name, needed in declaration.saved.items():
            if options.get(name, needed) != needed:
                raise InputError(
                    f"{name}: {options[name]} given; allowed: {needed}, because the backward pass needs it"
                )
    if tiled and declaration.tiled_by:
        if options.get(declaration.tiled_by) is False:
            raise InputError(
                f"{declaration.tiled_by}: False given; allowed: True, because {declaration.name} has tiles here"
            )
        chosen[declaration.tiled_by] = True
    return chosen


def _check_written(declaration: Algorithm, name: str, value: Any, written: Collection[str]) -> None:
    if name in WORDS and (not isinstance(value, str) or value not in WORDS[name]):
        raise UnknownNameError(name, value, WORDS[name])
    if name not in WORDS and not isinstance(value, bool):
        raise InputError(f"{name}: {shown(value)} given; allowed: bool")
    if value != default_of(name) and name not in written:
        raise InputError(
            f"{name}: {value!r} given; allowed: {default_of(name)!r}, because {declaration.name} {AS_WRITTEN[name]}"
        )


def only_taken(declaration: Algorithm, direction: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Select the options that an algorithm takes in a direction."""
    known = {**declaration.takes(direction), **declaration.common, **dict.fromkeys(declaration.written(direction))}
    taken = {name: value for name, value in options.items() if name in known}
    return {**taken, "packed": False} if declaration.approximates and "packed" in taken else taken


def in_pass(declaration: Algorithm, direction: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Select the options of a pass of a call in both directions, whose backward pass packs no rows."""
    taken = only_taken(declaration, direction, options)
    return {**taken, **dict.fromkeys(declaration.common, False)} if direction == "backward" else taken


def known_options(algorithms: Iterable[AlgorithmLike], direction: str | None = None) -> dict[str, Any]:
    """Collect the options of all given algorithms with their defaults, in one direction or in any."""
    known: dict[str, Any] = {}
    common: dict[str, Any] = {}
    written: dict[str, bool | str] = {}
    for name in algorithms:
        declaration = find_algorithm(name)
        known = {**(declaration.options if direction is None else declaration.takes(direction)), **known}
        common |= declaration.common
        written |= {name: default_of(name) for name in _written_names(declaration, direction)}
    return {**known, **common, **dict(sorted(written.items()))}


def _written_names(declaration: Algorithm, direction: str | None) -> Iterable[str]:
    directions = [each for each in declaration.directions if each != "both"] if direction is None else [direction]
    return (name for each in directions for name in declaration.written(each))


QUERY_TILES = ("block_q", "block_kv")
"""Tiles of attention, which a tile of another name may mean."""
NUMBERS = frozenset(entry.name for entry in OPTIONS)
"""Numeric options, which enter a formula as symbols."""


def structural(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the options that shape a formula, sorted by name."""
    return tuple(sorted((name, value) for name, value in options.items() if name not in NUMBERS))
