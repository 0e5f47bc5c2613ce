"""The bound on whole rows backward, held against walks of a chip that take pairs as they come."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from iomodel.counting.bound_values import VALUES, Pairs

QUERY, KEY = {"Q": 1, "dO": 1, "dQ": 2}, {"K": 1, "V": 1, "dK": 2, "dV": 2}
"""The rows of a query and of a key, with the accesses that a stay of each costs."""
Row = tuple[str, int]


class Walk:
    """A chip of rows, the pairs taken on it, and the weights of the stays in which a pair is taken."""

    def __init__(self, widths: dict[str, int], size: int, queries: int, keys: int) -> None:
        self.widths, self.size, self.queries, self.keys = widths, size, queries, keys
        self.chip: dict[Row, bool] = {}  # whether a pair is taken during this stay; sums must, inputs are loaded anyway
        self.taken: set[tuple[int, int]] = set()
        self.spent = 0

    def room(self) -> int:
        """Return the elements that are free."""
        return self.size - sum(self.widths[name] for name, _ in self.chip)

    def leave(self, row: Row) -> None:
        """Remove a row, and pay for its stay."""
        if self.chip.pop(row):
            self.spent += (QUERY | KEY)[row[0]] * self.widths[row[0]]

    def arrive(self, row: Row) -> None:
        """Add a row for which there is room, and take the pairs that it completes."""
        name, number = row
        self.chip.setdefault(row, name in {"Q", "dO", "K", "V"})
        for other in range(self.keys if name in QUERY else self.queries):
            pair = (number, other) if name in QUERY else (other, number)
            rows = [(each, pair[0]) for each in QUERY] + [(each, pair[1]) for each in KEY]
            if pair not in self.taken and all(each in self.chip for each in rows):
                self.taken.add(pair)
                self.chip.update(dict.fromkeys(rows, True))

    def end(self) -> tuple[int, int]:
        """Return the pairs taken, and the weights of all useful stays."""
        for row in list(self.chip):
            self.leave(row)
        return len(self.taken), self.spent


def at_random(walk: Walk, draw: Random) -> None:
    """Let rows arrive in random runs of one kind, in the place of rows of random kinds."""
    for _ in range(draw.randint(5, 60)):
        name = draw.choice([*QUERY, *KEY])
        units = walk.queries if name in QUERY else walk.keys
        first = draw.randrange(units)
        for step in range(draw.randint(1, units)):
            row = name, (first + step) % units
            while row not in walk.chip and walk.room() < walk.widths[name]:
                kind = draw.choice([each for each, _ in walk.chip])
                walk.leave(draw.choice([each for each in walk.chip if each[0] == kind]))
            walk.arrive(row)


def in_turn(walk: Walk, draw: Random) -> None:
    """Hold a tile of units of one side, whose rows arrive in a random order of kinds, and stream those of the other."""
    held, streamed = draw.choice([(QUERY, KEY), (KEY, QUERY)])
    units = walk.queries if held is QUERY else walk.keys
    passing = walk.keys if held is QUERY else walk.queries
    early = draw.sample(sorted(streamed), draw.randint(0, len(streamed) - 1))  # held for some units of the other side
    kept = draw.randint(0, passing) if early else 0
    tile = (walk.size - sum(map(walk.widths.__getitem__, streamed))) - kept * sum(map(walk.widths.__getitem__, early))
    tile //= sum(map(walk.widths.__getitem__, held))
    if tile < 1:
        return
    for start in range(0, units, tile):
        for name in [*early, *draw.sample(sorted(held), len(held))]:
            for number in range(kept) if name in early else range(start, min(start + tile, units)):
                walk.arrive((name, number))
        for number in range(passing):
            for name in draw.sample(sorted(streamed), len(streamed)):
                walk.arrive((name, number))
            for row in [row for row in walk.chip if row[0] in streamed and row[1] == number]:
                walk.leave(row)
        for row in list(walk.chip):
            walk.leave(row)


@pytest.mark.parametrize("policy", [at_random, in_turn])
def test_no_walk_takes_more_pairs_than_its_weights_allow(policy: Callable[[Walk, Random], None]) -> None:
    draw, closest = Random(5), 0.0
    for _ in range(150):
        width, values = draw.choice([(1, 1), (1, 1), (1, 2), (2, 1), (3, 2), (2, 5)])
        widths = {"Q": width, "dO": values, "dQ": width, "K": width, "V": values, "dK": width, "dV": values}
        size = draw.randint(sum(widths.values()), 12 * sum(widths.values()))
        walk = Walk(widths, size, draw.randint(1, 40), draw.randint(1, 40))
        policy(walk, draw)
        pairs, spent = walk.end()
        least = VALUES["row-atomic-backward"](Pairs(pairs, width, values, values), size)
        assert least is not None
        assert least <= spent
        closest = max(closest, least / max(1, spent))
    assert policy is at_random or closest > 0.5
