"""Lower bounds on the accesses of each class of schedules, in integers; :mod:`iomodel.counting.bounds` proves them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, gcd, isqrt
from operator import itemgetter
from typing import NamedTuple

FORMED_ONCE = frozenset({"exact", "exact-backward", "product"})
"""The classes of all schedules that form each product once."""
FORMED_AGAIN = {"exact": "recomputed", "exact-backward": "recomputed-backward"}
"""The class that allows scores to be formed again, for each that does not."""
ANY_SCHEDULE = FORMED_ONCE | {"compulsory", *FORMED_AGAIN.values()}
"""The bounds that fix neither an order nor what moves together."""
HOLDS_FOR = {
    "compulsory": "every algorithm that reads each row that takes part and writes each result",
    "exact": "schedules that form each product once, in any order, at the level of single elements",
    "exact-backward": "backward schedules that form each product once, S in the pass itself and D from O, in any order",
    "recomputed": "schedules that form scores any number of times, in any order, at the level of single elements",
    "recomputed-backward": "backward schedules that form scores and dP any number of times, in any order",
    "row-atomic": "schedules that move whole rows of Q, K, V and O, in any order",
    "row-atomic-backward": "backward schedules moving whole rows, O too and taking a pair while its seven are on chip",
    "fixed-split": "schedules that move whole rows and keep the share of memory of Q and K constant",
    "divided-keys": "busy processors, each of which takes a key of a group for all rows of the group",
    "product": "schedules of matrix products that form each product once, in any order",
}
"""The schedules that each bound holds for."""


@dataclass(frozen=True)
class Pairs:
    """Visible pairs, widths [elements], processors, gradients; `key_values` is 0 where V is a part of K."""

    count: int
    width: int
    key_values: int
    value_width: int
    gradients: int = 0
    """The elements of dQ, dK and dV of a backward pass, less those of O, which D is made of."""
    outputs: int = 0
    """Those of O."""
    groups: Sequence[tuple[int, int]] = ()
    """Groups of heads that share their keys, in the order of pairs: how many so far, and minus the pairs of each."""
    rows: int = 0
    """The query rows over all heads, if each of them sees every key of its sequence."""
    keys: int = 0
    """The keys of the shortest sequence."""
    compulsory: int = 0
    """What every algorithm moves."""
    units: int = 1

    def filling(self, together: int, size: int) -> int:
        """Count the groups whose pairs of indices fill a memory of `size` from empty; see :func:`filled`."""
        place = bisect_right(self.groups, -_ceil(9 * size**2, 16 * together), key=itemgetter(1))
        return self.groups[place - 1][0] if place else 0


def index_pairs(name: str, w: Pairs) -> int:
    """Return the number of pairs of a query index and a key index that a visible pair brings together [-]."""
    keys = w.width + w.key_values
    if name == "exact":
        return (w.width + w.value_width) * keys
    if name == "recomputed":
        return w.width * (keys + w.value_width) + min(w.key_values, w.value_width)
    if name == "exact-backward":
        return (2 * w.width + w.value_width) * 2 * keys
    return (w.width + w.value_width) * (keys + 2 * w.width) + (w.width + 1) * w.value_width


class Product(NamedTuple):
    """The index pairs that a visible pair brings together, and how many it may lack where its products are divided.

    At most `cut` for each phase of its products before which a value of it is on chip, and `moved` for each access to a
    value of it.
    """

    together: int
    cut: int
    moved: int

    def weighed(self, weight: int) -> Product:
        """Return the same where an index pair weighs more than 1."""
        return Product(*(weight * number for number in self))


def product_of(name: str, w: Pairs) -> Product:
    """Return the index pairs of a class, and what divided products lack of them."""
    together, width, values = index_pairs(name, w), w.width, w.value_width
    if name == "exact" and w.key_values:
        return Product(together, _ceil(together, 2), _ceil(together, 4))
    if name == "exact":
        return Product(together, _ceil((2 * width + values) ** 2, 8), _ceil(together, 3))
    if name == "exact-backward" and values <= width:
        return Product(together, _ceil(together, 3), _ceil(together, 4))
    return Product(together, together, _ceil(together, 2))


def product_twice(w: Pairs) -> Product:
    """Return the index pairs of a backward pass, those of two gradients counted twice, and what divided products lack.

    Theorem 6 of `docs/paper.md`.
    """
    width, values = w.width, w.value_width
    together = index_pairs("exact-backward", w) + width * (width + values)
    if values > width:
        return Product(together, together, _ceil(together, 2))
    return Product(together, 2 * width**2 + 3 * width * values, _ceil(together, 4))


def created(w: Pairs, size: int) -> int:
    """Bound the accesses from phases of loads and creations, in `size` elements; at most 0 where it says nothing."""
    return created_in_bytes(w, (1, 1), size)


def created_in_bytes(w: Pairs, widths: tuple[int, int], size: int) -> int:
    """Return the bound of :func:`created` in bytes, for Q and O and for K and V of two widths [B]."""
    narrow, wide = min(widths), max(widths)
    phases = _phases_of_latent if not w.key_values else _phases
    least = phases(w, size, narrow * widths[0] * widths[1], narrow)
    return (2 * size - wide + 1) * (least - w.units) - narrow * w.count


def _phases(w: Pairs, size: int, weight: int, _: int) -> int:
    return _ceil(w.count * (w.width + w.value_width), max(1, isqrt(size**3 // weight)))


def _phases_of_latent(w: Pairs, size: int, weight: int, narrow: int) -> int:
    """Return the larger of two bounds: for pairs formed and used in any phase, and for each in one at most."""
    products = w.count * (w.width + w.value_width)
    any_phase = _ceil(products, max(1, isqrt(2 * size**3 // weight)))
    root = _above_root(size**3, weight)
    lost = 21 * narrow * w.count * root  # 21/40 exceeds 0.52448, the most that a pair adds
    return max(any_phase, _ceil((40 * products * size << PRECISION) - lost, 40 * size * root))


def _above_root(cube: int, weight: int = 1) -> int:
    return isqrt((cube << 2 * PRECISION) // weight) + 1


PRECISION = 20
"""Binary places of the square root of a cube."""


def created_backward(w: Pairs, size: int) -> int:
    """Bound the accesses of a backward pass from phases of loads and creations; at most 0 where it says nothing."""
    root = _above_root(size**3)
    products = (1299 * w.width + 1000 * w.value_width) * size << PRECISION  # 1299/500 for 3 sqrt(3) / 2
    phases = _ceil(w.count * (products - 610 * root), 500 * size * root)
    return 2 * size * (phases - w.units) - 2 * w.count


def formed(w: Pairs, product: Product, size: int) -> int:
    """Bound the accesses of pairs that bring so many pairs of indices together each, in `size` elements."""
    together, cut, moved = product
    if 3 * size >= 4 * cut:  # Y = M is the best
        groups = w.filling(together, size) if 3 * size >= 8 * moved else 0
        return filled(w.count * together, groups, size)
    near = size >= 12 * cut - isqrt(128 * cut**2)
    many = 2 * cut - _ceil(size, 2) if near else isqrt(4 * cut * size)
    return max(with_arrivals(w.count, product, size, many), with_arrivals(w.count, product, size, many + 1))


def filled(together: int, groups: int, size: int) -> int:
    """Return the bound for pairs of indices of which each of some groups fills a memory of `size` from empty."""
    return _ceil(16 * together + 15 * groups * size**2, 16 * size)


def stayed(w: Pairs, product: Product, size: int) -> int:
    """Bound the accesses where each row sees more keys than fit, and an output that stays for all takes their room.

    Theorem 9 of `docs/paper.md`, with the shortest phases of at most `size` / 4 arrivals; 0 where none are allowed.
    """
    unit = w.width + w.key_values
    beyond = 4 * w.keys * unit - 5 * size  # 4 kappa, for phases of size / 4 arrivals
    if not w.rows or beyond <= 2 * size:
        return 0
    spilled = _ceil(product.cut * beyond + 2 * size * unit * w.value_width, beyond - 2 * size)
    if 16 * spilled > 3 * size:
        return 0
    many = _ceil(size - isqrt(size**2 - 4 * spilled * size), 2)
    if 4 * many > size:
        return 0
    gained = (size - many) ** 2 * w.value_width * w.rows
    return _ceil(2 * w.count * product.together * size + gained, 2 * size**2)


def with_arrivals(pairs: int, product: Product, size: int, many: int) -> int:
    """Return the bound from phases of `many` arrivals."""
    together, cut, moved = product
    risen = 4 * many * size if many <= size else (many + size) ** 2
    return _ceil(4 * many * pairs * together, max(risen, many**2 + 4 * cut * size, 4 * many * moved))


def formed_in_bytes(w: Pairs, product: Product, widths: tuple[int, int], size: int) -> int:
    """Return the bound in bytes, of `size` bytes, for indices of queries and of keys of two widths [B].

    Any other unit of all sizes gives the bound in that unit.
    """
    pairs, narrow, wide = w.count, min(widths), max(widths)
    together, cut, moved = weighed = product.weighed(widths[0] * widths[1])
    if size > wide and 4 * cut * size <= narrow * (3 * size**2 - 2 * wide * size - wide**2):
        groups = w.filling(together, size) if 3 * narrow * size >= 8 * moved else 0
        return filled(pairs * together, groups, size)
    root = isqrt(4 * cut * size // narrow)
    longest = 2 * cut // narrow - size // 2
    phases = {many + more for many in (size, longest, root) for more in (0, wide // 2, wide)}
    return max((_with_weight(pairs, weighed, size, many, narrow, wide) for many in phases), default=0)


def _with_weight(pairs: int, weighed: Product, size: int, many: int, narrow: int, wide: int) -> int:
    """Return the bound from phases whose arrivals weigh more than many - wide and at most `many` bytes."""
    if many <= wide:
        return 0
    risen = Fraction(size) if many <= size else Fraction((many + size) ** 2, 4 * many)
    ends = [Fraction(weight, 4) + Fraction(weighed.cut * size, narrow * weight) for weight in (many - wide, many)]
    return ceil(pairs * weighed.together / max(risen, *ends, Fraction(weighed.moved, narrow)))


def _exact(w: Pairs, size: int) -> int:
    product = product_of("exact", w)
    return max(created(w, size), formed(w, product, size), stayed(w, product, size))


def _exact_backward(w: Pairs, size: int) -> int:
    once = formed(w, product_of("exact-backward", w), size)
    twice = formed(w, product_twice(w), size + 1) - w.gradients
    return max(w.compulsory + w.outputs, once + w.outputs, twice, created_backward(w, size) + w.outputs)


def _row_atomic_backward(w: Pairs, size: int) -> int:
    width, values = w.width, w.value_width
    product = 2 * (3 * width + values) * (width + values) - max(0, width - values) * values
    return _ceil(2 * w.count * product, 2 * size + max(0, values - width)) - w.gradients


def _row_atomic(w: Pairs, size: int) -> int | None:
    if size <= max(w.width, w.value_width):
        return None
    return _ceil(w.count * w.width**2, size - w.width) + w.count * w.value_width**2 // (size - w.value_width)


def _fixed_split(w: Pairs, size: int) -> int:
    return _ceil(w.count * (w.width + w.value_width) ** 2, size)


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


VALUES: Mapping[str, Callable[[Pairs, int], int | None]] = {
    "exact": _exact,
    "exact-backward": _exact_backward,
    "recomputed": lambda w, size: formed(w, product_of("recomputed", w), size),
    "recomputed-backward": lambda w, size: formed(w, product_of("recomputed-backward", w), size),
    "row-atomic": _row_atomic,
    "row-atomic-backward": _row_atomic_backward,
    "fixed-split": _fixed_split,
}
"""The bound of each class [elements] from the pairs and the memory [elements]; None where its proof does not hold."""


def bound_bytes_of(name: str, w: Pairs, elements: int, widths: tuple[int, int], size: int | None) -> int:
    """Return a bound in bytes, for Q and O and for K and V of two widths [bit/4] in a memory of `size` bytes, if known.

    The proof weighs indices in any unit: in bytes, or in the largest part of a byte that both widths are multiples of.
    """
    narrow = _ceil(elements * min(widths), 32)
    if size is None or widths[0] == widths[1] or name not in ("exact", "recomputed"):
        return narrow
    unit = gcd(32, *widths)
    parts = 32 // unit
    weighed = widths[0] // unit, widths[1] // unit
    weight = formed_in_bytes(w, product_of(name, w), weighed, size * parts)
    if name == "exact":
        weight = max(weight, created_in_bytes(w, weighed, size * parts))
    return max(narrow, _ceil(weight, parts))


@lru_cache(maxsize=256)
def classes_of(classes: frozenset[str], direction: str, latent: bool = False) -> Sequence[str]:
    """Return the classes, by name, whose proofs hold for a direction: of one pass, and some need separate K and V."""
    backward = {name for name in VALUES if name.endswith("backward")}
    proved = {"forward": VALUES.keys() - backward, "backward": backward}
    if latent:
        proved = {"forward": {"exact", "recomputed"}}
    wider = {FORMED_AGAIN[name] for name in classes & FORMED_AGAIN.keys()}
    return sorted((classes | wider) & frozenset(proved.get(direction, frozenset())))
