r"""Continuous optima and leading terms: what the best tiles cost as a formula in N, d and M.

One head, floors and ceilings dropped, footprint and traffic in elements, for long sequences and d^2 << M << N d.
Three shapes occur:

*No tiles*: the traffic is its own answer.

*One-sided* (a stationary tile u, a streamed tile v): traffic falls with u and never with v, so v takes its least size
b and u all the memory that is left, u* = (M - F(0, b)) / (F(1, b) - F(0, b)), for the footprint F is affine in u.
Under a mask the traffic is that at v = 1, where the count of visited rows is an elementary formula.

*Two-sided* traffic p / x + p / y + rest with a symmetric footprint alpha (x + y) + gamma x y (a GEMM): by symmetry and
convexity x* = y*, the positive root of gamma x^2 + 2 alpha x = M. A tile that would outgrow its axis covers the axis,
and the other takes the memory that is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sympy import Add, Expr, Symbol, ceiling, expand, factor, factor_terms, floor, latex, limit, simplify, sqrt

from iomodel import counts
from iomodel.algorithms import algorithm as find_algorithm
from iomodel.coverage import View
from iomodel.expressions import Kind, check_kind, check_options, declared, mask_kind, structural
from iomodel.frozen import FrozenDict
from iomodel.nest import DeclarationError, Nest
from iomodel.structure import Part, parts
from iomodel.symbols import NAME_OF, B, G, H, H_kv, M, N, N_k, N_q, W_l, W_r, b, d, d_v
from iomodel.workload import Mask, known_mask

ONE_HEAD = {B: 1, H: 1, H_kv: 1, G: 1}
BEYOND = Symbol("beyond", positive=True)
_t = Symbol("t", positive=True)


@dataclass(frozen=True)
class Optimum:
    """The best tiles and their traffic for one head, as formulas.

    Attributes
    ----------
    tiles : mapping of tile name to expression
        The continuous optimum [rows]; b is the least size of a streamed tile.
    hbm_elements : expression
        The traffic at these tiles [elements]; under a mask for N_q = N_k = N.
    leading : expression
        Its leading term where N_q = N_k = N, d_v = d and d^2 << M << N d.
    order : expression
        The leading term without its constant: the traffic is Theta of it.
    """

    algorithm: str
    mask: Mask
    tiles: Mapping[str, Expr]
    hbm_elements: Expr
    leading: Expr
    order: Expr

    def latex(self) -> str:
        """The formulas as a LaTeX `aligned` block."""
        rows = [rf"\text{{{name.replace('_', ' ')}}}^* &= {latex(size)}" for name, size in self.tiles.items()]
        rows.append(rf"\text{{HBM elements}}^* &= {latex(self.hbm_elements)} \approx {latex(self.leading)}")
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"

    def to_dict(self) -> dict[str, Any]:
        """The formulas as text, ready for JSON."""
        return {
            "algorithm": self.algorithm,
            "mask": self.mask if isinstance(self.mask, str) else self.mask.to_dict(),
            "tiles": {name: str(size) for name, size in self.tiles.items()},
            "hbm_elements": str(self.hbm_elements),
            "leading": str(self.leading),
            "order": f"Theta({self.order})",
        }

    def __str__(self) -> str:
        sizes = [f"{name} = {size}" for name, size in self.tiles.items()]
        return "\n".join([*sizes, f"HBM elements = {self.hbm_elements}", f"leading term = {self.leading}"])


def optimum(algorithm: str, mask: Mask = "full", direction: str = "forward", **options: Any) -> Optimum:
    """The tiles of least traffic as formulas, and the leading term of that traffic.

    Parameters
    ----------
    algorithm : str
        One of :func:`iomodel.list_algorithms`.
    mask : "full", "causal" or Window
        A window is taken to be short against the sequence.
    direction : {"forward", "backward", "both"}
        What is computed.
    **options
        Options of the algorithm; ``tiled=True`` for standard attention as GEMMs.

    Raises
    ------
    UnknownNameError, InputError
        An unknown algorithm, mask or option.

    Examples
    --------
    >>> import iomodel
    >>> best = iomodel.optimum("flash2")
    >>> best.tiles["block_q"], best.leading
    ((M - b*d - b*d_v)/(b + d + d_v + 2), 4*N**2*d**2/M)

    References
    ----------
    The order N^2 d^2 / M: Dao et al. 2022 (arXiv:2205.14135), Theorem 2; optimal by Saha and Ye 2024
    (arXiv:2402.07443).
    """
    found = find_algorithm(algorithm)
    mask = known_mask(mask)
    kind = Kind(mask_kind(mask), direction)
    check_kind(found, kind)
    complete = check_options(found, {**options, "packed": False}, direction=direction)
    formula = _optimum(found.name, kind, structural(complete))
    return Optimum(found.name, mask, *formula)


@lru_cache(maxsize=128)
def _optimum(name: str, kind: Kind, options: tuple[tuple[str, Any], ...]) -> tuple[Any, ...]:
    view = View(kind.mask)
    found, fixed = parts(declared(find_algorithm(name), kind, dict(options)), kind.mask)
    tiles: dict[Symbol, Expr] = {}
    total = _traffic(fixed, view)
    for part in found:
        sizes, traffic = _part(part, view)
        tiles |= sizes
        total += traffic
    try:
        first = leading_term(total)
    except NotImplementedError:
        raise DeclarationError(f"{name}: no leading term was found for {total}") from None
    order = first.as_coeff_Mul()[1]
    named = FrozenDict({NAME_OF[symbol]: size for symbol, size in tiles.items()})
    return named, factor_terms(total), first, order


def _traffic(nest: Nest, view: View) -> Expr:
    sides = (counts.moves(nest, view, counts.READS), counts.moves(nest, view, counts.WRITES))
    return Add(*(moved for side in sides for moved in side.values())).subs(ONE_HEAD)


def _part(part: Part, view: View) -> tuple[dict[Symbol, Expr], Expr]:
    """Optimal tiles of a part and the traffic there."""
    outer, inner = part.outer, part.inner
    footprint = counts.footprint(part.nest, view).subs(ONE_HEAD)
    traffic = _relaxed(_traffic(part.nest, view), part)
    if {outer, inner} <= traffic.free_symbols:
        sizes = _two_sided(traffic, footprint, part)
    else:
        stationary, streamed = (outer, inner) if outer in traffic.free_symbols else (inner, outer)
        sizes = {stationary: _filling(footprint, stationary, {streamed: b}), streamed: b}
    return sizes, traffic.subs(sizes)


def _relaxed(traffic: Expr, part: Part) -> Expr:
    """Traffic without floors and ceilings; under a mask at an inner tile of 1, queries and keys as many."""
    if not part.masked:
        return traffic.replace(ceiling, lambda x: x)
    # Long against the window and the tile: then every Min and Max is decided by the signs of the symbols.
    shift = part.outer + W_l + W_r + 2
    long = traffic.subs({part.inner: 1, N_q: BEYOND + shift, N_k: BEYOND + shift})
    continuous = long.replace(ceiling, lambda x: x).replace(floor, lambda x: x)
    return simplify(expand(continuous.subs(BEYOND, N - shift)))


def _filling(footprint: Expr, tile: Symbol, others: dict[Symbol, Expr]) -> Expr:
    """The size of one tile that fills the memory beside the others."""
    at_zero, at_one = (footprint.subs({tile: size, **others}) for size in (0, 1))
    return (M - at_zero) / (at_one - at_zero)


def _two_sided(traffic: Expr, footprint: Expr, part: Part) -> dict[Symbol, Expr]:
    x, y = part.outer, part.inner
    swapped = {x: y, y: x}
    alpha, gamma = footprint.coeff(x).subs(y, 0), footprint.coeff(x).coeff(y)
    for expr in (traffic, footprint - alpha * (x + y) - gamma * x * y):
        if simplify(expr - expr.subs(swapped, simultaneous=True)) != 0:
            raise DeclarationError(f"no closed form for an optimum that is not symmetric in {x} and {y}")
    side = (sqrt(alpha**2 + gamma * M) - alpha) / gamma
    for tile, other in ((x, y), (y, x)):
        rows = part.axes[tile].length
        if limit(_scaled(rows / side), _t, 0) == 0:
            return {tile: rows, other: _filling(footprint, other, {tile: rows})}
    return {x: side, y: side}


def leading_term(traffic: Expr) -> Expr:
    """The leading term where N_q = N_k = N, d_v = d and d^2 << M << N d, window sides far below all of them.

    >>> leading_term(4 * N_q * N_k + 3 * N_q * d)
    4*N**2
    """
    return factor(_scaled(traffic).as_leading_term(_t).subs(_t, 1))


def _scaled(expr: Expr) -> Expr:
    """Let t -> 0 keep the gaps apart: d = t^-2, M = t^-6, N = t^-10, with sqrt(M) still a power of t."""
    square = expr.subs({N_q: N, N_k: N, d_v: d})
    return square.subs({N: N / _t**10, M: M / _t**6, d: d / _t**2}, simultaneous=True)
