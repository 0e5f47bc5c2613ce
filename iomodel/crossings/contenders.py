"""Who is compared: algorithms with options and tiles of their own, each under a label."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.cost import tile_sizes
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.expressions import Expressions, check_kind, check_options, formulas, kind_of, only_taken, structural
from iomodel.frozen import FrozenDict
from iomodel.nest import Algorithm
from iomodel.symbols import LAUNCH_NAMES, TILES
from iomodel.validation import as_integer, as_mapping
from iomodel.workload import Attention

TILE_NAMES = frozenset(entry.name for entry in TILES)
MOST = 16
"""How many contenders there may be: a table of all pairs of more would be read by nobody."""
_SETTING = re.compile(r"(no-)?([a-z0-9_-]+?)(?:=(\d{1,18}))?", re.ASCII)


@dataclass(frozen=True)
class Contender:
    """An algorithm under its options, at tiles that are fixed or, without any, at those that are best."""

    label: str
    algorithm: str
    options: Mapping[str, Any]
    tiles: Mapping[str, int]
    launch: Mapping[str, int]
    formulas: Expressions

    @property
    def found(self) -> Algorithm:
        """Its declaration."""
        return find_algorithm(self.algorithm)

    @property
    def untiled(self) -> bool:
        """Whether it has no tiles in this form."""
        return not self.formulas.tiles

    def to_dict(self) -> dict[str, Any]:
        """What it is, as plain data."""
        return {
            "label": self.label,
            "algorithm": self.algorithm,
            "options": dict(self.options),
            "tiles": {**self.tiles, **self.launch} or None,
            "approximates": self.found.approximates,
        }


def typed(given: object) -> tuple[str, dict[str, Any]]:
    """The name of an algorithm and what was said of it: ``"split_kv:splits=4,no-lse"``, or a pair.

    >>> typed("split_kv:splits=4,no-lse")
    ('split_kv', {'splits': 4, 'lse': False})
    >>> typed(("flash2", {"block_q": 128}))
    ('flash2', {'block_q': 128})
    """
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        return given[0], {str(key): value for key, value in as_mapping("algorithms", given[1], "{'splits': 4}").items()}
    if not isinstance(given, str):
        raise InputError(f"algorithms: {shown(given)} given; allowed: a name, as 'flash2' or 'split_kv:splits=4'")
    name, colon, rest = given.partition(":")
    settings: dict[str, Any] = {}
    for part in rest.split(",") if colon else ():
        match = _SETTING.fullmatch(part.strip())
        if match is None or (match[1] and match[3]):
            raise InputError(f"algorithms: {shown(given)} given; allowed: as 'split_kv:splits=4,no-lse,block-q=128'")
        key = match[2].replace("-", "_")
        if key in settings:
            raise InputError(f"algorithms: {shown(given)} gives {key} twice; allowed: each option once")
        settings[key] = int(match[3]) if match[3] else not match[1]
    return name.strip(), settings


def contenders(
    given: Sequence[object],
    workload: Attention,
    tiles: Mapping[str, int],
    options: Mapping[str, Any],
    launched: bool = False,
    twice: bool = False,
) -> tuple[Contender, ...]:
    """Everybody with what of the common tiles and options they know; `launched` where warps and stages matter."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not 2 <= len(given) <= MOST:
        number = len(given) if isinstance(given, Sequence) and not isinstance(given, str) else shown(given)
        raise InputError(f"algorithms: {number} given; allowed: from 2 to {MOST} of iomodel.list_algorithms()")
    asked = [typed(one) for one in given]
    common = {str(name): as_integer(str(name), size) for name, size in tiles.items()}
    known: set[str] = set()
    found = [_contender(name, own, workload, common, options, launched, known) for name, own in asked]
    names = " and ".join(dict.fromkeys(name for name, _ in asked))
    for name in {**common, **options}:
        if name not in known:
            raise UnknownNameError(f"tile or option of {names}", name, sorted(known))
    if not twice:
        _check_apart(found)
    return tuple(found)


def _contender(
    name: str,
    own: Mapping[str, Any],
    workload: Attention,
    common: Mapping[str, int],
    options: Mapping[str, Any],
    launched: bool,
    known: set[str],
) -> Contender:
    found, kind = find_algorithm(name), kind_of(workload)
    check_kind(found, kind)
    switched = {key: value for key, value in own.items() if key not in TILE_NAMES | LAUNCH_NAMES}
    chosen = {**only_taken(found, kind.direction, options), **switched}
    sizes = {**common, **{key: as_integer(key, size) for key, size in own.items() if key in TILE_NAMES | LAUNCH_NAMES}}
    formula = formulas(found.name, kind, structural(check_options(found, chosen, direction=kind.direction)))
    if found.tiled_by and chosen.get(found.tiled_by) is not False:
        tiled = formulas(found.name, kind, structural(check_options(found, chosen, True, kind.direction)))
        known |= set(tiled.tiles)
        if sizes.keys() & set(tiled.tiles):
            formula, chosen = tiled, {**chosen, found.tiled_by: True}
    launch = {key: sizes[key] for key in LAUNCH_NAMES & sizes.keys()} if launched else {}
    for key in own:
        if key not in {*formula.tiles, *LAUNCH_NAMES, *switched}:
            raise UnknownNameError(f"tile of {name}", key, formula.tiles)
    known |= {*found.takes(kind.direction), *found.common, *formula.tiles, *(LAUNCH_NAMES if launched else ())}
    mine = {key: sizes[key] for key in formula.tiles if key in sizes}
    if mine:
        mine = tile_sizes(name, formula.tiles, mine)
    label = f"{name}:{','.join(_written(own))}" if own else name
    return Contender(label, name, FrozenDict(chosen), FrozenDict(mine), FrozenDict(launch if mine else {}), formula)


def _written(settings: Mapping[str, Any]) -> Iterable[str]:
    """Settings as one types them."""
    for name, value in settings.items():
        dashed = name.replace("_", "-")
        yield {True: dashed, False: f"no-{dashed}"}[value] if isinstance(value, bool) else f"{dashed}={value}"


def _check_apart(found: Sequence[Contender]) -> None:
    for i, one in enumerate(found):
        complete = check_options(one.found, one.options, direction=one.formulas.direction)
        for other in found[:i]:
            same = (other.algorithm, other.tiles, other.launch) == (one.algorithm, one.tiles, one.launch)
            if same and complete == check_options(one.found, other.options, direction=one.formulas.direction):
                raise InputError(
                    f"algorithms: {one.algorithm} given twice with the same options; allowed: each once, or with "
                    "options or tiles of its own, such as 'flash2:block-q=64,block-kv=64'"
                )
