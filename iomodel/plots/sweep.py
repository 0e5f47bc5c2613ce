"""Solved tiles over a range of SRAM sizes, with lower bounds and the closed form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iomodel.algorithms import AlgorithmLike, name_of
from iomodel.common.validation import as_integer
from iomodel.counting.bounds import best_bound, compulsory
from iomodel.counting.optimum import optimum
from iomodel.errors import InfeasibleError, InputError, IOModelError, shown
from iomodel.nests.symbols import BY_NAME
from iomodel.solving.solution import Solution
from iomodel.solving.solve import solve
from iomodel.workloads.attention import Attention
from iomodel.workloads.varlen import VarlenAttention

STEPS = 4
"""Default number of sizes per octave."""
MOST = 2**28
"""Largest default size, far above the SRAM per block of any chip [B]."""
NEAR = 1.02
"""Ratio to the least traffic below which larger sizes are not evaluated [-]."""
LONGEST = 2000
"""Most sizes in one picture."""


@dataclass(frozen=True)
class Sweep:
    """Solutions of one algorithm over SRAM sizes.

    Attributes
    ----------
    algorithm : str
        Name of the algorithm.
    solutions : mapping of int to Solution
        Solution at each size [B] in which a tile fits, in ascending order.
    formula : mapping of int to float
        Traffic of the continuous optimum, where a formula covers the call and its tiles are in range [B].
    bounds : mapping of int to int
        Largest valid lower bound at every size [B].
    compulsory : int
        Compulsory traffic of every algorithm [B].
    width : int
        Width of every element in the formula [B].
    """

    algorithm: str
    solutions: Mapping[int, Solution]
    formula: Mapping[int, float]
    bounds: Mapping[int, int]
    compulsory: int
    width: int


def budgets(requested: Iterable[int]) -> list[int]:
    """Validate SRAM sizes and sort them without duplicates; raise InputError for invalid ones."""
    if isinstance(requested, str | bytes) or not isinstance(requested, Iterable):
        raise InputError(f"sram: {shown(requested)} given; allowed: sizes in bytes, such as range(2**15, 2**20, 2**15)")
    sizes = set()
    for size in requested:
        sizes.add(as_integer("sram", size))
        if len(sizes) > LONGEST:
            raise InputError(f"sram: more than {LONGEST:,} sizes given; allowed: up to {LONGEST:,}")
    if not sizes:
        raise InputError("sram: no size given; allowed: sizes in bytes, such as range(2**15, 2**20, 2**15)")
    return sorted(sizes)


def usual(
    algorithms: Iterable[AlgorithmLike],
    workload: Attention | VarlenAttention,
    also: Iterable[int],
    options: Mapping[str, Any],
) -> list[int]:
    """Choose sizes from the smallest that fits a tile to where more memory helps little."""
    names, least = list(algorithms), []
    for name in names:
        try:
            least.append(solve(name, workload, sram_bytes=1, **options).footprint)
        except InfeasibleError as error:
            least.append(error.least)

    def traffic(name: AlgorithmLike, size: int) -> int:
        return solve(name, workload, sram_bytes=size, **options).cost.hbm_bytes

    low, high = min([*least, *also]), 4 * max([*least, *also])
    while high < MOST and any(traffic(name, high) > NEAR * traffic(name, MOST) for name in names):
        high *= 2
    sizes, number = {low, high, 2 * high, *least, *also}, 0
    while (size := round(low * 2 ** (number / STEPS))) < high:
        sizes.add(size)
        number += 1
    return sorted(sizes)


def sweep(
    name: AlgorithmLike, workload: Attention | VarlenAttention, sizes: Sequence[int], options: Mapping[str, Any]
) -> Sweep:
    """Solve at each size; omit sizes in which no tile fits, and raise InfeasibleError if none fits at all."""
    solutions, failure = {}, None
    for size in sizes:
        try:
            solutions[size] = solve(name, workload, sram_bytes=size, **options)
        except InfeasibleError as error:
            failure = error
    if failure is not None and not solutions:
        raise failure
    least = compulsory(name, workload).bytes
    bounds = {size: best_bound(name, workload, sram_bytes=size).bytes for size in sizes}
    continuous = formula(name, workload, solutions, options)
    return Sweep(name_of(name), solutions, continuous, bounds, least, workload.element_size)


def formula(
    name: AlgorithmLike, workload: Attention | VarlenAttention, sizes: Iterable[int], options: Mapping[str, Any]
) -> dict[int, float]:
    """Evaluate the continuous optimum at SRAM sizes [B], for calls with identical heads and no features.

    Every element is assumed to be as wide as those of the workload.
    """
    shape_options = {
        key: value for key, value in options.items() if key not in ("alignment", "min_block_kv", "epsilon")
    }
    if not isinstance(workload, Attention) or workload.features or shape_options.pop("packed", False):
        return {}
    if workload.group > 1 and workload.direction != "forward":
        return {}  # gradients of shared keys belong to several heads
    if workload.mask != "full" and workload.q_len != workload.kv_len:
        return {}
    try:
        best = optimum(name, workload.mask, workload.direction, **shape_options)
    except IOModelError:  # no formula for this mask or shape
        return {}
    w, width = workload, workload.element_size
    known = {"q_len": w.q_len, "kv_len": w.kv_len, "length": w.q_len, "head_dim": w.head_dim,
             "value_dim": w.value_dim, "window_left": w.numbers["window_left"],
             "window_right": w.numbers["window_right"], "least_block": 1}  # fmt: skip
    point = {BY_NAME[key]: value for key, value in known.items()}
    tiles = [size.subs(point) for size in best.tiles.values()]
    traffic = best.hbm_elements.subs(point)
    longest, traffic_by_size = max(w.q_len, w.kv_len), {}
    for size in sizes:
        memory = {BY_NAME["sram_elements"]: size / width}
        if all(1 <= tile.subs(memory).evalf() <= longest for tile in tiles):
            traffic_by_size[size] = float(traffic.subs(memory).evalf()) * width * w.batch * w.heads
    return traffic_by_size
