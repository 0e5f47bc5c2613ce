"""Rules by which libraries divide the keys of a call among thread blocks."""

from __future__ import annotations

from dataclasses import dataclass

from iomodel.common.arithmetic import ceil_div
from iomodel.common.results import Record


@dataclass(frozen=True)
class Division(Record):
    """Numbers that a library compares to choose the splits of a call.

    Attributes
    ----------
    rows : int
        Query rows of a block [rows].
    per_sm : int
        Blocks that the rule expects on an SM [-].
    filled : float
        Share of all places from which on the keys stay undivided [-].
    enough : float
        Share of the best filling that suffices [-].
    most : int
        Most splits [-].
    whole : int
        Most key tiles that stay undivided in any case [-].
    fills : bool
        True if the keys are divided among as many blocks as there are places, whatever the last wave.
    rounds_up : bool
        True if blocks that fill may exceed the places by less than the undivided blocks.
    windowed : bool
        True if the keys under a window with both ends are those that a block of queries may see.
    """

    rows: int
    per_sm: int
    filled: float
    enough: float
    most: int
    whole: int = 1
    fills: bool = False
    rounds_up: bool = False
    windowed: bool = False

    def counted(self, keys: int, left: int | None, right: int | None, rows: int) -> int:
        """Return the keys that the rule divides, under the sides of a window and with the rows of a query tile."""
        if not self.windowed or left is None or right is None:
            return keys
        return min(keys, left + right + 1 + rows)

    def splits(self, instances: int, rows: int, key_tiles: int, units: int) -> int:
        """Choose the splits of a call of so many heads of all sequences, with rows each, on so many SMs.

        >>> rule = Division(rows=64, per_sm=2, filled=0.8, enough=0.85, most=128)
        >>> rule.splits(256, 4, 128, 132), rule.splits(64, 4, 128, 132)  # 256 blocks fill 0.8 of 264 places
        (1, 4)
        """
        blocks, places = instances * ceil_div(rows, self.rows), units * self.per_sm
        if blocks >= self.filled * places or key_tiles <= self.whole:
            return 1
        if self.fills:
            filling_blocks = ceil_div(places, blocks) if self.rounds_up else places // blocks
            return min(self.most, int(filling_blocks), key_tiles)
        filling = {}
        for splits in range(1, min(self.most, places, key_tiles) + 1):
            if splits == 1 or ceil_div(key_tiles, splits) != ceil_div(key_tiles, splits - 1):
                waves = blocks * splits / places
                filling[splits] = waves / ceil_div(blocks * splits, places)
        best = max(filling.values(), default=0.0)
        return next((splits for splits, filled in filling.items() if filled >= self.enough * best), 1)
