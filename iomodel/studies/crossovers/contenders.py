"""Axes and metrics of a crossover study, and the algorithms that it compares."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common import labels
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.results import Record
from iomodel.common.validation import as_choice, as_integer, as_mapping
from iomodel.counting.kinds import check_kind, kind_of
from iomodel.counting.options import check_options, only_taken, structural
from iomodel.counting.tiles import tile_sizes
from iomodel.errors import InputError, UnknownNameError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import LAUNCH_NAMES, TILE_NAMES
from iomodel.workloads.attention import Attention
from iomodel.workloads.masks.block_mask import BlockMask
from iomodel.workloads.masks.documents import Documents

if TYPE_CHECKING:
    from iomodel.counting.expressions import Expressions

MOST = 16
"""The most algorithms that one study compares."""
_SETTING = re.compile(r"(no-)?([a-z0-9_-]+?)(?:=(\d{1,18}))?", re.ASCII)


@dataclass(frozen=True)
class VariedAxis:
    """A quantity that a crossover study varies; `limit` is the default end of its range."""

    name: str
    fields: tuple[str, ...]
    letter: str
    unit: str
    limit: int
    meaning: str

    @property
    def memory(self) -> bool:
        """True if the axis is a budget of on-chip memory instead of a field of the call."""
        return not self.fields


AXES = {
    axis.name: axis
    for axis in (
        VariedAxis("length", ("q_len", "kv_len"), "N", "rows", 65536, "sequence length (queries = keys)"),
        VariedAxis("q_len", ("q_len",), "N_q", "rows", 65536, "queries per head"),
        VariedAxis("kv_len", ("kv_len",), "N_k", "rows", 65536, "keys per head"),
        VariedAxis("head_dim", ("head_dim", "value_dim"), "d", "elements", 1024, "head dimension"),
        VariedAxis("batch", ("batch",), "B", "-", 1024, "batch size"),
        VariedAxis("sram_elements", (), "M", "elements", 65536, "on-chip memory in elements"),
        VariedAxis("sram_bytes", (), "M", "B", 262144, "on-chip memory in bytes"),
    )
}
"""The axes by name."""


class Metric(NamedTuple):
    """A quantity that a crossover study compares."""

    quantity: str
    label: str
    unit: str
    verb: str


METRICS = {
    "bytes": Metric("hbm_bytes", labels.REQUESTS, "B", "moves"),
    "elements": Metric("hbm_elements", "HBM accesses", "elements", "moves"),
    "flops": Metric("flops", "matrix FLOPs", "FLOP", "computes"),
    "exps": Metric("exps", "exponentials", "-", "computes"),
    "time": Metric("seconds", "time", "s", "takes"),
}
"""The metrics by name."""


def axis_for(over: object, workload: Attention) -> VariedAxis:
    """Return the axis of a name; a value_dim that differs from head_dim stays fixed."""
    axis = AXES[as_choice("over", over, AXES)]
    if {"q_len", "kv_len"} & set(axis.fields) and isinstance(workload.mask, BlockMask | Documents):
        raise InputError(f"mask: {shown(workload.mask)} given; allowed with over={over!r}: full, causal or a Window")
    if over == "head_dim" and workload.value_dim != workload.head_dim:
        return replace(axis, fields=("head_dim",))
    return axis


@dataclass(frozen=True)
class Contender(Record):
    """One compared algorithm with its options and given tiles; without tiles, its best ones at every point."""

    label: str
    algorithm: str
    options: Mapping[str, Any]
    tiles: Mapping[str, int]

    @property
    def declaration(self) -> Algorithm:
        """The algorithm as declared."""
        return find_algorithm(self.algorithm)

    def formulas(self, workload: Attention) -> Expressions:
        """Return the counts of the algorithm for a kind of call."""
        return _formulas(self.declaration, workload, self.options)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        approximates = self.declaration.approximates
        return {**super().to_dict(), "tiles": dict(self.tiles) or None, "approximates": approximates}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Contender:
        """Rebuild the contender from its plain data; InputError if the data are refused."""
        return super().from_dict({**data, "tiles": data.get("tiles") or {}} if isinstance(data, Mapping) else data)


def _formulas(declaration: Algorithm, workload: Attention, options: Mapping[str, Any]) -> Expressions:
    from iomodel.counting.expressions import formulas  # with sympy

    kind = kind_of(workload)
    return formulas(declaration, kind, structural(check_options(declaration, options, direction=kind.direction)))


def parsed(entry: object) -> tuple[AlgorithmLike, dict[str, Any]]:
    """Return an algorithm and its settings, from ``"split_kv:splits=4,no-lse"`` or a pair.

    >>> parsed("split_kv:splits=4,no-lse")
    ('split_kv', {'splits': 4, 'lse': False})
    >>> parsed(("flash2", {"block_q": 128}))
    ('flash2', {'block_q': 128})
    """
    if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str | Algorithm):
        return entry[0], {str(key): value for key, value in as_mapping("algorithms", entry[1], "{'splits': 4}").items()}
    if isinstance(entry, Algorithm):
        return entry, {}
    if not isinstance(entry, str):
        raise InputError(
            f"algorithms: {shown(entry)} given; allowed: a name, as 'flash2' or 'split_kv:splits=4', or an Algorithm"
        )
    name, colon, rest = entry.partition(":")
    settings: dict[str, Any] = {}
    for part in rest.split(",") if colon else ():
        match = _SETTING.fullmatch(part.strip())
        if match is None or (match[1] and match[3]):
            raise InputError(f"algorithms: {shown(entry)} given; allowed: as 'split_kv:splits=4,no-lse,block-q=128'")
        key = match[2].replace("-", "_")
        if key in settings:
            raise InputError(f"algorithms: {shown(entry)} gives {key} twice; allowed: each option once")
        settings[key] = int(match[3]) if match[3] else not match[1]
    return name.strip(), settings


def label_of(name: str, settings: Mapping[str, Any]) -> str:
    """Format an algorithm and its settings as in a command.

    >>> label_of("split_kv", {"splits": 4, "lse": False})
    'split_kv:splits=4,no-lse'
    """
    words = []
    for key, value in settings.items():
        dashed = key.replace("_", "-")
        words.append({True: dashed, False: f"no-{dashed}"}[value] if isinstance(value, bool) else f"{dashed}={value}")
    return f"{name}:{','.join(words)}" if words else name


def contenders(
    algorithms: Sequence[object],
    workload: Attention,
    tiles: Mapping[str, int],
    options: Mapping[str, Any],
    timed: bool = False,
    repeated: bool = False,
) -> tuple[Contender, ...]:
    """Give each algorithm the shared tiles and options that it takes; `timed` keeps warps and stages."""
    if isinstance(algorithms, str) or not isinstance(algorithms, Sequence) or not 2 <= len(algorithms) <= MOST:
        sized = isinstance(algorithms, Sequence) and not isinstance(algorithms, str)
        number = len(algorithms) if sized else shown(algorithms)
        raise InputError(f"algorithms: {number} given; allowed: from 2 to {MOST} of iomodel.list_algorithms()")
    entries = [parsed(entry) for entry in algorithms]
    shared = {str(name): as_integer(str(name), size) for name, size in tiles.items()}
    known: set[str] = set()
    compared = [_contender(algorithm, own, workload, shared, options, timed, known) for algorithm, own in entries]
    names = " and ".join(dict.fromkeys(str(algorithm) for algorithm, _ in entries))
    for name in {**shared, **options}:
        if name not in known:
            raise UnknownNameError(f"tile or option of {names}", name, sorted(known))
    if not repeated:
        _check_distinct(compared, workload.direction)
    return tuple(compared)


def _contender(
    algorithm: AlgorithmLike,
    own: Mapping[str, Any],
    workload: Attention,
    shared: Mapping[str, int],
    options: Mapping[str, Any],
    timed: bool,
    known: set[str],
) -> Contender:
    declaration, name, direction = find_algorithm(algorithm), name_of(algorithm), workload.direction
    check_kind(declaration, kind_of(workload))
    sized = TILE_NAMES | LAUNCH_NAMES
    switches = {key: value for key, value in own.items() if key not in sized}
    chosen = {**only_taken(declaration, direction, options), **switches}
    sizes = {**shared, **{key: as_integer(key, size) for key, size in own.items() if key in sized}}
    taken = _formulas(declaration, workload, chosen).tiles
    if (switch := declaration.tiled_by) and chosen.get(switch) is not False:
        tiled = _formulas(declaration, workload, {**chosen, switch: True}).tiles
        known |= set(tiled)
        if sizes.keys() & set(tiled):
            taken, chosen = tiled, {**chosen, switch: True}
    for key in own:
        if key not in {*taken, *LAUNCH_NAMES, *switches}:
            raise UnknownNameError(f"tile of {name}", key, taken)
    launch = LAUNCH_NAMES if timed else frozenset()
    known |= {*declaration.takes(direction), *declaration.common, *taken, *launch}
    fixed = {key: sizes[key] for key in taken if key in sizes}
    if fixed:
        fixed = {**tile_sizes(name, taken, fixed), **{key: sizes[key] for key in sorted(launch & sizes.keys())}}
    return Contender(label_of(name, own), name, FrozenDict(chosen), FrozenDict(fixed))


def _check_distinct(compared: Sequence[Contender], direction: str) -> None:
    calls = [
        (
            contender.algorithm,
            contender.tiles,
            check_options(contender.declaration, contender.options, direction=direction),
        )
        for contender in compared
    ]
    for place, call in enumerate(calls):
        if call in calls[:place]:
            raise InputError(
                f"algorithms: {call[0]} given twice with the same options; allowed: each once, or with "
                "options or tiles of its own, such as 'flash2:block-q=64,block-kv=64'"
            )
