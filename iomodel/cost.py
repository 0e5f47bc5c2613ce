"""The exact cost of one algorithm on one workload at given tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.compiled import Compiled
from iomodel.errors import InputError, UnknownNameError
from iomodel.expressions import Expressions, check_options, expressions, mask_kind
from iomodel.frozen import FrozenDict
from iomodel.show import Shown, table
from iomodel.symbols import BY_NAME, WORKLOAD
from iomodel.validation import as_integer, as_mapping
from iomodel.workload import Attention, Mask, as_attention

_SCALARS = (
    "hbm_bytes",
    "flops",
    "useful_flops",
    "exps",
    "footprint",
    "footprint_bytes",
    "peak_hbm_elements",
    "peak_hbm_bytes",
)


@dataclass(frozen=True)
class Cost(Shown):
    """Exact integers over all batches and heads.

    Attributes
    ----------
    reads, writes : mapping of tensor name to int
        HBM accesses [elements].
    hbm_bytes : int
        Traffic [B]: statistics are 4 bytes wide, everything else has the workload's dtype.
    flops, useful_flops : int
        Matrix FLOPs of the visited tiles, and of the visible pairs alone [FLOP].
    exps : int
        Exponentials [-].
    footprint_elements, footprint_bytes : int
        The most that is live on chip at once [elements], [B].
    peak_hbm_elements, peak_hbm_bytes : int
        The most that is allocated in HBM at once [elements], [B].
    """

    algorithm: str
    workload: Attention
    tiles: Mapping[str, int]
    options: Mapping[str, Any]
    reads: Mapping[str, int]
    writes: Mapping[str, int]
    hbm_bytes: int
    flops: int
    useful_flops: int
    exps: int
    footprint_elements: int
    footprint_bytes: int
    peak_hbm_elements: int
    peak_hbm_bytes: int

    @property
    def hbm_reads(self) -> int:
        """Elements read from HBM [elements]."""
        return sum(self.reads.values())

    @property
    def hbm_writes(self) -> int:
        """Elements written to HBM [elements]."""
        return sum(self.writes.values())

    @property
    def hbm_elements(self) -> int:
        """HBM accesses, reads and writes [elements]."""
        return self.hbm_reads + self.hbm_writes

    @property
    def intensity(self) -> float:
        """Arithmetic intensity, FLOPs of the visited tiles over traffic [FLOP/B]."""
        return self.flops / self.hbm_bytes

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "workload": self.workload.to_dict(),
            "tiles": dict(self.tiles),
            "options": dict(self.options),
            "reads": dict(self.reads),
            "writes": dict(self.writes),
            "hbm_reads": self.hbm_reads,
            "hbm_writes": self.hbm_writes,
            "hbm_elements": self.hbm_elements,
            "hbm_bytes": self.hbm_bytes,
            "flops": self.flops,
            "useful_flops": self.useful_flops,
            "exps": self.exps,
            "footprint_elements": self.footprint_elements,
            "footprint_bytes": self.footprint_bytes,
            "peak_hbm_elements": self.peak_hbm_elements,
            "peak_hbm_bytes": self.peak_hbm_bytes,
            "intensity": self.intensity,
        }

    def __rich__(self) -> Any:
        """Return a table for the terminal."""
        tiles = ", ".join(f"{name} = {size}" for name, size in self.tiles.items()) or "no tiles"
        rows = [(f"reads {name}", count, "elements") for name, count in self.reads.items()]
        rows += [(f"writes {name}", count, "elements") for name, count in self.writes.items()]
        rows += [
            ("HBM accesses", self.hbm_elements, "elements"),
            ("HBM traffic", self.hbm_bytes, "B"),
            ("FLOPs (visited tiles)", self.flops, "FLOP"),
            ("FLOPs (visible pairs)", self.useful_flops, "FLOP"),
            ("exponentials", self.exps, "-"),
            ("SRAM footprint", self.footprint_elements, "elements"),
            ("SRAM footprint", self.footprint_bytes, "B"),
            ("peak HBM allocation", self.peak_hbm_bytes, "B"),
        ]
        cells = [(label, f"{count:,}", unit) for label, count, unit in rows]
        cells.append(("arithmetic intensity", f"{self.intensity:,.1f}", "FLOP/B"))
        return table(f"{self.algorithm}: {tiles}", ("quantity", ">value", "unit"), cells)


@dataclass(frozen=True)
class Plan:
    """One compiled set of formulas and the names of its inputs and outputs."""

    formulas: Expressions
    tiles: tuple[str, ...]
    compiled: Compiled


@lru_cache(maxsize=256)
def plan(algorithm: str, mask: Any, options: tuple[tuple[str, Any], ...]) -> Plan:
    """Compile all quantities for (algorithm, kind of mask, options) once; `mask` needs only the right kind."""
    formulas = expressions(algorithm, mask, **dict(options))
    outputs = [*formulas.reads.values(), *formulas.writes.values(), *(getattr(formulas, name) for name in _SCALARS)]
    inputs = [entry.symbol for entry in WORKLOAD] + [BY_NAME[name] for name in formulas.tiles]
    return Plan(formulas, formulas.tiles, Compiled(outputs, inputs))


@lru_cache(maxsize=1024)
def _representative(mask: Mask) -> Mask:
    """One mask for all of its kind, so that windows of different widths share a plan."""
    kind = mask_kind(mask)
    return _ONE_OF_KIND.setdefault(kind, mask)


_ONE_OF_KIND: dict[Any, Mask] = {}


def plan_for(
    algorithm: str, workload: Attention, options: Mapping[str, Any], tiled: bool
) -> tuple[Plan, dict[str, Any]]:
    """The compiled formulas for a workload, with the complete options."""
    workload = as_attention(workload)
    found = find_algorithm(algorithm)
    complete = check_options(found, options, tiled)
    return plan(found.name, _representative(workload.mask), tuple(sorted(complete.items()))), complete


def cost(algorithm: str, workload: Attention, tiles: Mapping[str, int] | None = None, **options: Any) -> Cost:
    """Count what an algorithm moves and computes, exactly.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`.
    workload : Attention
        The attention call.
    tiles : mapping of tile name to int
        Every tile that the algorithm takes, as ``{"block_q": 128, "block_kv": 64}`` [rows]. Standard attention may
        go without: each operand then makes one ideal pass.
    **options
        Options of the algorithm (``lse=False``), and ``packed=True``.

    Raises
    ------
    UnknownNameError, InputError
        An unknown algorithm, tile or option; a tile that is missing or no positive integer.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> c = iomodel.cost("flash2", w, tiles={"block_q": 128, "block_kv": 64})
    >>> c.reads["K"], c.hbm_elements  # 32 passes over K and V
    (8388608, 17305600)
    """
    given = {} if tiles is None else as_mapping("tiles", tiles, "{'block_q': 128, 'block_kv': 64}")
    chosen, complete = plan_for(algorithm, workload, options, tiled=bool(given))
    for name in given:
        if name not in chosen.tiles:
            raise UnknownNameError(f"tile of {algorithm}", name, chosen.tiles)
    missing = [name for name in chosen.tiles if name not in given]
    if missing:
        raise InputError(f"{missing[0]}: {algorithm} needs this tile; allowed: an integer from 1 up")
    sizes = {name: as_integer(name, given[name]) for name in chosen.tiles}
    return cost_at(chosen, workload, sizes, complete)


def cost_at(chosen: Plan, workload: Attention, sizes: Mapping[str, int], options: Mapping[str, Any]) -> Cost:
    """The cost at tiles that are known to be right."""
    values = chosen.compiled.scalars(*workload.point, *sizes.values())
    formulas = chosen.formulas
    reads, writes = len(formulas.reads), len(formulas.writes)
    return Cost(
        formulas.algorithm,
        workload,
        FrozenDict(sizes),
        FrozenDict(options),
        FrozenDict(dict(zip(formulas.reads, values, strict=False))),
        FrozenDict(dict(zip(formulas.writes, values[reads:], strict=False))),
        *values[reads + writes :],
    )
