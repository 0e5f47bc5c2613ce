"""Tiles drawn without the candidates of `solve`, and what they take against the tiles that it chooses."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import iomodel
from iomodel import Hardware, IOModelError, Solution
from iomodel.algorithms import algorithm
from iomodel.solving.certificate import TIE
from iomodel.timing.error_interval import place_of
from iomodel.workloads.call import Call
from tests.support.answers import made
from tests.support.drawn_questions import Draw, attention, layer
from tests.support.edited_answers import on

BATCH, BATCHES = 48, 4
"""Tiles under one choice of the options, and choices of the options of a question."""
ONE_BY_ONE = 6
"""Tiles of a batch where no array of times is known."""
LARGEST = (64, 128, 256, 1024)
"""Largest tiles drawn [rows]."""
MMA = ("rows", "columns", "depth")
"""Figures of a matrix instruction."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class Drawn:
    """A question, its answer, and the best of the tiles drawn that fit; the time [s] or the traffic [B] of each."""

    device: str
    question: tuple[str, Any, Mapping[str, Any]]
    implementation: str
    quantity: str
    chosen: Mapping[str, Any]
    solved: float
    tried: int
    fitting: int
    other: Mapping[str, Any]
    best: float
    margin: float = 0.0

    @property
    def ratio(self) -> float:
        """What the choice of `solve` takes over what the best of the drawn tiles takes [-]."""
        return self.solved / self.best if self.fitting else 0.0

    @property
    def holds(self) -> bool:
        """True unless a drawn tile is better; a time, by more than a tie, or than the error if libraries have tiles."""
        return self.ratio <= 1 + self.margin


def drawn(seed: int, number: int) -> Drawn | None:
    """Solve a question on a device, and draw other tiles of the same kernels; None where it is refused.

    The devices follow each other in the numbers.
    """
    r = Draw(f"tiles {seed} {number}")
    names = iomodel.list_hardware()
    device = iomodel.hardware(names[number % len(names)])
    name, w, _, options = layer(r, real=0.7) if r.chance(0.4) else attention(r, real=0.8)
    options = {key: value for key, value in options.items() if key not in ("packed", "splits") or r.chance(0.3)}
    _, (name, w), _ = on(("solve", [name, w], {}), r, device)
    by_traffic: dict[str, Any] = {"objective": "traffic"} if r.chance(0.1) else {}
    try:
        call = made(w)
        kernels = iomodel.list_implementations(name, device, call) if isinstance(call, iomodel.Attention) else []
        given: dict[str, Any] = {"implementation": r.choice(kernels)} if kernels and r.chance(0.3) else {}
        solution = iomodel.solve(name, call, device, **given, **by_traffic, **options)
    except IOModelError:
        return None
    return compared(r, device, (name, w, {**given, **by_traffic, **options}), call, solution, options)


def compared(
    r: Draw, device: Hardware, question: Any, call: Any, solution: Solution, options: Mapping[str, Any]
) -> Drawn:
    """Draw other tiles than those of a solution, in batches that share the options, and keep the best."""
    quantity = "seconds" if _by_time(call, solution, question) else "hbm_bytes"
    solved = solution.known_seconds if quantity == "seconds" else solution.cost.hbm_bytes
    assert solved is not None
    tried, fitting, best, other = 0, 0, float("inf"), {}
    for _ in range(BATCHES):
        more = _options(r, call, solution, options) if quantity == "seconds" else _searched(solution)
        tiles = _tiles(r, call, solution, device)
        size = len(next(iter(tiles.values())))
        tried += size
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values = _taken(device, call, solution, quantity, tiles, {**options, **more})
        except IOModelError:
            continue
        fitting += int(np.isfinite(values).sum())
        place = int(np.where(np.isfinite(values), values, np.inf).argmin())
        if values[place] < best:
            best = float(values[place])
            other = {**{key: int(column[place]) for key, column in tiles.items()}, **more}
    margin = TIE + ROUNDING if quantity == "seconds" else 0.0
    if quantity == "seconds" and solution.implementation == "vendor-blas":
        margin = place_of(device, call, solved).half_width + ROUNDING
    return Drawn(
        str(device.id), question, solution.implementation, quantity, dict(solution.choice), solved, tried, fitting,
        other, best, margin,
    )  # fmt: skip


def _by_time(call: Any, solution: Solution, question: Any) -> bool:
    """Check that the tiles of a solution are the fastest ones; else they are those of least traffic."""
    if "objective" in question[2] or not solution.timed:
        return False
    if solution.implementation != "textbook":
        return "textbook" not in solution.implementation
    exact = isinstance(call, Call) and not algorithm(solution.algorithm).approximates
    return not exact and not isinstance(call, iomodel.VarlenAttention)


def _searched(solution: Solution) -> dict[str, Any]:
    """The options that a solution chose, and its packing, which an estimate may choose otherwise."""
    return {name: solution.options[name] for name in {*solution.searched, *({"packed"} & solution.options.keys())}}


def _options(r: Draw, call: Any, solution: Solution, options: Mapping[str, Any]) -> dict[str, Any]:
    """Draw values of the options that the kernels choose per call, and of packing, which a rule may leave out."""
    found: dict[str, Any] = {}
    for name in solution.searched:
        if isinstance(solution.options[name], bool):
            found[name] = r.chance(0.5)
        elif r.chance(0.7):
            found[name] = r.choice((solution.options[name], r.near(64)))
    if getattr(call, "group", 1) > 1 and "packed" not in options and "packed" in solution.options:
        found["packed"] = r.chance(0.5)
    return found


def _instruction(device: Hardware, call: Any) -> dict[str, int]:
    """The steps of the tiles of a product, which its matrix instructions compute whole, where they are on file."""
    mma = {name: int(figure.value) for name in MMA if (figure := getattr(device.compute.mma, name)) is not None}
    if not isinstance(call, iomodel.Linear) or len(mma) < len(MMA):
        return {}
    return {"block_m": mma["rows"], "block_n": mma["columns"], "block_k": max(1, mma["depth"] // call.element_size)}


def _tiles(r: Draw, call: Any, solution: Solution, device: Hardware) -> dict[str, Any]:
    """Draw columns of tiles, and of warps and stages half of the time: multiples of a step, or powers of two.

    On the textbook's machine, tiles are multiples of the alignment.
    """
    names = list(solution.cost.tiles)
    size, textbook = BATCH if _in_arrays(call) else ONE_BY_ONE, solution.implementation == "textbook"
    least = solution.budget.alignment if textbook else 1
    step = least * r.choice((1, 2, 3, 4)) if textbook else r.choice((1, 8, 16, 16, 32, 64))

    def sized() -> int:
        near = r.near(r.choice(LARGEST))
        return int(2 ** round(np.log2(max(near, least)))) if r.chance(0.4) else -(-near // step) * step

    whole = _instruction(device, call)
    tiles = {
        name: np.array([-(-sized() // whole.get(name, 1)) * whole.get(name, 1) for _ in range(size)]) for name in names
    }
    if call.direction != "both" and not textbook and r.chance(0.5):
        tiles["warps"] = np.array([r.choice((1, 2, 4, 8, 12, 16)) for _ in range(size)])
        tiles["stages"] = np.array([r.randint(1, 5) for _ in range(size)])
    return tiles


def _in_arrays(call: Any) -> bool:
    """Check that there are arrays of times of a call."""
    if isinstance(call, iomodel.Attention):
        return isinstance(call.mask, str | iomodel.Window)
    return isinstance(call, iomodel.Linear)


def _taken(
    device: Hardware, call: Any, solution: Solution, quantity: str, tiles: Mapping[str, Any], options: Any
) -> Any:
    """The time or the traffic at each of the tiles; NaN where one does not fit the kernels of the solution."""
    name = solution.algorithm
    if solution.implementation == "textbook" and quantity == "hbm_bytes":
        return np.array([_traffic(call, solution, one, options) for one in _each(tiles)])
    one = "" if " and " in solution.implementation or not isinstance(call, Call) else solution.implementation
    kernels: dict[str, Any] = {"implementation": one} if one else {}
    if _in_arrays(call):
        found = iomodel.estimate_array(name, call, device, tiles=tiles, infeasible="mark", **kernels, **options)
        values = found.seconds if quantity == "seconds" else found.costs.hbm_bytes + 0 * found.seconds
        values = np.where(found.implementations == solution.implementation, values, np.nan)
        if quantity == "hbm_bytes":
            for place in np.flatnonzero(values < solution.cost.hbm_bytes):
                sizes = {key: int(column[place]) for key, column in tiles.items()}
                if iomodel.check(name, call, device, sizes, **kernels).spilled:
                    values[place] = np.nan  # the bytes of spilled registers are not counted
        return values
    return np.array([_alone(device, call, solution, quantity, sizes, {**kernels, **options}) for sizes in _each(tiles)])


def _each(tiles: Mapping[str, Any]) -> Iterator[dict[str, int]]:
    for sizes in zip(*tiles.values(), strict=True):
        yield dict(zip(tiles, map(int, sizes), strict=True))


def _alone(device: Hardware, call: Any, solution: Solution, quantity: str, sizes: Any, more: Any) -> float:
    try:
        found = iomodel.estimate(solution.algorithm, call, device, sizes, **more)
    except IOModelError:
        return float("nan")
    if isinstance(call, Call) and found.implementation != solution.implementation:
        return float("nan")
    return float(found.seconds if quantity == "seconds" else found.cost.hbm_bytes)


def _traffic(call: Any, solution: Solution, sizes: Mapping[str, int], options: Any) -> float:
    """The traffic of a tile in one memory that holds all live data."""
    budget = solution.budget
    try:
        cost = iomodel.cost(solution.algorithm, call, sizes, **options)
    except IOModelError:
        return float("nan")
    used = cost.footprint_bytes if budget.unit == "B" else cost.footprint_elements
    return cost.hbm_bytes if used <= budget.amount else float("nan")
