"""Terms of inferred formulas: products of lengths and of ceilings of lengths over tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice, product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sympy import Expr

TILED = {
    "block_q": "q_len", "block_kv": "kv_len", "block_m": "rows", "block_n": "out_features", "block_k": "in_features",
}  # fmt: skip
"""Length that each tile divides, unless it is given."""
CLOSE = 1e-9
"""Relative error of a fit in floats below which it is computed again in fractions."""
TRIED = 200
"""Fits in floats, of each number of terms, that are computed again."""

Numbers = Mapping[str, int]


@dataclass(frozen=True)
class Factor:
    """A length to a power, times numbers of its `tiles`, each a ceiling, and sizes of its `sizes` of tiles."""

    length: str
    power: int = 0
    tiles: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()

    @property
    def degree(self) -> int:
        """Number of lengths, tiles and ceilings in the product."""
        return self.power + len(self.tiles) + len(self.sizes)

    def at(self, numbers: Numbers) -> int:
        """Evaluate the factor."""
        value = numbers[self.length] ** self.power
        for tile in self.tiles:
            value *= -(-numbers[self.length] // numbers[tile])
        for tile in self.sizes:
            value *= numbers[tile]
        return int(value)

    def expression(self, symbols: Mapping[str, Expr]) -> Any:
        """Return the factor as a formula."""
        from sympy import Integer, ceiling

        length = symbols[self.length]
        value: Any = Integer(1) * length**self.power
        for tile in self.tiles:
            value *= ceiling(length / symbols[tile])
        for tile in self.sizes:
            value *= symbols[tile]
        return value


Term = tuple[Factor, ...]


def factors(length: str, tiles: Sequence[str]) -> list[Factor]:
    """List the factors of a length of degree two at most, of one power if it has no tile."""
    if not tiles:
        return [Factor(length), Factor(length, 1)]
    plain = [
        Factor(length, power, chosen)
        for power in (0, 1, 2)
        for number in range(len(tiles) + 1)
        for chosen in combinations(tiles, number)
        if power + number <= 2
    ]
    whole = [Factor(length, power, (tile,), (tile,)) for power in (0, 1) for tile in tiles]
    return [*plain, *whole, *(Factor(length, 0, (), (tile,)) for tile in tiles)]


def terms(names: Sequence[str], tiled: Mapping[str, str]) -> list[Term]:
    """List the products of one factor for each length, the simplest first."""
    lengths = [name for name in names if name not in tiled]
    choices = [factors(length, [tile for tile, of in tiled.items() if of == length]) for length in lengths]
    listed = [tuple(factor for factor in chosen if factor.degree) for chosen in product(*choices)]
    return sorted(listed, key=lambda term: sum(factor.degree for factor in term))


def value(term: Term, numbers: Numbers) -> int:
    """Evaluate a term."""
    result = 1
    for factor in term:
        result *= factor.at(numbers)
    return result


def fits(columns: Sequence[Sequence[int]], counts: Sequence[int], most: int) -> list[tuple[tuple[int, Fraction], ...]]:
    """Find the sums of at most `most` columns, with coefficients, that equal the counts exactly.

    All sums of the least number of columns are returned, as pairs of column and coefficient.
    """
    table = np.array(columns, dtype=np.float64).T
    goal = np.array(counts, dtype=np.float64)
    norms = np.linalg.norm(table, axis=0)
    table, size = table / norms, float(np.linalg.norm(goal))
    goal = goal / size
    for number in range(1, most + 1):
        exact = [_solved(columns, counts, chosen) for chosen in islice(_close(table, goal, number), TRIED)]
        kept = [each for each in exact if each]
        if kept:
            return kept
    return []


def _close(table: Any, goal: Any, number: int) -> Any:
    """Yield the columns of the closest fits, the first columns first among equals."""
    if number == 1:
        error = 1 - (table.T @ goal) ** 2
        yield from ((int(i),) for i in np.argsort(error, kind="stable") if error[i] < CLOSE)
        return
    if number == 2:
        yield from (pair for pair in _pairs(table, goal))
        return
    for first in range(table.shape[1]):
        column = table[:, first]
        rest = table - np.outer(column, column @ table)
        norms = np.linalg.norm(rest, axis=0)
        usable = norms > 1e-6
        left = goal - column * (column @ goal)
        scale = float(np.linalg.norm(left))
        if scale < 1e-9:
            continue
        rest = np.where(usable, rest / np.where(usable, norms, 1), 0)
        yield from ((first, *pair) for pair in _pairs(rest, left / scale) if first < pair[0])


def _pairs(table: Any, goal: Any) -> list[tuple[int, int]]:
    """List the pairs of normalised columns whose span contains the goal, nearly."""
    gram, along = table.T @ table, table.T @ goal
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = (along[:, None] ** 2 + along[None, :] ** 2 - 2 * gram * np.outer(along, along)) / (1 - gram**2)
    explained[~(1 - gram**2 > 1e-9)] = 0
    error = np.abs(1 - explained)
    first, second = np.nonzero(np.triu(error < CLOSE, 1))
    order = np.argsort(first + second, kind="stable")
    return [(int(first[i]), int(second[i])) for i in order]


def _solved(
    columns: Sequence[Sequence[int]], counts: Sequence[int], chosen: tuple[int, ...]
) -> tuple[tuple[int, Fraction], ...]:
    """Solve for the coefficients in fractions; nothing if the sum does not equal every count."""
    rows = [[Fraction(columns[i][point]) for i in chosen] + [Fraction(counts[point])] for point in range(len(counts))]
    for place in range(len(chosen)):
        pivot = next((row for row in rows[place:] if row[place]), None)
        if pivot is None:
            return ()
        rows.remove(pivot)
        rows.insert(place, [each / pivot[place] for each in pivot])
        top = rows[place]
        rows = [
            row if at == place else [a - row[place] * b for a, b in zip(row, top, strict=True)]
            for at, row in enumerate(rows)
        ]
    if any(row[-1] for row in rows[len(chosen) :]):
        return ()
    coefficients = [rows[place][-1] for place in range(len(chosen))]
    return tuple(zip(chosen, coefficients, strict=True)) if all(coefficients) else ()
