r"""Continuous optima of tiles and leading terms of their traffic, as formulas in N, d and M.

One head, floors and ceilings dropped, footprint and traffic in elements, for long sequences and d^2 << M << N d.
Kernels that share no tile are optimised separately, and their traffic is summed. Three shapes occur:

*No tiles*: the traffic is its own answer.

*One-sided* (a stationary tile u, a streamed tile v): traffic falls with u and never with v, so v takes its least size
b and u all the memory that is left, u* = (M - F(0, b)) / (F(1, b) - F(0, b)), for the footprint F is affine in u.
Under a mask the traffic is that at v = 1, where the count of visited rows is an elementary formula.

*Two-sided* traffic p / x + q / y + rest with a footprint alpha x + beta y + gamma x y + delta (a product that keeps a
tile of its result): the tiles in the ratio x : y = p : q that fill the memory, y the positive root of
gamma (p / q) y^2 + (alpha p / q + beta) y + delta = M. If traffic and footprint are symmetric (a GEMM), this is the
optimum, by convexity. If not, the optimum is a root of a quartic, and this comes within a factor of 1 + O(1 / sqrt(M))
of it: by the inequality of the means p / x + q / y >= 2 sqrt(p q / (x y)) >= 2 sqrt(p q gamma / M), which is the
leading term here. It holds below M = d^2 too. A tile that would outgrow its axis covers the axis, and the other takes
the memory that is left. Under a causal mask half of the tiles are visited, to leading order, and a window short against
the tiles has no such formula.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from sympy import Add, Expr, Symbol, ceiling, expand, factor, factor_terms, floor, latex, limit, simplify, sqrt

from iomodel.algorithms import AlgorithmLike, exact_algorithms, name_of
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.common.frozen_dict import FrozenDict
from iomodel.common.keywords import strict
from iomodel.common.results import PlainData, check_keys, decoded_values, plain
from iomodel.common.validation import as_mapping
from iomodel.counting import folds as counts
from iomodel.counting.coverage import View
from iomodel.counting.expressions import declared, substituted
from iomodel.counting.kinds import FormulaKind, check_kind, known_direction, mask_kind
from iomodel.counting.mask_kind import FULL
from iomodel.counting.options import check_options, structural
from iomodel.counting.structure import Part, parts
from iomodel.counting.terms import replaced
from iomodel.errors import InputError, shown
from iomodel.nests.algorithm import Algorithm
from iomodel.nests.alphabet import NUMBERS
from iomodel.nests.language import Nest
from iomodel.nests.rules import DeclarationError
from iomodel.nests.symbols import BY_NAME, NAME_OF, B, G, H, H_kv, M, N, N_k, N_q, W_l, W_r, b, by_name, d, d_v
from iomodel.workloads.call import Mask, known_mask

ONE_HEAD = {B: 1, H: 1, H_kv: 1, G: 1}
BEYOND = Symbol("beyond", positive=True)
_t = Symbol("t", positive=True)


@dataclass(frozen=True, repr=False)
class Optimum(PlainData):
    """The best tiles of one algorithm and their traffic for one head, as formulas.

    Attributes
    ----------
    tiles : mapping of tile name to expression
        The continuous optimum [rows]; b is the least size of a streamed tile. Of two tiles that both lessen traffic,
        unalike, the optimum to leading order.
    hbm_elements : expression
        The traffic at these tiles [elements]; under a mask for N_q = N_k = N.
    leading : expression
        Its leading term where N_q = N_k = N, d_v = d and d^2 << M << N d.
    order : expression
        The leading term without its constant: the traffic is Theta of it.
    """

    algorithm: str
    mask: Mask
    direction: str
    tiles: Mapping[str, Expr]
    hbm_elements: Expr
    leading: Expr
    order: Expr
    options: Mapping[str, Any] = field(default_factory=FrozenDict)
    substitutions: tuple[Mapping[str, int | Expr], ...] = field(default=(), compare=False, repr=False)

    def __repr__(self) -> str:
        return f"<Optimum {self.algorithm}, {self.mask}, {self.direction}: {self.leading}>"

    def subs(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Optimum:
        """Replace some symbols, by Python name or by the letter that is printed, and keep the others.

        >>> import iomodel
        >>> iomodel.optimum("flash2").subs(d=64, d_v=64, b=1, M=51200).tiles["block_q"]
        51072/131
        """
        given = {} if values is None else as_mapping("values", values, "{'M': 51200}")
        named = substituted(by_name({**given, **more}))
        point = {BY_NAME[name]: value for name, value in named.items()}
        return replace(
            self,
            tiles=FrozenDict({name: replaced(size, point) for name, size in self.tiles.items()}),
            hbm_elements=replaced(self.hbm_elements, point),
            leading=replaced(self.leading, point),
            order=replaced(self.order, point),
            substitutions=(*self.substitutions, named),
        )

    def latex(self) -> str:
        """Render the formulas as a LaTeX `aligned` block."""
        rows = [rf"\text{{{name.replace('_', ' ')}}}^* &= {latex(size)}" for name, size in self.tiles.items()]
        rows.append(rf"\text{{HBM elements}}^* &= {latex(self.hbm_elements)} \approx {latex(self.leading)}")
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"

    def to_dict(self) -> dict[str, Any]:
        """Return the formulas as text, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "mask": self.mask if isinstance(self.mask, str) else self.mask.to_dict(),
            "direction": self.direction,
            "tiles": {name: str(size) for name, size in self.tiles.items()},
            "hbm_elements": str(self.hbm_elements),
            "leading": str(self.leading),
            "order": f"Theta({self.order})",
            "options": dict(self.options),
            **({"substitutions": plain(self.substitutions)} if self.substitutions else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Optimum:
        """Derive the optimum of plain data again; its texts are not read.

        Raises
        ------
        InputError
            A key is missing or unknown, or its value is of another type.
        """
        kinds = {"algorithm": str, "mask": Any, "direction": str, "options": Mapping[str, Any]}
        kinds["substitutions"] = tuple[Mapping[str, Expr], ...]
        known = decoded_values(kinds, ("substitutions",), data, cls.__name__)
        made = optimum(known["algorithm"], known["mask"], known["direction"], **known["options"])
        for values in known.get("substitutions", ()):
            made = made.subs(values)
        check_keys(data, made.to_dict())
        return made

    def __str__(self) -> str:
        sizes = [f"{name} = {size}" for name, size in self.tiles.items()]
        return "\n".join([*sizes, f"HBM elements = {self.hbm_elements}", f"leading term = {self.leading}"])


@strict
def optimum(algorithm: AlgorithmLike, mask: Mask = "full", direction: str = "forward", **options: Any) -> Optimum:
    """Derive the tiles of least traffic as formulas, with the leading term of the traffic.

    Parameters
    ----------
    algorithm : str or Algorithm
        One of :func:`iomodel.list_algorithms`.
    mask : "full", "causal" or Window
        A window is taken to be short against the sequence.
    direction : {"forward", "backward", "both"}
        The pass, or both passes.
    **options
        Options of the algorithm; ``tiled=True`` for standard attention as GEMMs. Those that are numbers (``splits``)
        have their defaults where they are not given.

    Raises
    ------
    UnknownNameError, InputError
        An unknown algorithm, mask or option; a mask without a formula; the serpentine order.

    Examples
    --------
    >>> import iomodel
    >>> best = iomodel.optimum("flash2")
    >>> best.tiles["block_q"], best.leading
    ((M - b*d - b*d_v)/(b + d + d_v + 2), 4*N**2*d**2/M)
    >>> iomodel.optimum("flash2", direction="backward").leading
    16*N**2*d**2/M

    References
    ----------
    The order N^2 d^2 / M: Dao et al. 2022 (arXiv:2205.14135), Theorem 2; optimal by Saha and Ye 2024
    (arXiv:2402.07443).
    """
    declaration = find_algorithm(algorithm)
    mask = known_mask(mask)
    if mask_kind(mask).tabulated:
        raise InputError(
            f"mask: {shown(mask)} given; allowed: full, causal or a Window, because there are no other formulas"
        )
    known_direction(direction)
    kind = FormulaKind(mask_kind(mask), direction)
    check_kind(declaration, kind)
    if declaration.approximates:
        exact = ", ".join(exact_algorithms())
        raise InputError(f"algorithm: {algorithm} given; allowed: {exact}, which have closed forms")
    complete = check_options(declaration, {**options, **declaration.common}, direction=direction)
    if "order" in complete:
        raise InputError(f"order: {complete['order']!r} given; allowed: 'plain', which has the same leading term")
    numbers = tuple((name, value) for name, value in complete.items() if name in NUMBERS)
    formula = _optimum(declaration, kind, structural(complete), numbers)
    return Optimum(name_of(declaration), mask, direction, *formula)


@lru_cache(maxsize=128)
def _optimum(
    algorithm: Algorithm, kind: FormulaKind, options: tuple[tuple[str, Any], ...], numbers: tuple[tuple[str, int], ...]
) -> tuple[Any, ...]:
    values = {**ONE_HEAD, **{BY_NAME[number]: value for number, value in numbers}}
    loops, fixed = parts(declared(algorithm, kind, dict(options)), kind.mask)
    tiles: dict[Symbol, Expr] = {}
    total = _traffic(fixed, View(kind.mask), values)
    for part in loops:
        sizes, traffic = _part(part, View(kind.mask), values, algorithm.name)
        tiles |= sizes
        total += traffic
    if kind.mask != FULL:
        tiles = {tile: size.subs({N_q: N, N_k: N}) for tile, size in tiles.items()}
        total = total.subs({N_q: N, N_k: N})
    try:
        first = leading_term(total)
    except NotImplementedError:
        raise DeclarationError(f"{algorithm}: no leading term was found for {total}") from None
    order = first.as_independent(*first.free_symbols, as_Add=False)[1]
    named = FrozenDict({NAME_OF[symbol]: size for symbol, size in tiles.items()})
    return named, factor_terms(total), first, order


def _traffic(nest: Nest, view: View, values: Mapping[Symbol, int]) -> Expr:
    sides = (counts.moves(nest, view, counts.READS), counts.moves(nest, view, counts.WRITES))
    return Add(*(moved for side in sides for moved in side.values())).subs(values)


def _part(part: Part, view: View, values: Mapping[Symbol, int], name: str) -> tuple[dict[Symbol, Expr], Expr]:
    """Return the optimal tiles of a part and their traffic."""
    outer, inner = part.outer, part.inner
    footprint = counts.footprint(part.nest, view).subs(values)
    unmasked = _continuous(_traffic(part.nest, View(FULL), values))
    if {outer, inner} <= unmasked.free_symbols:
        if part.masked and (view.mask.left or not view.mask.causal):
            raise InputError(f"mask: a window given; allowed: full or causal, because {name} has no other formulas")
        sizes, seen = _two_sided(unmasked, footprint, part)
        return sizes, (seen / (2 if part.masked and view.mask != FULL else 1) + unmasked - seen).subs(sizes)
    traffic = unmasked
    if part.masked and view.mask != FULL:
        # A diagonal goes through the mask, so every row takes part: what streams past tiles becomes less, no other
        # move does. Of a query tile that sees only some of the splits this counts Q too often, at a lower order.
        once = _traffic(part.only("fixed", "once a tile", "begun", "loose"), View(FULL), values)
        whole = _continuous(once - _traffic(part.first_visits, View(FULL), values)).subs({N_q: N, N_k: N})
        traffic = _long(_traffic(part.only("streamed", "area", "revisited"), view, values), part) + whole
    stationary, streamed = (outer, inner) if outer in traffic.free_symbols else (inner, outer)
    sizes = {stationary: _filling(footprint, stationary, {streamed: b}), streamed: b}
    return sizes, traffic.subs(sizes)


def _continuous(traffic: Expr) -> Expr:
    """Remove the floors and ceilings of traffic."""
    return expand(traffic.replace(ceiling, lambda x: x).replace(floor, lambda x: x))


def _long(traffic: Expr, part: Part) -> Expr:
    """Return the traffic under a mask without floors and ceilings, at an inner tile of 1, queries and keys as many."""
    # Long against the window and the tile: then every Min and Max is decided by the signs of the symbols.
    shift = part.outer + W_l + W_r + 2
    long = traffic.subs({part.inner: 1, N_q: BEYOND + shift, N_k: BEYOND + shift})
    return simplify(_continuous(long).subs(BEYOND, N - shift))


def _filling(footprint: Expr, tile: Symbol, others: dict[Symbol, Expr]) -> Expr:
    """Return the size of one tile that fills the memory beside the others."""
    at_zero, at_one = (footprint.subs({tile: size, **others}) for size in (0, 1))
    return (M - at_zero) / (at_one - at_zero)


def _two_sided(traffic: Expr, footprint: Expr, part: Part) -> tuple[dict[Symbol, Expr], Expr]:
    """Return the optimal tiles, and the traffic p / x + q / y that depends on them."""
    x, y = part.outer, part.inner
    p, q = traffic.coeff(1 / x).coeff(y, 0), traffic.coeff(1 / y).coeff(x, 0)
    footprint = expand(footprint)
    gamma = footprint.coeff(x).coeff(y)
    alpha, beta = footprint.coeff(x).coeff(y, 0), footprint.coeff(y).coeff(x, 0)
    delta = footprint.subs({x: 0, y: 0})
    rest = expand(traffic - p / x - q / y)
    occupied = alpha * x + beta * y + gamma * x * y + delta
    if gamma == 0 or {x, y} & rest.free_symbols or expand(footprint - occupied) != 0:
        raise DeclarationError(f"no formula for traffic {traffic} in {x} and {y} and a footprint of {footprint}")
    ratio = simplify(p / q)
    half = (alpha * ratio + beta) / 2
    side = simplify((sqrt(half**2 + gamma * ratio * (M - delta)) - half) / (gamma * ratio))
    best = {x: ratio * side, y: side}
    for tile, other in ((x, y), (y, x)):
        rows = part.axes[tile].length
        if limit(_scaled(rows / best[tile]), _t, 0) == 0:
            best = {tile: rows, other: _filling(footprint, other, {tile: rows})}
            break
    return best, p / x + q / y


def leading_term(traffic: Expr) -> Expr:
    """Return the leading term where N_q = N_k = N, d_v = d and d^2 << M << N d, window sides far below all of them.

    >>> leading_term(4 * N_q * N_k + 3 * N_q * d)
    4*N**2
    """
    return factor(_scaled(traffic).as_leading_term(_t).subs(_t, 1))


def _scaled(expr: Expr) -> Expr:
    """Let t -> 0 keep the gaps apart: d = t^-2, M = t^-6, N = t^-10, with sqrt(M) still a power of t."""
    square = expr.subs({N_q: N, N_k: N, d_v: d})
    return square.subs({N: N / _t**10, M: M / _t**6, d: d / _t**2}, simultaneous=True)
