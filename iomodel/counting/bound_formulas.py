"""Lower bounds as expressions, and the compiled formulas of their counts."""

from __future__ import annotations

from sympy import Expr, Integer, Max, Piecewise, Rational, Symbol, ceiling, floor, sqrt

from iomodel.counting.bands import Tiled
from iomodel.counting.compile import compile_formulas
from iomodel.counting.compiled_algorithm import Formulas
from iomodel.counting.coverage import View
from iomodel.counting.mask_kind import MaskKind
from iomodel.nests.symbols import B, H, H_kv, M, N_k, N_q, b_kv, d, d_v, e
from iomodel.nests.tensors import key, query

A = Symbol("A", integer=True, nonnegative=True)
"""Visible (query, key) pairs over all batches and heads."""
R = Symbol("R", integer=True)
"""Elements of dQ, dK and dV, less those of O in rows that take part, over all batches and heads."""
Z = Symbol("Z", integer=True, nonnegative=True)
"""Elements of O of a backward pass in rows that take part, over all batches and heads."""
C = Symbol("C", integer=True, nonnegative=True)
"""The compulsory traffic [elements]."""
G = Symbol("G", integer=True, positive=True)
"""Groups of heads that share their keys, over all batches."""
L = Symbol("L", integer=True, nonnegative=True)
"""The query rows over all batches and heads, if each of them sees every key; 0 otherwise."""


def stayed(product: Expr, cut: Expr) -> Expr:
    """Return the bound for outputs that stay on chip while more keys than fit pass."""
    beyond = 4 * N_k * (d + d_v) - 5 * M
    spilled = (cut * beyond + 2 * M * (d + d_v) * d_v) / Max(1, beyond - 2 * M)
    kept = (1 + sqrt(Max(0, 1 - 4 * spilled / M))) / 2
    return Piecewise((A * product / M + kept**2 * d_v * L / 2, (beyond > 2 * M) & (16 * spilled <= 3 * M)), (0, True))


def formed(product: Expr, cut: Expr | None = None, moved: Expr | None = None) -> Expr:
    """Return the bound for pairs that bring `product` pairs of indices together, at the best number of arrivals.

    `cut` and `moved` are how many a pair may lack whose products are divided; all, and half of them, if not given.
    """
    cut, moved = product if cut is None else cut, product / 2 if moved is None else moved
    fills = (A * product >= Rational(9, 16) * G * M**2) & (8 * moved <= 3 * M)
    return Piecewise(
        (A * product / M + 15 * G * M / 16, fills & (4 * cut <= 3 * M)),
        (A * product / M, 4 * cut <= 3 * M),
        (8 * A * product * (4 * cut - M) / (4 * cut + M) ** 2, (12 - 8 * sqrt(2)) * cut <= M),
        (A * product / sqrt(cut * M), moved**2 <= cut * M),
        (A * product / moved, True),
    )


def returned(twice: int) -> Expr:
    """Return the bound of a backward pass, with the pairs of two gradients counted `twice`, 1 or 0."""
    product = (2 * d + d_v) * (2 * d + 2 * d_v) + twice * d * (d + d_v)
    cut = 2 * d**2 + 3 * d * d_v if twice else product / 3
    narrow, wide = formed(product, cut, product / 4), formed(product)
    return Piecewise((narrow, d_v <= d), (wide, True))


FORMULAS: dict[str, Expr] = {
    "exact": Max(
        2 * M * (ceiling(A * (d + d_v) / floor(sqrt(M**3))) - 1) - A,
        formed((d + d_v) ** 2, (d + d_v) ** 2 / 2, (d + d_v) ** 2 / 4),
        stayed((d + d_v) ** 2, (d + d_v) ** 2 / 2),
        evaluate=False,  # sympy would compare these bounds, in vain, for longer than the page takes to assemble
    ),
    "exact-backward": Max(
        C + Z,
        returned(0) + Z,
        returned(1).subs(M, M + 1) - R,
        A * (Rational(1299, 250) * d + 4 * d_v) / sqrt(M) - Rational(111, 25) * A - 2 * M + Z,
        evaluate=False,
    ),
    "recomputed": formed(d**2 + 2 * d * d_v + d_v),
    "recomputed-backward": formed((d + d_v) * (3 * d + d_v) + (d + 1) * d_v),
    "row-atomic": A * (d**2 / (M - d) + d_v**2 / (M - d_v)),
    "row-atomic-backward": (
        A * (2 * (3 * d + d_v) * (d + d_v) - Max(0, d - d_v) * d_v) / (M + Max(0, d_v - d) / 2) - R
    ),
    "fixed-split": A * (d + d_v) ** 2 / M,
}
"""The bound of every class [elements]; proofs in :mod:`iomodel.counting.bounds`."""


def compiled_counts(mask: MaskKind, direction: str, latent: bool) -> Formulas:
    """Compile compulsory elements and bytes, visible pairs, and elements of gradients less those of O, and of O."""
    view = View(mask)
    queries, all_keys = Tiled(N_q), Tiled(N_k)
    seeing = H * view.visits(query, queries, key, all_keys).live_outer_rows
    seen = H_kv * view.visits(key, all_keys, query, queries).live_outer_rows
    inputs, gradients, read = seeing * d, Integer(0), Integer(0)
    if direction != "forward":
        inputs += seeing * d_v
        gradients = H * N_q * d + H_kv * N_k * (d + d_v)
        read = seeing * d_v
    outputs = gradients
    if direction != "backward":
        outputs += H * N_q * d_v
    keys = seen * (d if latent else d + d_v)
    sizes = [B * (inputs + outputs + keys), B * (e * (inputs + outputs) + b_kv * keys / 32)]
    return compile_formulas([*sizes, B * H * view.visible_pairs, B * (gradients - read), B * read], (), ())
