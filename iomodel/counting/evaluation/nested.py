"""Factoring of sums of products, which leaves fewer operations to run."""

from __future__ import annotations

from collections import Counter

from sympy import Add, Expr, Mul


def nested(formula: Expr) -> Expr:
    """Factor out the most common factor of the terms of a sum, repeatedly (Horner's scheme).

    >>> from iomodel.nests.symbols import N_k, N_q, d, d_v
    >>> nested(N_q * d + N_q * d_v + N_k * d)
    N_q*d_v + d*(N_k + N_q)
    """
    if not formula.is_Add:
        return formula
    shared: Counter[Expr] = Counter()
    for term in formula.args:
        shared.update({factor.as_base_exp()[0] for factor in Mul.make_args(term) if not factor.is_Number})
    factor = max(shared, key=shared.__getitem__, default=None)
    if factor is None or shared[factor] < 2:
        return formula
    inside = [term / factor for term in formula.args if _has(term, factor)]
    beside = [term for term in formula.args if not _has(term, factor)]
    product = Mul(factor, nested(Add(*inside)), evaluate=False)
    return Add(product, nested(Add(*beside)), evaluate=False) if beside else product


def _has(term: Expr, factor: Expr) -> bool:
    return any(part.as_base_exp()[0] == factor for part in Mul.make_args(term))
