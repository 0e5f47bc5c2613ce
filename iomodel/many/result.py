"""The answers of the solver to arrays of problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from iomodel.arrays.calls import Calls
from iomodel.arrays.integers import at_place
from iomodel.cost_array import CostArray, cost_array
from iomodel.errors import InputError, shown
from iomodel.many.bound import bound_bytes
from iomodel.show import Shown, table
from iomodel.solution import Solution
from iomodel.solve import solve
from iomodel.symbols import TILES


@dataclass(frozen=True, eq=False)
class Solutions(Shown):
    """The best tiles of many problems, and what they move.

    Attributes
    ----------
    tiles : mapping of tile name to array of int64
        The tiles chosen [rows]; 0 where nothing fits.
    hbm_bytes, least_hbm_bytes : array of int64
        The traffic of these tiles, and the least of all that fit [B]: the same, unless epsilon traded some away.
        Python integers where a value exceeds 64 bits.
    feasible : array of bool
        Where any tile fits.
    budget : int or array of int64
        The memory that was to be kept to, in `unit`.
    unit : {"B", "elements"}
        That of the budget.
    """

    algorithm: str
    tiles: Mapping[str, Any]
    hbm_bytes: Any
    least_hbm_bytes: Any
    feasible: Any
    budget: Any
    unit: str
    calls: Calls
    arguments: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The broadcast shape of all arguments."""
        return self.feasible.shape  # type: ignore[no-any-return]

    @cached_property
    def cost(self) -> CostArray:
        """Everything that the tiles move and compute, as arrays; worked out when first asked for.

        Raises
        ------
        InputError
            Nothing fits some of the problems.
        """
        if not self.feasible.all():
            raise InputError(
                f"cost: no tile fits {np.count_nonzero(~self.feasible):,} of {self.feasible.size:,} problems; "
                "allowed: where all fit, see .feasible"
            )
        search = ("hardware", "sram_bytes", "sram_elements", "alignment", "min_block_kv", "epsilon")
        options = {name: value for name, value in self.arguments.items() if name not in search}
        return cost_array(self.algorithm, **self.calls.fields, **self.calls.widths, **self.tiles, **options)

    @cached_property
    def lower_bound(self) -> Any:
        """The largest proved lower bound that holds for the algorithm [B]; worked out when first asked for."""
        found = bound_bytes(self.algorithm, self.calls, self.budget, self.unit)
        found.flags.writeable = False  # kept beside the tiles
        return found

    @property
    def ratio(self) -> Any:
        """Traffic over the lower bound [-]; 0 where nothing fits."""
        return self.hbm_bytes / self.lower_bound

    def solution(self, index: int | tuple[int, ...] = ()) -> Solution:
        """The solution of one problem with its certificate, by :func:`iomodel.solve`.

        Parameters
        ----------
        index : int or tuple of int
            Where it lies in the arrays.

        Raises
        ------
        InputError
            There is no such index.
        InfeasibleError
            Nothing fits there.
        """
        try:
            every = np.arange(self.feasible.size).reshape(self.shape)
            place = tuple(map(int, np.unravel_index(int(every[index]), self.shape))) if self.shape else ()
        except Exception:  # out of range, beyond 64 bits, no index at all
            raise InputError(f"index: {shown(index)} given; allowed: one of an array of shape {self.shape}") from None
        return solve_at(self.algorithm, self.calls, self.arguments, place, self.shape)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "shape": list(self.shape),
            "unit": self.unit,
            "budget": np.asarray(self.budget).tolist(),
            "tiles": {name: sizes.tolist() for name, sizes in self.tiles.items()},
            "hbm_bytes": self.hbm_bytes.tolist(),
            "least_hbm_bytes": self.least_hbm_bytes.tolist(),
            "feasible": self.feasible.tolist(),
        }

    def __rich__(self) -> Any:
        """Return a table for the terminal: how many fit, and from where to where their values go."""
        units = {entry.name: entry.unit for entry in TILES}
        fits, every = int(np.count_nonzero(self.feasible)), self.feasible.size
        rows = [("problems", f"{every:,}", ""), ("of which a tile fits", f"{fits:,}", "")]
        values = {**{name: (sizes, units[name]) for name, sizes in self.tiles.items()}}
        values |= {"HBM traffic": (self.hbm_bytes, "B"), "least HBM traffic": (self.least_hbm_bytes, "B")}
        for name, (array, unit) in values.items() if fits else ():
            low, high = array[self.feasible].min(), array[self.feasible].max()
            rows.append((name, f"{low:,} to {high:,}" if low < high else f"{low:,}", unit))
        return table(f"{self.algorithm}: {self.shape}", ("", ">value", "unit"), rows)


def solve_at(
    algorithm: str, calls: Calls, arguments: Mapping[str, Any], place: tuple[int, ...], shape: tuple[int, ...]
) -> Solution:
    """One problem of many, by :func:`iomodel.solve`."""
    one = {name: at_place(value, place, shape) for name, value in arguments.items()}
    return solve(algorithm, calls.call(place, shape), **one)
