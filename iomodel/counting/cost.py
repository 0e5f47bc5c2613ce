"""The exact cost of one algorithm on one workload at given tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.display import Result, Table
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.validation import as_integer, as_mapping
from iomodel.counting.compiled_algorithm import CompiledAlgorithm, tally
from iomodel.counting.kinds import check_kind, kind_of
from iomodel.counting.options import check_options, structural
from iomodel.counting.quantities import QUANTITIES, TOTALS, Counts, table_rows
from iomodel.counting.requirements import check_numbers, requirements
from iomodel.errors import InputError, UnknownNameError
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import FOLLOWS, LAUNCH_NAMES
from iomodel.workloads.varlen import VarlenAttention
from iomodel.workloads.workload import Shape, Workload, as_workload


@dataclass(frozen=True)
class Cost(Counts[int], Result):
    """The exact counts of an algorithm over all batches and heads.

    Attributes
    ----------
    reads, writes : mapping of tensor name to int
        HBM accesses [elements].
    hbm_bytes, atomics, flops, useful_flops, exps, ... : int
        Each quantity of :class:`~iomodel.counting.quantities.Counts`.
    """

    derived = ("hbm_reads", "hbm_writes", "hbm_elements", "intensity")

    algorithm: str
    workload: Annotated[Any, Workload]
    tiles: Mapping[str, int]
    options: Mapping[str, Any]
    reads: Mapping[str, int]
    writes: Mapping[str, int]

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
    def quantities(self) -> Mapping[str, int]:
        """Every quantity by name, tensors apart; totals included."""
        return FrozenDict({name: getattr(self, name) for name in (*TOTALS, *QUANTITIES)})

    @property
    def intensity(self) -> float:
        """Arithmetic intensity, FLOPs of the visited tiles over traffic [FLOP/B]."""
        return self.flops / self.hbm_bytes

    def tables(self) -> list[Table | str]:
        """Return the table of the terminal."""
        tiles = ", ".join(f"{name} = {size}" for name, size in self.tiles.items()) or "no tiles"
        rows = [(f"reads {name}", f"{count:,}", "elements") for name, count in self.reads.items()]
        rows += [(f"writes {name}", f"{count:,}", "elements") for name, count in self.writes.items()]
        rows += [("HBM accesses", f"{self.hbm_elements:,}", "elements"), *table_rows(self)]
        rows.append(("arithmetic intensity", f"{self.intensity:,.1f}", "FLOP/B"))
        return [Table(f"{self.algorithm}: {tiles}", ("quantity", ">value", "unit"), rows)]


def tally_for(
    algorithm: AlgorithmLike, workload: Workload, options: Mapping[str, Any], tiled: bool
) -> tuple[CompiledAlgorithm, dict[str, Any]]:
    """Return the compiled formulas and complete options for a workload; raise InputError on broken requirements."""
    declaration, kind = find_algorithm(algorithm), kind_of(as_workload(workload))
    if declaration.approximates and isinstance(workload, VarlenAttention):
        raise InputError(f"workload: sequences of several lengths given; allowed: an Attention, for {declaration.name}")
    result: tuple[CompiledAlgorithm, dict[str, Any]] | None = None if options else declaration.memo.get((kind, tiled))
    if result is None:
        check_kind(declaration, kind)
        complete = check_options(declaration, options, tiled, kind.direction)
        result = tally(declaration, kind, structural(complete)), complete
        if not options:
            declaration.memo[kind, tiled] = result
    check_requirements(declaration, workload, result[1], {})
    return result


def check_requirements(
    found: Algorithm, workload: Workload, options: Mapping[str, Any], sizes: Mapping[str, int]
) -> None:
    """Raise InputError where options, lengths and tiles break a requirement of the algorithm."""
    if not requirements(found):
        return
    numbers: dict[str, Any] = {name: name in workload.features for name in found.features}
    if isinstance(workload, VarlenAttention):
        numbers |= {"q_len": max(workload.q_lens), "kv_len": max(workload.kv_lens)}
    elif isinstance(workload, Shape):
        numbers |= workload.numbers
    check_numbers(found, {**numbers, "mask": getattr(workload, "mask", None), **options, **sizes})


def cost(algorithm: AlgorithmLike, workload: Workload, tiles: Mapping[str, int] | None = None, **options: Any) -> Cost:
    """Count the traffic and the operations of an algorithm exactly.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    workload : Attention, VarlenAttention or Linear
        The workload.
    tiles : mapping of tile name to int
        Every tile that the algorithm takes, as ``{"block_q": 128, "block_kv": 64}`` [rows]; tiles such as
        ``bwd_block_q`` default to their forward tile; ``warps`` and ``stages`` change no count. Standard attention
        needs no tiles: each operand then makes one ideal pass.
    **options
        Options of the algorithm (``lse=False``), and ``packed=True``.

    Raises
    ------
    UnknownNameError, InputError
        An unknown algorithm, tile or option; a missing tile; a size that is no positive integer.

    Examples
    --------
    >>> import iomodel
    >>> w = iomodel.Attention(q_len=4096, head_dim=64)
    >>> c = iomodel.cost("flash2", w, tiles={"block_q": 128, "block_kv": 64})
    >>> c.reads["K"], c.hbm_elements  # 32 passes over K and V
    (8388608, 17305600)
    """
    chosen_tiles = {} if tiles is None else as_mapping("tiles", tiles, "{'block_q': 128, 'block_kv': 64}")
    chosen, complete = tally_for(algorithm, workload, options, tiled=bool(chosen_tiles.keys() - LAUNCH_NAMES))
    sizes = tile_sizes(algorithm, chosen.tiles, chosen_tiles)
    check_requirements(find_algorithm(algorithm), workload, complete, sizes)
    return cost_at(chosen, workload, sizes, complete)


def tile_sizes(algorithm: AlgorithmLike, names: Sequence[str], given: Mapping[str, Any]) -> dict[str, int]:
    """Return a size for each tile that an algorithm takes; launch settings (warps, stages) change no count."""
    own: dict[str, Any] = {}
    for name, size in given.items():
        if name in LAUNCH_NAMES:
            as_integer(name, size)
        else:
            own[name] = size
    return {name: as_integer(name, size) for name, size in with_followers(algorithm, names, own).items()}


def with_followers(algorithm: AlgorithmLike, names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a size for every tile; a missing follower takes the size of the tile that it follows."""
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
    chosen: CompiledAlgorithm,
    workload: Workload,
    sizes: Mapping[str, int],
    options: Mapping[str, Any],
) -> Cost:
    """Return the cost at tiles that have been checked."""
    point = tuple(sizes.values())
    if isinstance(workload, VarlenAttention):
        values = chosen.over(workload, options, point)
    else:
        assert isinstance(workload, Shape)
        values = chosen.at(workload, options, point)
    return Cost(
        name_of(chosen.algorithm),
        workload,
        FrozenDict(sizes),
        FrozenDict(options),
        FrozenDict(dict(zip(chosen.reads, values.reads, strict=True))),
        FrozenDict(dict(zip(chosen.writes, values.writes, strict=True))),
        **values.by_name,
    )
