r"""Exact closed forms of the tiles, rows and pairs of tiles that a band mask visits.

A band shows the inner positions p + first .. p + last to the outer position p. Cut both axes into tiles;
a pair of tiles is *visited* when it holds a visible pair of positions, and is then moved whole. Tile i of the
outer axis visits the inner tiles lo(i) .. hi(i)-1, two staircases along straight lines

.. math:: hi(i) = \min(T', \lceil g_i ((i+1) u + g_o\,last) / (g_o v) \rceil), \quad
          lo(i) = \max(0, \lfloor g_i (i u + g_o\,first) / (g_o v) \rfloor)

so every count is a difference of two sums of floors (:class:`~iomodel.nests.floor_sum_node.FloorSum`). Here u and v are
the outer and inner tile, g_o and g_i the rows that one position has (the group of packed GQA; one of the two is 1),
T' the inner tiles up to the last visible position. The extent of a ragged last outer tile may be rounded up
in hi: the tile sees the last visible position, so hi is clipped to T' anyway.

Floors and ceilings are monotone, so they are taken before a minimum or maximum, never of one. (sympy 1.14 takes
Max(0, 2 - 2 W) / 6 for an integer, since its numerator is even, and would drop the floor around it.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from sympy import Add, Expr, Function, Integer, Max, Min, ceiling, floor
from sympy.core.symbol import Str

from iomodel.common.band import Band
from iomodel.counting.mask_kind import MaskKind
from iomodel.counting.terms import greatest, least, rounded
from iomodel.nests.floor_sum_node import FloorSum
from iomodel.nests.symbols import N_k, N_q, W_l, W_r

ONE = Integer(1)


@dataclass(frozen=True)
class Tiled:
    """An axis of `length` positions with `group` rows each, cut into tiles of `tile` rows.

    Paged memory holds `stored` rows, a whole number of pages; the last tile is moved up to the end of its page. The
    mask applies to `reach` positions, if not to `length`: those of the rows that pad the last tile included.
    """

    length: Expr
    tile: Expr = ONE
    group: Expr = ONE
    stored: Expr | None = None
    reach: Expr | None = None

    @property
    def positions(self) -> Expr:
        """Positions that the mask applies to [positions]."""
        return self.length if self.reach is None else self.reach

    @property
    def rows(self) -> Expr:
        """Rows of the whole axis [rows]."""
        return self.length * self.group

    @property
    def trips(self) -> Expr:
        """Tiles of the whole axis [-]."""
        return ceiling(self.rows / self.tile)

    @property
    def moved(self) -> Expr:
        """Rows that the tiles of the whole axis move [rows]."""
        return self.rows if self.stored is None else least(self.stored, self.trips * self.tile)


def query_to_key(mask: MaskKind) -> Band:
    """Return the band of keys that a query sees: key - query lies in off - left .. off + right.

    >>> query_to_key(MaskKind(left=False, right=True, causal=True))
    Band(first=None, last=N_k - N_q)
    """
    right = Integer(0) if mask.causal else W_r
    diagonal = Integer(0) if mask.top_left else N_k - N_q
    return Band.around(diagonal, W_l if mask.left else None, right if mask.right else None)


@dataclass(frozen=True)
class Visits:
    """The counts of a band over two tiled axes; every count is exact for all positive integers."""

    outer: Tiled
    inner: Tiled
    band: Band

    @property
    def _slope(self) -> Expr:
        return self.inner.group * self.outer.tile

    @property
    def _modulus(self) -> Expr:
        return self.outer.group * self.inner.tile

    @cached_property
    def start(self) -> Expr:
        """The first outer tile that sees an inner position."""
        if self.band.last is None:
            return Integer(0)
        return greatest(0, floor(-self.band.last * self.outer.group / self.outer.tile))

    @cached_property
    def _stops(self) -> tuple[Expr, ...]:
        """Upper bounds of `stop`, whose minimum is exact."""
        if self.band.first is None:
            return (self.outer.trips,)
        seen = self.outer.group * (self.inner.positions - self.band.first)
        return self.outer.trips, ceiling(seen / self.outer.tile)

    @cached_property
    def stop(self) -> Expr:
        """One past the last outer tile that sees an inner position."""
        return least(*self._stops)

    @cached_property
    def _inner_stops(self) -> tuple[Expr, ...]:
        """Upper bounds of the inner tiles up to the last visible position (T'), whose minimum is exact."""
        if self.band.last is None:
            return (self.inner.trips,)
        seen = self.inner.group * (self.outer.positions + self.band.last)
        return self.inner.trips, ceiling(seen / self.inner.tile)

    @cached_property
    def _inner_stop(self) -> Expr:
        return least(*self._inner_stops)

    @cached_property
    def _saturated_from(self) -> Expr:
        """The first outer tile that reaches the last visible inner tile."""
        if self.band.last is None:
            return self.start
        first = (rounded(ceiling, (stop * self._modulus - self._hi_offset) / self._slope) for stop in self._inner_stops)
        return least(greatest(least(*first), self.start), self.stop)

    @property
    def _hi_offset(self) -> Expr:
        last = self.band.last
        return self.inner.group * (self.outer.tile + self.outer.group * last) + self._modulus - 1

    @property
    def _lo_offset(self) -> Expr:
        return self.inner.group * self.outer.group * self.band.first

    @cached_property
    def live_outer_tiles(self) -> Expr:
        """Outer tiles that see an inner position [-]."""
        return self.stop - self.start

    @cached_property
    def live_outer_rows(self) -> Expr:
        """Rows of the outer tiles that see an inner position [rows]."""
        return self._outer_extent - self.start * self.outer.tile

    @cached_property
    def _outer_extent(self) -> Expr:
        """Outer rows up to the end of the last tile that sees an inner position."""
        return _extent(self.stop, self.outer)

    @cached_property
    def _inner_extent(self) -> Expr:
        """Inner rows up to the end of the last visible tile."""
        return _extent(self._inner_stop, self.inner)

    @cached_property
    def _saturated(self) -> Expr:
        """Outer tiles that reach the last visible inner tile."""
        return self.stop - self._saturated_from

    @cached_property
    def _unsaturated_stops(self) -> Expr:
        """The sum of hi(i) over the live outer tiles that do not reach the last visible inner tile."""
        if self.band.last is None:
            return Integer(0)
        offset = self._slope * self.start + self._hi_offset
        return FloorSum(self._saturated_from - self.start, self._modulus, self._slope, offset)

    @cached_property
    def _starts(self) -> Expr:
        """The sum of lo(i) over the live outer tiles."""
        if self.band.first is None:
            return Integer(0)
        above = self._above
        return FloorSum(self.stop - above, self._modulus, self._slope, self._slope * above + self._lo_offset)

    @cached_property
    def _unsaturated_pairs(self) -> Expr:
        """Visited pairs, less one full row of T' tiles for each saturated outer tile."""
        return self._unsaturated_stops - self._starts

    @cached_property
    def pairs(self) -> Expr:
        """Visited pairs of tiles [-]."""
        return self._unsaturated_pairs + self._saturated * self._inner_stop

    @cached_property
    def inner_rows(self) -> Expr:
        """Inner rows visited, summed over the outer tiles [rows]."""
        return self.inner.tile * self._unsaturated_pairs + self._saturated * self._inner_extent

    @cached_property
    def clipped_inner_rows(self) -> Expr:
        """Inner rows visited up to the last one that an outer tile sees, summed over the outer tiles [rows]."""
        rows = replace(self, inner=replace(self.inner, tile=ONE))  # at tiles of one row, hi(i) is one past the last
        return rows._unsaturated_stops + rows._saturated * rows._inner_stop - self.inner.tile * self._starts

    @cached_property
    def _last_low(self) -> Expr:
        """The first inner tile that the last live outer tile visits."""
        if self.band.first is None:
            return Integer(0)
        lows = (rounded(floor, (self._slope * (stop - 1) + self._lo_offset) / self._modulus) for stop in self._stops)
        return greatest(0, least(*lows))

    @cached_property
    def _missing_rows(self) -> Expr:
        """Rows by which the last live outer tile falls short of a full tile."""
        return self.stop * self.outer.tile - self._outer_extent

    @cached_property
    def outer_rows(self) -> Expr:
        """Outer rows visited, summed over the inner tiles [rows]."""
        return self.outer.tile * self.pairs - self._missing_rows * (self._inner_stop - self._last_low)

    @cached_property
    def area(self) -> Expr:
        """Elements of the visited pairs of tiles, clipped to the tensor [elements]."""
        last_width = self._inner_extent - self.inner.tile * self._last_low
        return self.outer.tile * self.inner_rows - self._missing_rows * last_width

    @cached_property
    def kept_pairs(self) -> Expr:
        """Visits of a serpentine walk that find their inner tile on chip, where the walk before has ended [-]."""
        return Add(*(self._turns.values()))

    @cached_property
    def kept_rows(self) -> Expr:
        """Inner rows of these visits [rows]."""
        last = self._inner_extent - self.inner.tile * (self._inner_stop - 1)
        widths = {"saturated": last, "first": _extent(ONE, self.inner)}
        rows = Add(*(widths.get(place, self.inner.tile) * turns for place, turns in self._turns.items()))
        return rows - (self.inner.tile - last) * self._low_turns_at_last

    @cached_property
    def _turns(self) -> dict[str, Expr]:
        """Kept visits by the place of their inner tile, which is whole unless it is the first or the last.

        Even outer tiles turn at hi(i) - 1, which is the last inner tile if they are saturated; odd ones at lo(i), which
        is the first inner tile up to some outer tile. A turn keeps its tile if the next outer tile has the same bound.
        """
        turns = {"saturated": self._numbers(self._saturated_from, even=True)}
        if self.band.last is not None:
            turns["rising stop"] = self._alike(self.start, self._saturated_from, self._hi_offset, even=True)
        above = self._above
        turns["first"] = self._numbers(self.start, above, even=False)
        if self.band.first is not None:
            turns["rising start"] = self._alike(above, self.stop, self._lo_offset, even=False)
        return turns

    @cached_property
    def _above(self) -> Expr:
        """The first live outer tile that does not see the first inner tile."""
        if self.band.first is None:
            return self.stop
        first = rounded(ceiling, (self._modulus - self._lo_offset) / self._slope)
        return least(greatest(first, self.start), self.stop)

    @cached_property
    def _low_turns_at_last(self) -> Expr:
        """Kept visits of odd outer tiles whose first inner tile, not the first of all, is the last visible one."""
        if self.band.first is None:
            return Integer(0)
        lengths = (((stop - 1) * self._modulus - self._lo_offset) / self._slope for stop in self._inner_stops)
        first = (rounded(ceiling, length) for length in lengths)
        return self._numbers(least(greatest(least(*first), self._above), self.stop), even=False)

    def _numbers(self, first: Expr, stop: Expr | None = None, *, even: bool) -> Expr:
        """Count the even or odd numbers i with first <= i and i + 1 < stop, by default of the live outer tiles."""
        begin = _half(first, up=even)
        end = _half(self.stop if stop is None else stop, 0 if even else -1)
        return (end if self.band == Band() else greatest(end, begin)) - begin

    def _alike(self, first: Expr, stop: Expr, offset: Expr, *, even: bool) -> Expr:
        """Count the even or odd i, first <= i and i + 1 < stop, with the same value of a staircase at i and i + 1.

        The values differ by at most one everywhere, or by at least one everywhere.
        """
        number = self._numbers(first, stop, even=even)
        begin = 2 * _half(first, up=even) + (0 if even else 1)
        here, after = (
            FloorSum(number, self._modulus, 2 * self._slope, self._slope * (begin + step) + offset) for step in (0, 1)
        )
        return greatest(0, number + here - after)


def _half(value: Expr | int, shift: int = 0, up: bool = False) -> Expr:
    """Return half of `value + shift`, rounded up or down, of each argument of a minimum or maximum."""
    if isinstance(value, Min | Max):
        halves = (_half(part, shift, up) for part in value.args)
        return (least if isinstance(value, Min) else greatest)(*halves)
    return (ceiling if up else floor)((value + shift) / Integer(2))


class Count(Function):  # type: ignore[misc]
    """`Count(quantity, outer, u, v, group)`: a count of :class:`Visits` without a closed form.

    Mask data or an enumeration of tiles gives the value. `outer` is the stationary axis, u and v are the outer and
    inner tiles, `group` is the rows of a query.
    """

    nargs = 5
    is_integer = True
    is_nonnegative = True

    def _sympystr(self, printer: Any) -> str:
        quantity, outer, *sizes = (printer.doprint(arg) for arg in self.args)
        return f"{quantity}({outer}; {', '.join(sizes)})"

    def _latex(self, printer: Any) -> str:
        quantity, outer, *sizes = self.args
        name = str(quantity).replace("_", r"\_")
        return rf"\text{{{name}}}_{{\text{{{outer}}}}}({', '.join(map(printer.doprint, sizes))})"


@dataclass(frozen=True)
class TabulatedCounts:
    """The counts of a tabulated mask, by the names that :class:`Visits` has for them."""

    axis: str
    outer: Tiled
    inner: Tiled

    def __getattr__(self, quantity: str) -> Expr:
        if quantity not in TABULATED:
            raise AttributeError(quantity)
        group = self.outer.group * self.inner.group
        return Count(Str(quantity), Str(self.axis), self.outer.tile, self.inner.tile, group)


TABULATED = ("pairs", "inner_rows", "outer_rows", "area", "live_outer_tiles", "live_outer_rows")


@lru_cache(maxsize=512)
def visits(outer: Tiled, inner: Tiled, band: Band) -> Visits:
    """Build the counts of a band once for all statements of a nest that share them."""
    return Visits(outer, inner, band)


def _extent(stop: Expr, axis: Tiled) -> Expr:
    """Return the rows in the first `stop` tiles of an axis."""
    if stop == axis.trips:
        return axis.moved
    return least(axis.rows if axis.stored is None else axis.stored, stop * axis.tile)


def visible_pairs(band: Band, outer: Tiled, inner: Tiled) -> Expr:
    """Return the pairs of positions that the band shows, as pairs of tiles of one position [-]."""
    return visits(Tiled(outer.length), Tiled(inner.length), band).pairs
