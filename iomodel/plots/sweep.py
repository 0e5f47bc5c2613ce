"""Solved tiles over a range of SRAM sizes, beside the bounds and the formula."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iomodel.bounds import best_bound, lower_bounds
from iomodel.errors import InfeasibleError, InputError, IOModelError, shown
from iomodel.optimum import optimum
from iomodel.solution import Solution
from iomodel.solve import solve
from iomodel.symbols import BY_NAME
from iomodel.validation import as_integer
from iomodel.workload import Attention, VarlenAttention

STEPS = 4
"""Sizes an octave, where none are given."""
MOST = 2**28
"""The largest size looked at on one's own: far above any chip's SRAM a block [B]."""
NEAR = 1.02
"""Within this much of the least traffic, more memory is not worth a look [-]."""
LONGEST = 2000
"""The most sizes that a picture solves for."""


@dataclass(frozen=True)
class Sweep:
    """One algorithm over SRAM sizes.

    Attributes
    ----------
    algorithm : str
        Its name.
    solutions : mapping of int to Solution
        What the solver found at each size in which a tile fits, least size first [B].
    formula : mapping of int to float
        The traffic of the continuous optimum, where a formula speaks of the call and its tiles are in range [B].
    bounds : mapping of int to int
        The largest lower bound that holds, at every size that was looked at [B].
    compulsory : int
        What every algorithm moves [B].
    width : int
        Of every element, as the formula has it [B].
    """

    algorithm: str
    solutions: Mapping[int, Solution]
    formula: Mapping[int, float]
    bounds: Mapping[int, int]
    compulsory: int
    width: int


def budgets(given: Iterable[int]) -> list[int]:
    """SRAM sizes, in order and once each; InputError for others."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(f"sram: {shown(given)} given; allowed: sizes in bytes, such as range(2**15, 2**20, 2**15)")
    found = set()
    for size in given:
        found.add(as_integer("sram", size))
        if len(found) > LONGEST:
            raise InputError(f"sram: more than {LONGEST:,} sizes given; allowed: up to {LONGEST:,}")
    if not found:
        raise InputError("sram: no size given; allowed: sizes in bytes, such as range(2**15, 2**20, 2**15)")
    return sorted(found)


def usual(
    algorithms: Iterable[str], workload: Attention | VarlenAttention, also: Iterable[int], options: Mapping[str, Any]
) -> list[int]:
    """Sizes from where the first tile fits to where more memory helps none, or little."""
    names, least = list(algorithms), []
    for name in names:
        try:
            least.append(solve(name, workload, sram_bytes=1, **options).footprint)
        except InfeasibleError as error:
            least.append(error.least)

    def traffic(name: str, size: int) -> int:
        return solve(name, workload, sram_bytes=size, **options).cost.hbm_bytes

    low, high = min([*least, *also]), 4 * max([*least, *also])
    while high < MOST and any(traffic(name, high) > NEAR * traffic(name, MOST) for name in names):
        high *= 2
    found, number = {low, high, 2 * high, *least, *also}, 0
    while (size := round(low * 2 ** (number / STEPS))) < high:
        found.add(size)
        number += 1
    return sorted(found)


def sweep(name: str, workload: Attention | VarlenAttention, sizes: Sequence[int], options: Mapping[str, Any]) -> Sweep:
    """Solve at each size; sizes in which no tile fits are left out, and InfeasibleError if that is all of them."""
    solutions, failure = {}, None
    for size in sizes:
        try:
            solutions[size] = solve(name, workload, sram_bytes=size, **options)
        except InfeasibleError as error:
            failure = error
    if failure is not None and not solutions:
        raise failure
    compulsory = lower_bounds(name, workload, 1)["compulsory"].bytes
    width = min(workload.element_size, workload.kv_element_size)
    bounds = {size: best_bound(name, workload, max(1, size // width)).bytes for size in sizes}
    continuous = formula(name, workload, solutions, options)
    return Sweep(name, solutions, continuous, bounds, compulsory, workload.element_size)


def formula(
    name: str, workload: Attention | VarlenAttention, sizes: Iterable[int], options: Mapping[str, Any]
) -> dict[int, float]:
    """The traffic of the continuous optimum at SRAM sizes [B], for calls whose heads are all alike and plain.

    Every element is taken to be as wide as the workload's.
    """
    own = {key: value for key, value in options.items() if key not in ("alignment", "min_block_kv", "epsilon")}
    if not isinstance(workload, Attention) or workload.features or own.pop("packed", False):
        return {}
    if workload.group > 1 and workload.direction != "forward":
        return {}  # gradients of heads that share keys are of no one head
    if workload.mask != "full" and workload.q_len != workload.kv_len:
        return {}
    try:
        best = optimum(name, workload.mask, workload.direction, **own)
    except IOModelError:  # a mask or a shape of which no formula speaks
        return {}
    w, width = workload, workload.element_size
    known = {"q_len": w.q_len, "kv_len": w.kv_len, "length": w.q_len, "head_dim": w.head_dim,
             "value_dim": w.value_dim, "window_left": w.numbers["window_left"],
             "window_right": w.numbers["window_right"], "least_block": 1}  # fmt: skip
    point = {BY_NAME[key]: value for key, value in known.items()}
    tiles = [size.subs(point) for size in best.tiles.values()]
    traffic = best.hbm_elements.subs(point)
    longest, found = max(w.q_len, w.kv_len), {}
    for size in sizes:
        memory = {BY_NAME["sram_elements"]: size / width}
        if all(1 <= tile.subs(memory).evalf() <= longest for tile in tiles):
            found[size] = float(traffic.subs(memory).evalf()) * width * w.batch * w.heads
    return found
