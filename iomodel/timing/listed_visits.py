"""Visits of the outer tiles of many grids whose tiles are listed, as arrays over the grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from iomodel.timing.balance import Spread


@dataclass(frozen=True)
class ListedVisits:
    """Visits of many grids [-]: runs down the rows of the arrays, grids along their columns.

    A grid of fewer runs than another repeats its last one, which changes no bound.

    Attributes
    ----------
    visits, before : array
        Visits of each run, and outer tiles up to its end.
    ends : tuple of array
        Visits of the first and of the last outer tile in the order of the grid.
    longest, total, shares, blocks : array
        As of one grid.
    alike : array
        True where all tiles visit as many.
    """

    visits: Any
    before: Any
    ends: tuple[Any, Any]
    longest: Any
    total: Any
    shares: Any
    blocks: Any
    alike: Any

    @classmethod
    def of(cls, grids: Sequence[Spread], places: Any) -> ListedVisits:
        """Lay grids out, the grid of each place."""
        columns = [grid.columns for grid in grids]
        most = max(len(visits) for visits, _ in columns)
        visits, before = (
            np.stack([np.pad(pair[side], (0, most - len(pair[side])), mode="edge") for pair in columns], axis=1)
            for side in (0, 1)
        )
        each = {
            name: np.array([getattr(grid, name) for grid in grids], dtype=np.float64)[places]
            for name in ("longest", "total", "shares", "blocks")
        }
        ends = np.array([grid.ends or (grid.longest, grid.longest) for grid in grids], dtype=np.float64)[places]
        alike = np.array([len(runs) == 1 for runs, _ in columns])[places]
        return cls(visits[:, places], before[:, places], (ends[:, 0], ends[:, 1]), **each, alike=alike)

    def levels(self, copies: Any, units: int) -> tuple[Any, Any]:
        """Return numbers of blocks that some SM has, and the visits that each of these has at least [-]."""
        return np.floor((self.before * copies - 1) / units) + 1, self.visits

    def ranked(self, rank: Any) -> Any:
        """Count the visits of the outer tile with so many longer ones before it."""
        run = np.minimum((self.before <= rank).sum(axis=0), len(self.visits) - 1)
        return np.take_along_axis(self.visits, run[None], axis=0)[0]
