"""The exact cost of one algorithm on one workload at given tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iomodel.algorithms import algorithm as find_algorithm
from iomodel.errors import InputError, UnknownNameError
from iomodel.expressions import check_kind, check_options, kind_of, structural
from iomodel.frozen import FrozenDict
from iomodel.nest import Algorithm
from iomodel.requirements import check_numbers
from iomodel.show import Shown, table
from iomodel.symbols import FOLLOWS, LAUNCH_NAMES
from iomodel.tally import Tally, tally
from iomodel.validation import as_integer, as_mapping
from iomodel.workload import Attention, VarlenAttention, as_call


@dataclass(frozen=True)
class Cost(Shown):
    """Exact integers over all batches and heads.

    Attributes
    ----------
    reads, writes : mapping of tensor name to int
        HBM accesses [elements].
    hbm_bytes : int
        Traffic [B]: statistics and accumulators are 4 bytes wide, other tensors have the workload's dtype.
    atomics : int
        Atomic additions to HBM [elements]; each is one of the reads and one of the writes as well.
    flops, useful_flops : int
        Matrix FLOPs of the visited tiles, and of the visible pairs alone [FLOP]; the same where an algorithm
        approximates attention.
    exps, tanhs, randoms : int
        Exponentials, hyperbolic tangents, random numbers [-].
    footprint_elements, footprint_bytes : int
        The most that is live on chip at once [elements], [B].
    peak_hbm_elements, peak_hbm_bytes : int
        The most that is allocated in HBM at once [elements], [B].
    """

    algorithm: str
    workload: Attention | VarlenAttention
    tiles: Mapping[str, int]
    options: Mapping[str, Any]
    reads: Mapping[str, int]
    writes: Mapping[str, int]
    hbm_bytes: int
    atomics: int
    flops: int
    useful_flops: int
    exps: int
    tanhs: int
    randoms: int
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
            "atomics": self.atomics,
            "flops": self.flops,
            "useful_flops": self.useful_flops,
            "exps": self.exps,
            "tanhs": self.tanhs,
            "randoms": self.randoms,
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
            *([("of which atomic adds", self.atomics, "elements")] if self.atomics else []),
            ("FLOPs (visited tiles)", self.flops, "FLOP"),
            ("FLOPs (visible pairs)", self.useful_flops, "FLOP"),
            ("exponentials", self.exps, "-"),
            *([("hyperbolic tangents", self.tanhs, "-")] if self.tanhs else []),
            *([("random numbers", self.randoms, "-")] if self.randoms else []),
            ("SRAM footprint", self.footprint_elements, "elements"),
            ("SRAM footprint", self.footprint_bytes, "B"),
            ("peak HBM allocation", self.peak_hbm_bytes, "B"),
        ]
        cells = [(label, f"{count:,}", unit) for label, count, unit in rows]
        cells.append(("arithmetic intensity", f"{self.intensity:,.1f}", "FLOP/B"))
        return table(f"{self.algorithm}: {tiles}", ("quantity", ">value", "unit"), cells)


def tally_for(
    algorithm: str, workload: Attention | VarlenAttention, options: Mapping[str, Any], tiled: bool
) -> tuple[Tally, dict[str, Any]]:
    """The compiled formulas for a workload, with the complete options; raises where its numbers do not go together."""
    found, kind = find_algorithm(algorithm), kind_of(as_call(workload))
    if found.approximates and not isinstance(workload, Attention):
        raise InputError(f"workload: sequences of several lengths given; allowed: an Attention, for {found.name}")
    answer: tuple[Tally, dict[str, Any]] | None = None if options else kind.memo.get((found, tiled))
    if answer is None:
        check_kind(found, kind)
        complete = check_options(found, options, tiled, kind.direction)
        answer = tally(found.name, kind, structural(complete)), complete
        if not options:
            kind.memo[found, tiled] = answer
    check_requirements(found, workload, answer[1], {})
    return answer


def check_requirements(
    found: Algorithm, workload: Attention | VarlenAttention, options: Mapping[str, Any], sizes: Mapping[str, int]
) -> None:
    """Raise InputError where options, lengths and tiles do not go together."""
    if not found.requires:
        return
    if isinstance(workload, Attention):
        lengths: Mapping[str, int] = workload.numbers
    else:
        lengths = {"q_len": max(workload.q_lens), "kv_len": max(workload.kv_lens)}
    check_numbers(found, {**lengths, "mask": as_call(workload).mask, **options, **sizes})


def cost(
    algorithm: str, workload: Attention | VarlenAttention, tiles: Mapping[str, int] | None = None, **options: Any
) -> Cost:
    """Count what an algorithm moves and computes, exactly.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`.
    workload : Attention or VarlenAttention
        The attention call.
    tiles : mapping of tile name to int
        Every tile that the algorithm takes, as ``{"block_q": 128, "block_kv": 64}`` [rows]; ``bwd_block_q`` and the
        like follow where they are not given, ``warps`` and ``stages`` count for nothing. Standard attention may go
        without: each operand then makes one ideal pass.
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
    chosen, complete = tally_for(algorithm, workload, options, tiled=bool(given.keys() - LAUNCH_NAMES))
    sizes = tile_sizes(algorithm, chosen.tiles, given)
    check_requirements(find_algorithm(algorithm), workload, complete, sizes)
    return cost_at(chosen, workload, sizes, complete)


def tile_sizes(algorithm: str, names: Sequence[str], given: Mapping[str, Any]) -> dict[str, int]:
    """A size for each tile that an algorithm takes; how it is launched (warps, stages) counts for nothing here."""
    own: dict[str, Any] = {}
    for name, size in given.items():
        if name in LAUNCH_NAMES:
            as_integer(name, size)
        else:
            own[name] = size
    return {name: as_integer(name, size) for name, size in with_followers(algorithm, names, own).items()}


def with_followers(algorithm: str, names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Every tile that an algorithm takes, those that follow another as that one where they are not given."""
    for name in given:
        if name not in names:
            raise UnknownNameError(f"tile of {algorithm}", name, names)
    sizes: dict[str, Any] = {}
    for name in names:
        source, at = (given, name) if name in given else (sizes, FOLLOWS.get(name, name))
        if at not in source:
            raise InputError(f"{name}: {algorithm} needs this tile; allowed: an integer from 1 up")
        sizes[name] = source[at]
    return sizes


def cost_at(
    chosen: Tally, workload: Attention | VarlenAttention, sizes: Mapping[str, int], options: Mapping[str, Any]
) -> Cost:
    """The cost at tiles that are known to be right."""
    at = chosen.at if isinstance(workload, Attention) else chosen.over
    values = at(workload, options, tuple(sizes.values()))  # type: ignore[arg-type]
    formulas = chosen.formulas
    return Cost(  # type: ignore[call-arg]  # as many sums and peaks as there are fields
        formulas.algorithm,
        workload,
        FrozenDict(sizes),
        FrozenDict(options),
        FrozenDict(dict(zip(formulas.reads, values.reads, strict=True))),
        FrozenDict(dict(zip(formulas.writes, values.writes, strict=True))),
        *values.sums,
        *values.peaks,
        max(values.allocated),
        max(values.allocated_bytes),
    )
